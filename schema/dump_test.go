package schema

import (
	"database/sql"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// updateDump writes the dump of a database that migration 1 has just made, with a row in each table.
func updateDump(t *testing.T, kind, file string) {
	t.Helper()
	TeachLater(t, 1)
	made := testdb.URL(t, kind)
	db, d := migrated(t, made)
	oneRowEach(t, db)
	writeDump(t, file, dump(t, db, d, made))
}

// dump returns the statements that make the database again.
func dump(t *testing.T, db *sql.DB, d Dialect, target string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	switch d {
	case SQLite:
		return dumpSQLite(t, db)
	case Postgres:
		return output(t, "pg_dump", "--no-owner", "--no-privileges", "--column-inserts", "--dbname", target)
	}
	program, options := "mariadb-dump", []string(nil)
	if d == MySQL {
		program, options = testdb.Program(testdb.MySQL, "mysqldump"), []string{"--set-gtid-purged=OFF", "--no-tablespaces"}
	}
	return output(t, program, append(options, "--protocol=tcp", "--compact", "--complete-insert", "--skip-extended-insert",
		"--host", u.Hostname(), "--port", u.Port(), "--user", u.User.Username(), strings.TrimPrefix(u.Path, "/"))...)
}

func dumpSQLite(t *testing.T, db *sql.DB) string {
	t.Helper()
	statements := texts(t, db, `SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'sqlite_sequence' ORDER BY rowid`)
	all := layout(t, db, SQLite)
	for _, table := range slices.Sorted(maps.Keys(all)) {
		if table == "schedule_assignment" {
			continue
		}
		list := all[table]
		statements = append(statements, texts(t, db, fmt.Sprintf(`SELECT 'INSERT INTO %s (%s) VALUES (' || concat_ws(', ', quote(%s)) || ')' FROM %[1]s`,
			table, strings.Join(list, ", "), strings.Join(list, "), quote(")))...)
	}
	return strings.Join(statements, ";\n") + ";\n"
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = t.Output()
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(text)
}

// noise is what a dump says of the session that restores it, of the account that made it, and of nothing.
var noise = regexp.MustCompile(`(?m)^(--|\\|SET |SELECT pg_catalog\.set_config|/\*M!|/\*!\d+ SET ).*\n|^\n| DEFINER=\S+`)

func writeDump(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(noise.ReplaceAllString(text, "")), 0o644); err != nil {
		t.Fatal(err)
	}
}
