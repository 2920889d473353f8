package schema

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/testdb"
)

// released holds, for each kind of database, the dump of one that version 1 of the schema made, with a row in each
// table. From the first release on it is what users have, so it never changes. Until then -update writes it anew.
const released = "testdata/v0.1"

// A database of the first release, restored from a dump, is what this program's first migration makes, and the later
// migrations lead from it to what an empty database gets. They lose no row and no column.
func TestReleasedDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		kind := filepath.Base(t.Name())
		file := filepath.Join(released, kind+".sql")
		if *update {
			updateDump(t, kind, file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		db, d := open(t, url)
		for statement := range strings.SplitSeq(strings.TrimSpace(string(text)), ";\n") {
			execute(t, db, statement)
		}
		tables, before := relations(t, db, d), layout(t, db, d)
		for latest := int64(1); latest <= own+2; latest++ {
			TeachLater(t, latest)
			if _, _, err := Up(t.Context(), db, d); err != nil {
				t.Fatal(err)
			}
			fresh, _ := migrated(t, testdb.URL(t, kind))
			if diff := cmp.Diff(definitions(t, fresh, d), definitions(t, db, d)); diff != "" {
				t.Errorf("version %d: a released database (+) is not what a new one (-) is:\n%s", latest, diff)
			}
			for _, table := range tables {
				if n := texts(t, db, `SELECT COUNT(*) FROM `+table); n[0] != "1" && table != versionTable {
					t.Errorf("version %d: %s rows of %s are left, want 1", latest, n[0], table)
				}
			}
			after := layout(t, db, d)
			for table, columns := range before {
				if !slices.Equal(columns, after[table][:min(len(columns), len(after[table]))]) {
					t.Errorf("version %d: %s has the columns %s, want %s and new ones behind them", latest, table, after[table], columns)
				}
			}
			before = after
		}
	})
}

// definitions returns what the database says of its tables, views, indexes and constraints.
func definitions(t *testing.T, db *sql.DB, d Dialect) (list []string) {
	t.Helper()
	switch d {
	case Postgres:
		return texts(t, db, `
			SELECT concat_ws(' ', table_name, column_name, data_type, character_maximum_length, datetime_precision, is_nullable,
				column_default, collation_name, identity_generation) FROM information_schema.columns WHERE table_schema = 'public'
			UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
				WHERE connamespace = 'public'::regnamespace
			UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
			UNION ALL SELECT viewname || definition FROM pg_views WHERE schemaname = 'public'
			ORDER BY 1`)
	case SQLite:
		return texts(t, db, `SELECT name || sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name`)
	}
	for _, relation := range relations(t, db, d) {
		var name, text, ignored string
		into := []any{&name, &text, &ignored, &ignored} // a view has a character set and a collation besides
		if relation != "schedule_assignment" {
			into = into[:2]
		}
		if err := db.QueryRowContext(t.Context(), `SHOW CREATE TABLE `+relation).Scan(into...); err != nil {
			t.Fatal(err)
		}
		list = append(list, ofDump.ReplaceAllString(text, ""))
	}
	return list
}

// ofDump is what a table from a dump says beside what its migration has said: the next number, and on MySQL the
// character set of each column beside its collation.
var ofDump = regexp.MustCompile(` AUTO_INCREMENT=\d+| CHARACTER SET utf8mb4`)
