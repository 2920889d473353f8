package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
)

// A file that is given with -c wins over the environment. A file that is merely in the directory does not. -v shows
// which one the command used.
func TestGivenFileWinsOverTheEnvironment(t *testing.T) {
	t.Parallel()
	here, other := newTestRoster(t, testdb.URL(t, testdb.SQLite)), newTestRoster(t, testdb.URL(t, testdb.SQLite))
	other.define("elsewhere", center.Settings{Queues: 1})
	writeFile(t, filepath.Join(here.dir, "rota.yaml"), "database: "+here.url+"\nown_sign: BASE\n")
	for args, want := range map[string]struct {
		elsewhere bool
		shown     string
	}{
		"-c rota.yaml":                         {false, here.url + " from rota.yaml, own_sign BASE"},
		"":                                     {true, other.url + " from ROTA_DATABASE, own_sign BASE"},
		"-c rota.yaml --database " + other.url: {true, other.url + " from --database, own_sign BASE"},
		"--database " + here.url + " --own-sign T": {false, here.url + " from --database, own_sign T"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		var stdout, stderr strings.Builder
		cmd := rota(ctx, here.dir, strings.Fields("task list -v "+args)...)
		cmd.Env = append(cmd.Env, "ROTA_DATABASE="+other.url)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v: %s", args, err, stderr.String())
		}
		if got := strings.Contains(stdout.String(), "elsewhere"); got != want.elsewhere || stderr.String() != "rota: database "+want.shown+"\n" {
			t.Errorf("%q: it shows the other roster: %t, want %t; stderr %q, want %q", args, got, want.elsewhere, stderr.String(), want.shown)
		}
	}
}

// -v does not print the password, and prints nothing of a value that is not a URL.
func TestVerboseHidesThePassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"postgres://u:secret@127.0.0.1:1/d": "rota: database postgres://u@127.0.0.1:1/d from --database, own_sign BASE\n",
		"nonsense:secret@x":                 "rota: database URL: ",
	} {
		_, stderr, code := runRota(t, t.TempDir(), "task", "list", "-v", "--database", url)
		if code == 0 || !strings.HasPrefix(stderr, want) || strings.Contains(stderr, "secret") {
			t.Errorf("%s: exit code %d, stderr %q, want %q", url, code, stderr, want)
		}
	}
	// A shell that completes a command line with -v shows no line of it.
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	_, stderr, _ := runRota(t, s.dir, "__complete", "task", "show", "-v", "--database", s.url, "")
	if strings.Contains(stderr, "rota: database") {
		t.Errorf("a completion prints %q", stderr)
	}
}
