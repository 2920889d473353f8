package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		dir := t.TempDir()
		if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
			writeFile(t, path, "") // an empty database, as with a database server
		}
		for _, step := range []struct{ command, want string }{
			{"status", `(?m)^ *VERSION +NAME +APPLIED\n +1 +roster +pending$`},
			{"up", fmt.Sprintf(`: created schema %d\n$`, schema.Latest())},
			{"up", fmt.Sprintf(`: schema %d, nothing to do\n$`, schema.Latest())},
			{"status", `(?m)^ *VERSION +NAME +APPLIED\n +1 +roster +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$`},
		} {
			stdout, stderr, code := runRota(t, dir, "migrate", step.command, "--database", url)
			if code != 0 || stderr != "" || !regexp.MustCompile(step.want).MatchString(stdout) {
				t.Fatalf("migrate %s: exit code %d, stderr %q, want %s, got\n%s", step.command, code, stderr, step.want, stdout)
			}
		}
	})
}

func TestMigrateRefusesAVoidDatabase(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		newTestRoster(t, url).exec(`UPDATE schedule_schema_lock SET edition = 1`)
		for _, command := range []string{"up", "status"} {
			stdout, stderr, code := runRota(t, t.TempDir(), "migrate", command, "--database", url)
			if code == 0 || stdout != "" || !strings.HasSuffix(stderr, schema.ErrVoid.Error()+"\n") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("migrate %s: exit code %d, stdout %q, stderr %q", command, code, stdout, stderr)
			}
		}
	})
}

func TestMigrateReadsTheFileInItsDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "rota.yaml"), "database: sqlite:here.db\n")
	stdout, stderr, code := runRota(t, dir, "migrate", "up")
	if code != 0 || stdout != fmt.Sprintf("sqlite:%s: created schema %d\n", filepath.Join(dir, "here.db"), schema.Latest()) {
		t.Errorf("exit code %d, stderr %q, stdout %q", code, stderr, stdout)
	}
}
