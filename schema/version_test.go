package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/testdb"
)

func TestCheckMissing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := open(t, url)
		const want = `the database has no Rota tables: run "rota migrate up"`
		refused(t, db, d, ErrMissing, want)
		if found := relations(t, db, d); len(found) != 0 {
			t.Errorf("Check and Status created %v", found)
		}
		for _, s := range bookkeeping(t, d) { // died before the first migration
			execute(t, db, s)
		}
		refused(t, db, d, ErrMissing, want)
	})
}

func bookkeeping(t *testing.T, d Dialect) []string {
	t.Helper()
	g, err := d.grammar()
	if err != nil {
		t.Fatal(err)
	}
	return g.bookkeeping
}

// refused checks what Check returns, and that Status can be read nevertheless.
func refused(t *testing.T, db *sql.DB, d Dialect, want error, message string) {
	t.Helper()
	err := Check(t.Context(), db, d)
	if err == nil || err.Error() != message {
		t.Errorf("Check = %v, want %s", err, message)
	}
	for _, sentinel := range []error{ErrMissing, ErrOlder, ErrNewer} {
		if errors.Is(err, sentinel) != errors.Is(want, sentinel) {
			t.Errorf("errors.Is(%v, %v) = %t", err, sentinel, errors.Is(err, sentinel))
		}
	}
	if _, err := Status(t.Context(), db, d); err != nil {
		t.Error(err)
	}
}

// Not parallel: it teaches the program another migration.
func TestCheckOlder(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := migrated(t, url)
		before := known
		t.Cleanup(func() { known = before })
		now := Latest()
		known = append(slices.Clone(known), Migration{Version: now + 1, Name: "later"})
		refused(t, db, d, ErrOlder, fmt.Sprintf(`the database's schema is version %d, this program needs %d: run "rota migrate up"`, now, now+1))
		status, err := Status(t.Context(), db, d)
		if err != nil || len(status) != len(known) || !status[now].AppliedAt.IsZero() {
			t.Errorf("Status = %+v, %v", status, err)
		}
	})
}

// A rolling upgrade: the schema comes first, then the programs, one after the other; those that are older are
// started again meanwhile.
func TestNewerThatBearsThisProgram(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := migrated(t, url)
		execute(t, db, `INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (7, TRUE)`)
		for oldest, want := range map[int64]error{1: nil, Latest(): nil, Latest() + 1: ErrNewer} {
			execute(t, db, `UPDATE schedule_schema_lock SET oldest_companion = ?`, oldest)
			if err := Check(t.Context(), db, d); !errors.Is(err, want) {
				t.Errorf("oldest companion %d: %v, want %v", oldest, err, want)
			}
		}
		if _, _, err := Up(t.Context(), db, d); !errors.Is(err, ErrNewer) {
			t.Errorf("Up = %v", err)
		}
	})
}

// Not parallel: it makes the program forget migrations.
func TestOlderProgramsBesideThisSchema(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := migrated(t, url)
		all := known
		t.Cleanup(func() { known = all })
		oldest := oldestCompanion(t, d)
		if oldest > Latest()-1 {
			t.Errorf("schema %d refuses programs of %d: the previous version must run beside it", Latest(), Latest()-1)
		}
		for _, m := range all {
			known = all[:m.Version]
			var want error
			if m.Version < oldest {
				want = ErrNewer
			}
			if err := Check(t.Context(), db, d); !errors.Is(err, want) {
				t.Errorf("a program of schema %d beside %d, whose oldest companion is %d: %v, want %v", m.Version, len(all), oldest, err, want)
			}
		}
	})
}

// oldestCompanion is what the newest migration says about itself to people who read it.
func oldestCompanion(t *testing.T, d Dialect) (version int64) {
	t.Helper()
	last := known[len(known)-1]
	text, err := files.ReadFile(fmt.Sprintf("%s/%05d_%s.sql", d, last.Version, last.Name))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "-- Oldest companion: the library version that brings migration ")
	if _, err := fmt.Sscanf(rest, "%d.", &version); err != nil {
		t.Fatalf("%s does not say which is the oldest program that may run beside it: %v", last.Name, err)
	}
	return version
}

func TestNewerIsRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := migrated(t, url)
		execute(t, db, `INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (7, TRUE)`)
		execute(t, db, `DROP VIEW schedule_assignment`) // what a newer version may have done
		execute(t, db, `DROP TABLE schedule_schema_lock`)
		message := fmt.Sprintf(`the database's schema is version 7, this program knows up to %d: install a newer rota`, Latest())
		refused(t, db, d, ErrNewer, message)
		before := relations(t, db, d)
		from, to, err := Up(t.Context(), db, d)
		if !errors.Is(err, ErrNewer) || err.Error() != message || from != 7 || to != 7 {
			t.Errorf("Up = %d, %d, %v", from, to, err)
		}
		if diff := cmp.Diff(before, relations(t, db, d)); diff != "" {
			t.Errorf("Up changed (-before +after):\n%s", diff)
		}
		status, err := Status(t.Context(), db, d)
		if last := len(status) - 1; err != nil || last != len(known) || status[last].Version != 7 || status[last].Name != "" || status[last].AppliedAt.IsZero() {
			t.Errorf("Status = %+v, %v", status, err)
		}
	})
}

// The newer version came while this process waited for the lock.
func TestNewerUnderTheLockIsRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := migrated(t, url)
		execute(t, db, `INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (7, TRUE)`)
		g, _ := d.grammar()
		if _, _, err := newLease(g, db).up(t.Context()); !errors.Is(err, ErrNewer) {
			t.Errorf("up = %v", err)
		}
	})
}

func TestStatus(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := session(t, url, awayFromUTC(url))
		want := []Migration{{Version: 1, Name: "roster"}, {Version: 2, Name: "operate"}, {Version: 3, Name: "runs"}, {Version: 4, Name: "reports"}, {Version: 5, Name: "queue_plan"}}
		got, err := Status(t.Context(), db, d)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("before (-want +got):\n%s", diff)
		}
		if _, _, err := Up(t.Context(), db, d); err != nil {
			t.Fatal(err)
		}
		got, err = Status(t.Context(), db, d)
		if err != nil || len(got) != len(want) || got[0].Name != "roster" || got[0].AppliedAt.Location() != time.UTC {
			t.Fatalf("after: %+v, %v", got, err)
		}
		if age := time.Since(got[0].AppliedAt).Abs(); age > time.Hour {
			t.Errorf("applied at %s, which is %s off", got[0].AppliedAt, age)
		}
	})
}

// awayFromUTC returns the statement that puts a session into another time zone, where there are such.
func awayFromUTC(url string) string {
	switch {
	case strings.HasPrefix(url, "postgres"):
		return `SET TIME ZONE 'Asia/Tokyo'`
	case strings.HasPrefix(url, "mysql"):
		return `SET time_zone = '+09:00'`
	default:
		return `SELECT 1`
	}
}

// A connection that may only read is enough to check, and to find nothing to do.
func TestReadOnly(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		readOnly := `SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY`
		switch {
		case strings.HasPrefix(url, "mysql"):
			readOnly = `SET SESSION TRANSACTION READ ONLY`
		case strings.HasPrefix(url, "sqlite"):
			readOnly = `PRAGMA query_only = ON`
		}
		reader, d := session(t, url, readOnly)
		if err := Check(t.Context(), reader, d); !errors.Is(err, ErrMissing) {
			t.Errorf("Check before: %v", err)
		}
		if _, _, err := Up(t.Context(), reader, d); err == nil || errors.Is(err, ErrMissing) {
			t.Errorf("Up without the right to create: %v", err)
		}
		migrated(t, url)
		if err := Check(t.Context(), reader, d); err != nil {
			t.Errorf("Check after: %v", err)
		}
		if _, _, err := Up(t.Context(), reader, d); err != nil {
			t.Errorf("Up with nothing to do: %v", err)
		}
	})
}

func TestUnreachableIsNotMissing(t *testing.T) {
	for _, url := range []string{
		"postgres://nobody@127.0.0.1:1/none?sslmode=disable", "mysql://nobody@127.0.0.1:1/none", "sqlite:/nonexistent/rota.db",
	} {
		db, d := open(t, url)
		_, _, up := Up(t.Context(), db, d)
		_, status := Status(t.Context(), db, d)
		for _, err := range []error{up, status, Check(t.Context(), db, d)} {
			var version *VersionError
			if err == nil || errors.As(err, &version) {
				t.Errorf("%s: %v", url, err)
			}
		}
	}
}

func TestEndedContext(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := open(t, url)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Check(ctx, db, d); !errors.Is(err, context.Canceled) {
			t.Errorf("Check = %v", err)
		}
		if _, _, err := Up(ctx, db, d); !errors.Is(err, context.Canceled) {
			t.Errorf("Up = %v", err)
		}
	})
}
