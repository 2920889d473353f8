package schema

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDialectsHaveTheSameMigrations(t *testing.T) {
	TeachLater(t, 3)
	for i, m := range known.steps {
		if m.Version != int64(i+1) || m.Name == "" {
			t.Errorf("migration %d is %+v", i+1, m)
		}
	}
	for _, g := range grammars {
		steps, err := readSteps(known.files, g.dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(known.steps, steps); diff != "" {
			t.Errorf("%s (-postgres +%[1]s):\n%s", g.name, diff)
		}
	}
}

// sums are the check sums of the migrations without their comments, with the tables of the lock and the version.
// A sum never changes.
var sums = map[string]string{
	"edition":                   "47",
	"bookkeeping":               "dff65d2195bd",
	"postgres/00001_roster.sql": "042058865bbe",
	"mysql/00001_roster.sql":    "2daa026b5535",
	"sqlite/00001_roster.sql":   "7a789f4512ee",
	"fence/postgres.sql":        "47572b06c57f",
	"fence/mysql.sql":           "d785e6bffbe3",
	"fence/sqlite.sql":          "e1a8d92499f7",
}

func TestNoMigrationIsEdited(t *testing.T) {
	t.Parallel()
	got := map[string]string{
		"edition":     edition,
		"bookkeeping": sum(strings.Join(postgres.bookkeeping, ";") + strings.Join(mysql.bookkeeping, ";") + strings.Join(sqlite.bookkeeping, ";")),
	}
	err := fs.WalkDir(embedded, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(embedded, path)
		got[path] = sum(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sums, got); diff != "" {
		t.Errorf("a migration was edited, but databases have it already: write another migration, and note its sum (-noted +now):\n%s", diff)
	}
}

var (
	comments   = regexp.MustCompile(`(?m)--.*$`)
	whiteSpace = regexp.MustCompile(`\s+`)
)

// sum returns the beginning of the check sum of SQL without comments and layout.
func sum(text string) string {
	text = whiteSpace.ReplaceAllString(comments.ReplaceAllString(text, ""), " ")
	return fmt.Sprintf("%.6x", sha256.Sum256([]byte(text)))
}
