package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// A watch of a run ends with the run, and the queues of a cancelled run do not count as done.
func TestWatchEndsWithTheRun(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	extract, _ := s.runs()
	s.serve("extract", web3)
	s.sweep("extract", web3, "0")
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	watch := rota(ctx, s.dir, "run", "show", "extract", "--watch=100ms", "--database", s.url)
	reader, err := watch.StdoutPipe()
	s.must(err)
	s.must(watch.Start())
	_, err = reader.Read(make([]byte, 1)) // it has found the run
	s.must(err)
	s.run("run cancel " + extract)
	s.run("run submit extract --key later") // the newest run of the task type is another one now
	out, err := io.ReadAll(reader)
	s.must(err)
	if err := watch.Wait(); err != nil {
		t.Fatalf("the watch: %v, want that it ends by itself", err)
	}
	if last := string(out[strings.LastIndex(string(out), " run "+extract):]); !strings.Contains(last, "CANCELLED") || !strings.Contains(last, " 1 of 4 queues, 3 cancelled, 10 items") {
		t.Errorf("the last picture of the run:\n%s\nwant 1 of 4 queues done and 3 cancelled", last)
	}
	s.wantOutput("run list extract", extract+` +extract +CANCELLED +1/4 +10 `)
}
