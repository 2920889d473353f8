package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/testdb"
)

// voidDatabases are the databases from before the first release, from the newest to the oldest. Each is made from the
// one before. The first edition of the tables had five migrations, and no column for the edition.
var voidDatabases = []struct {
	name    string
	changes []string
}{
	{"another edition", []string{`UPDATE schedule_schema_lock SET edition = 1`}},
	{"five migrations", []string{
		`ALTER TABLE schedule_schema_lock DROP COLUMN edition`,
		`UPDATE schedule_schema_lock SET oldest_companion = 2`,
		`DELETE FROM schedule_schema_version WHERE version_id > 1`,
		`INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (2, TRUE), (3, TRUE), (4, TRUE), (5, TRUE)`,
	}},
	{"three migrations, which allow older programs", []string{
		`UPDATE schedule_schema_lock SET oldest_companion = 1`,
		`DELETE FROM schedule_schema_version WHERE version_id > 3`,
	}},
	{"one migration", []string{
		`ALTER TABLE schedule_schema_lock DROP COLUMN oldest_companion`,
		`DELETE FROM schedule_schema_version WHERE version_id > 1`,
	}},
	{"half a migration", []string{`DELETE FROM schedule_schema_version WHERE version_id > 0`}},
}

func TestVoidDatabasesAreRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, d := migrated(t, url)
		for _, void := range voidDatabases {
			for _, change := range void.changes {
				execute(t, db, change)
			}
			tables, lock := relations(t, db, d), columnsOf(t, db, "schedule_schema_lock")
			_, _, up := Up(t.Context(), db, d)
			_, status := Status(t.Context(), db, d)
			for _, err := range []error{up, status, Check(t.Context(), db, d)} {
				if !errors.Is(err, ErrVoid) || errors.Is(err, ErrMissing) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: got %v, want %v", void.name, err, ErrVoid)
				}
			}
			if diff := cmp.Diff(tables, relations(t, db, d)); diff != "" {
				t.Errorf("%s: changed (-before +after):\n%s", void.name, diff)
			}
			if !slices.Equal(lock, columnsOf(t, db, "schedule_schema_lock")) {
				t.Errorf("%s: the lock table changed", void.name)
			}
		}
	})
}

// Another process creates the tables of an earlier edition while this one waits for the lease.
func TestVoidUnderTheLeaseIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, d := migrated(t, url)
		execute(t, db, `UPDATE schedule_schema_lock SET edition = 1`)
		g, err := d.grammar()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := newLease(g, db).up(t.Context()); !errors.Is(err, ErrVoid) {
			t.Errorf("up = %v", err)
		}
	})
}

// After the drop that the message asks for, the database works.
func TestVoidDatabaseAfterTheDrop(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, d := migrated(t, url)
		execute(t, db, `UPDATE schedule_schema_lock SET edition = 1`)
		execute(t, db, `DROP VIEW schedule_assignment`)
		for _, table := range relations(t, db, d) {
			execute(t, db, `DROP TABLE `+table)
		}
		if _, _, err := Up(t.Context(), db, d); err != nil {
			t.Fatal(err)
		}
		complete(t, db, d)
	})
}

// An operator may delete the row of the lock. It comes back with the edition of its table, not with that of the program.
func TestDeletedLockRowKeepsTheEdition(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, d := open(t, url)
		for _, s := range bookkeeping(t, d) {
			execute(t, db, strings.Replace(s, "DEFAULT "+edition, "DEFAULT 1", 1))
		}
		execute(t, db, `DELETE FROM schedule_schema_lock`)
		for _, s := range bookkeeping(t, d) {
			execute(t, db, s)
		}
		if err := Check(t.Context(), db, d); !errors.Is(err, ErrVoid) {
			t.Errorf("Check = %v", err)
		}
	})
}
