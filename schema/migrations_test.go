package schema

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
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

var update = flag.Bool("update", false,
	"note the check sums of the migrations in "+sums+", and dump version 1 to "+released+", with pg_dump, mysqldump and mariadb-dump")

// Until the first release, changes of the tables edit migration 1. From then on no migration is edited.
func TestAnEditedMigrationHasANewEdition(t *testing.T) {
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
		noted = now
		text, err := json.MarshalIndent(noted, "", "  ")
		if err == nil {
			err = os.WriteFile(sums, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(noted, now); diff != "" {
		t.Errorf("a migration differs from its sum in %s (-noted +now). Raise edition, so that databases with the old tables "+
			"are refused, and note the sums with go test ./schema -update:\n%s", sums, diff)
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
