package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/testdb"
)

func TestCheckMissing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, d := open(t, url)
		const want = `the database has no Rota tables: run "rota migrate up"`
		refused(t, db, d, ErrMissing, want)
		if found := relations(t, db, d); len(found) != 0 {
			t.Errorf("Check and Status created %v", found)
		}
		for _, s := range bookkeeping(t, d) { // a process died before the first migration
			execute(t, db, s)
		}
		refused(t, db, d, ErrMissing, want)
	})
}

func bookkeeping(t *testing.T, d Dialect) []string { return grammarOf(t, d).bookkeeping }

func grammarOf(t *testing.T, d Dialect) *grammar {
	t.Helper()
	g, err := d.grammar()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// refused checks what Check returns, and that Status returns no error.
func refused(t *testing.T, db *sql.DB, d Dialect, want error, message string) {
	t.Helper()
	err := Check(t.Context(), db, d)
	if err == nil || err.Error() != message {
		t.Errorf("Check = %v, want %s", err, message)
	}
	for _, sentinel := range []error{ErrMissing, ErrOlder, ErrNewer, ErrVoid} {
		if errors.Is(err, sentinel) != errors.Is(want, sentinel) {
			t.Errorf("errors.Is(%v, %v) = %t", err, sentinel, errors.Is(err, sentinel))
		}
	}
	if _, err := Status(t.Context(), db, d); err != nil {
		t.Error(err)
	}
}

func TestCheckOlder(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := migrated(t, url)
		TeachLater(t, own+1)
		message := fmt.Sprintf(`the database's schema is version %d, this program needs %d: run "rota migrate up"`, own, own+1)
		refused(t, db, d, ErrOlder, message)
		status, err := Status(t.Context(), db, d)
		if err != nil || len(status) != len(known.steps) || status[own-1].AppliedAt.IsZero() || !status[own].AppliedAt.IsZero() {
			t.Errorf("Status = %+v, %v", status, err)
		}
	})
}

// A rolling upgrade migrates the schema first, and then replaces the programs one after the other. Older programs may
// restart meanwhile.
func TestNewerSchemaThatAllowsThisProgram(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, d := migrated(t, url)
		execute(t, db, `INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (999, TRUE)`)
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

// An answer that does not come, or cannot be read, is no reason to install a newer program: Open waits for the database.
func TestNewerSchemaThatDoesNotAnswer(t *testing.T) {
	db, d := migrated(t, testdb.URL(t, testdb.SQLite)) // it keeps a text where the others refuse it
	execute(t, db, `INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (999, TRUE)`)
	execute(t, db, `UPDATE schedule_schema_lock SET oldest_companion = 'none'`)
	if err := Check(t.Context(), db, d); err == nil || errors.Is(err, ErrNewer) {
		t.Errorf("error %v, want that of the read", err)
	}
}

// Each version of the schema, the synthetic ones included, allows the programs that the head of its newest file names,
// and at least those of the version before.
func TestOlderProgramsBesideASchema(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := open(t, url)
		for latest := int64(1); latest <= own+2; latest++ {
			TeachLater(t, latest)
			if _, _, err := Up(t.Context(), db, d); err != nil {
				t.Fatal(err)
			}
			oldest := oldestCompanion(t, d)
			if oldest > max(latest-1, 1) {
				t.Errorf("schema %d refuses programs of %d: the previous version must run beside it", latest, latest-1)
			}
			for program := int64(1); program <= latest; program++ {
				TeachLater(t, program)
				var want error
				if program < oldest {
					want = ErrNewer
				}
				if err := Check(t.Context(), db, d); !errors.Is(err, want) {
					t.Errorf("a program of schema %d on %d, with oldest companion %d: %v, want %v", program, latest, oldest, err, want)
				}
			}
		}
	})
}

// oldestCompanion returns the version that the head of the newest migration names. A synthetic one may name that of the
// version before.
func oldestCompanion(t *testing.T, d Dialect) (version int64) {
	t.Helper()
	for _, step := range slices.Backward(known.steps) {
		text, err := fs.ReadFile(known.files, fileName(grammarOf(t, d), step))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "-- Oldest companion: ")
		if step.Version > own && strings.HasPrefix(rest, "that of the version before.") {
			continue
		}
		if _, err := fmt.Sscanf(rest, "version %d", &version); err != nil {
			t.Fatalf("the head of %s does not name the oldest version that may run beside it: %v", step.Name, err)
		}
		break
	}
	return version
}

func TestNewerIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, d := migrated(t, url)
		execute(t, db, `INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (999, TRUE)`)
		execute(t, db, `DROP VIEW schedule_assignment`) // as a newer version may do
		execute(t, db, `DROP TABLE schedule_schema_lock`)
		message := fmt.Sprintf(`the database's schema is version 999, this program knows up to %d: install a newer rota`, Latest())
		refused(t, db, d, ErrNewer, message)
		before := relations(t, db, d)
		from, to, err := Up(t.Context(), db, d)
		if !errors.Is(err, ErrNewer) || err.Error() != message || from != 999 || to != 999 {
			t.Errorf("Up = %d, %d, %v", from, to, err)
		}
		if diff := cmp.Diff(before, relations(t, db, d)); diff != "" {
			t.Errorf("Up changed (-before +after):\n%s", diff)
		}
		status, err := Status(t.Context(), db, d)
		if last := len(status) - 1; err != nil || last != len(known.steps) || status[last].Version != 999 || status[last].Name != "" || status[last].AppliedAt.IsZero() {
			t.Errorf("Status = %+v, %v", status, err)
		}
	})
}

// Another process migrates to a newer version while this one waits for the lease.
func TestNewerUnderTheLeaseIsRefused(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		db, d := migrated(t, url)
		execute(t, db, `INSERT INTO schedule_schema_version (version_id, is_applied) VALUES (999, TRUE)`)
		g, _ := d.grammar()
		if _, _, err := newLease(g, db).up(t.Context()); !errors.Is(err, ErrNewer) {
			t.Errorf("up = %v", err)
		}
	})
}

// A connection that may only read is enough for Check, and for Up if nothing is pending.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
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
			t.Errorf("Up with nothing pending: %v", err)
		}
	})
}

func TestUnreachableIsNotMissing(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
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
