package demo

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// hire starts a crew of scripts, each of which says when it is ready.
func hire(t *testing.T, scripts ...string) *crew {
	t.Helper()
	c := &crew{folder: t.TempDir()}
	t.Cleanup(c.kill)
	for _, script := range scripts {
		c.program = filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(c.program, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		w, err := c.hire()
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

func TestFarewell(t *testing.T) {
	const obey = "trap 'exit %' TERM; echo ready; while :; do sleep 0.01; done"
	c := hire(t, strings.Replace(obey, "%", "0", 1), strings.Replace(obey, "%", "3", 1), "echo ready; exec sleep 60")
	if err := c.check(); err != nil {
		t.Errorf("before anybody has left: %v", err)
	}
	c.workers[2].kill()
	c.terminate()
	eventually(t, "all have ended", c.ended)
	if err := c.check(); err != nil {
		t.Errorf("all ended as they were told: %v", err)
	}
	err := c.farewell()
	if want := "worker 2 was told to leave and must exit 0: exit status 3; its last words: ready"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestLeaveWantsExit0(t *testing.T) {
	s := &story{
		watch: watch{roster(t, testdb.URL(t, testdb.SQLite))},
		crew:  hire(t, "trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done"),
		view:  newPlainView(io.Discard, ""),
	}
	if err := s.leave(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
}

func TestWorkersEnvironment(t *testing.T) {
	t.Setenv("ROTA_DATABASE", "postgres://production/")
	t.Setenv("ROTA_SCHEMA", "create")
	t.Setenv("NOT_ROTA_DATABASE", "is passed on")
	env := strings.Join(ownEnviron(), "\n")
	if strings.Contains(env, "production") || strings.Contains(env, "ROTA_SCHEMA") || !strings.Contains(env, "is passed on") {
		t.Error(env)
	}
}

func TestCrewOf(t *testing.T) {
	c, _ := cast()
	for uuid, want := range map[string]string{
		"host:4711:0123abcd":      "worker 1",
		"fe80::1:4712:0123abcd":   "worker 2", // a host name with colons
		"host:9:0123abcd":         "host:9:0123abcd",
		"host:no number:0123abcd": "host:no number:0123abcd",
		"0123abcd":                "0123abcd",
		"":                        "",
	} {
		if got := c.name(uuid); got != want {
			t.Errorf("%q is %q, want %q", uuid, got, want)
		}
	}
	if c.employs("h:4712:b") || !c.employs("h:4711:a") || c.living() != 3 {
		t.Error("worker 2 was killed, the others were not")
	}
}
