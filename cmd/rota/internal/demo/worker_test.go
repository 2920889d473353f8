package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func writeScript(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func pidOf(w *worker) string { return strconv.Itoa(w.Process.Pid) }

// Worker 1 obeys SIGTERM with an exit code. The demo kills worker 2.
func TestWorkersMustLeaveInOrder(t *testing.T) {
	const obey = "trap 'exit %' TERM; echo ready; while :; do sleep 0.01; done"
	for code, want := range map[string]string{
		"0": "",
		"3": "worker 1 (pid PID) ended unexpectedly: exit status 3; last line of its log: ready",
	} {
		s := &story{out: io.Discard, folder: t.TempDir()}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		var mu sync.Mutex
		var errs []error
		for i, script := range []string{strings.Replace(obey, "%", code, 1), "echo ready; exec sleep 60"} {
			s.program = writeScript(t, script)
			if err := s.start(ctx, 1, func(err error) { mu.Lock(); defer mu.Unlock(); errs = append(errs, err) }); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the script is ready", func() bool {
				info, err := os.Stat(filepath.Join(s.folder, "worker-"+strconv.Itoa(i+1)+".log"))
				return err == nil && info.Size() > 0
			})
		}
		s.workers[1].kill()
		leave()
		s.running.Wait()
		got := ""
		if err := errors.Join(errs...); err != nil {
			got = err.Error()
		}
		if want = strings.Replace(want, "PID", pidOf(s.workers[0]), 1); got != want {
			t.Errorf("exit %s: got %q, want %q", code, got, want)
		}
	}
}

func TestWorkersEnvironment(t *testing.T) {
	t.Setenv("ROTA_DATABASE", "postgres://production/")
	t.Setenv("ROTA_SCHEMA", "create")
	t.Setenv("NOT_ROTA_DATABASE", "stays")
	env := strings.Join(ownEnviron(), "\n")
	if strings.Contains(env, "production") || strings.Contains(env, "ROTA_SCHEMA") || !strings.Contains(env, "stays") {
		t.Error(env)
	}
}
