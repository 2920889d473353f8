package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// startScripts starts a fleet of scripts. Each writes a line when it is ready.
func startScripts(t *testing.T, scripts ...string) *fleet {
	t.Helper()
	c := &fleet{folder: t.TempDir()}
	t.Cleanup(c.kill)
	for _, script := range scripts {
		c.program = writeScript(t, script)
		w, err := c.start()
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the script is ready", func() bool {
			info, err := os.Stat(w.log)
			return err == nil && info.Size() > 0
		})
	}
	return c
}

func writeScript(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWorkersMustLeaveInOrder(t *testing.T) {
	const obey = "trap 'exit %' TERM; echo ready; while :; do sleep 0.01; done"
	for code, want := range map[string]string{
		"0": "",
		"3": "worker 1 (pid PID) ended unexpectedly: exit status 3; last line of its log: ready",
	} {
		c := startScripts(t, strings.Replace(obey, "%", code, 1), "echo ready; exec sleep 60")
		if err := c.check(); err != nil {
			t.Errorf("both run: %v", err)
		}
		c.workers[1].kill()
		c.terminate()
		eventually(t, "both have ended", c.ended)
		got := ""
		if err := c.check(); err != nil {
			got = err.Error()
		}
		if want = strings.Replace(want, "PID", pidOf(c.workers[0]), 1); got != want {
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
