package schema

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDialectsHaveTheSameMigrations(t *testing.T) {
	TeachLater(t, own+2)
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

// sums has the check sums of the migrations without their comments, and of the tables of the lock and the version.
const sums = "testdata/sums.json"

var update = flag.Bool("update", false, "note the check sums of new migrations in "+sums)

func TestNoMigrationIsEdited(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	var noted map[string]string
	if err := json.Unmarshal(text, &noted); err != nil {
		t.Fatal(err)
	}
	now := map[string]string{
		"edition":     edition,
		"bookkeeping": sum(strings.Join(postgres.bookkeeping, ";") + strings.Join(mysql.bookkeeping, ";") + strings.Join(sqlite.bookkeeping, ";")),
	}
	for _, path := range mustGlob(embedded, "*/*.sql") {
		text, err := embedded.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		now[path] = sum(string(text))
	}
	if *update {
		all := maps.Clone(now)
		maps.Copy(all, noted) // a sum that is noted stays
		noted = all
		text, err := json.MarshalIndent(noted, "", "  ")
		if err == nil {
			err = os.WriteFile(sums, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(noted, now); diff != "" {
		t.Errorf("a migration differs from its sum in %s (-noted +now). Databases have the old ones: write another one. "+
			"Note the sum of a new one with go test ./schema -run %s -update:\n%s", sums, t.Name(), diff)
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
