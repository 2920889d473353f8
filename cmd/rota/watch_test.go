package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// Into a pipe, a watch prints repeatedly without cursor movements; after SIGINT it exits 0.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	for args, want := range map[string]string{
		"queue list settle --watch=100ms": " TASK ",
		"top --watch=100ms":               " TASK ",
		"event list --follow -o json":     `{"event_id":8,`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		cmd := rota(ctx, s.dir, append(strings.Fields(args), "--database", s.url)...)
		out := &strings.Builder{}
		reader, err := cmd.StdoutPipe()
		s.must(err)
		s.must(cmd.Start())
		buffer := make([]byte, 64<<10)
		for least := 2; strings.Count(out.String(), want) < least; {
			n, err := reader.Read(buffer)
			out.Write(buffer[:n])
			if err != nil {
				t.Fatalf("rota %s: %v after\n%s", args, err, out)
			}
			if strings.Contains(args, "--follow") && strings.Contains(out.String(), want) {
				least = 1
				s.must(s.c.Roster().Operator("test").Pause(t.Context(), "settle", true))
				for !strings.Contains(out.String(), `"kind":"PAUSED"`) {
					n, err := reader.Read(buffer)
					out.Write(buffer[:n])
					s.must(err)
				}
			}
		}
		s.must(cmd.Process.Signal(os.Interrupt))
		go func() { _, _ = reader.Read(buffer) }()
		state, err := cmd.Process.Wait()
		s.must(err)
		if state.ExitCode() != 0 || strings.Contains(out.String(), "\x1b") {
			t.Errorf("rota %s: exit code %d, stdout\n%s", args, state.ExitCode(), out)
		}
	}
}
