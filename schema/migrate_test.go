package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/testdb"
)

var allRelations = []string{
	"schedule_assignment", "schedule_event", "schedule_failed_item", "schedule_queue", "schedule_run", "schedule_run_dep",
	"schedule_run_queue", "schedule_schema_lock", "schedule_schema_version", "schedule_server", "schedule_server_history",
	"schedule_task_after", "schedule_task_running", "schedule_task_type", "schedule_trigger",
}

func TestUp(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := open(t, url)
		for _, before := range []int64{0, Latest()} {
			from, to, err := Up(t.Context(), db, d)
			if err != nil || from != before || to != Latest() {
				t.Fatalf("Up = %d, %d, %v; want %d, %d", from, to, err, before, Latest())
			}
			complete(t, db, d)
		}
		if holders := texts(t, db, `SELECT holder FROM schedule_schema_lock`); !slices.Equal(holders, []string{""}) {
			t.Errorf("the lock is left to %q", holders)
		}
	})
}

// complete checks that the database has everything, once.
func complete(t *testing.T, db *sql.DB, d Dialect) {
	t.Helper()
	if diff := cmp.Diff(allRelations, relations(t, db, d)); diff != "" {
		t.Errorf("tables and views (-want +got):\n%s", diff)
	}
	if err := Check(t.Context(), db, d); err != nil {
		t.Error(err)
	}
	versions := texts(t, db, `SELECT version_id FROM schedule_schema_version ORDER BY id`)
	if len(versions) != int(Latest())+1 {
		t.Errorf("versions recorded: %v", versions)
	}
}

// A pool of one connection, as SQLite's writers have it, must not wait for itself.
func TestUpOneConnection(t *testing.T) {
	up := func(t *testing.T, url string) {
		db, d := open(t, url)
		db.SetMaxOpenConns(1)
		if _, _, err := Up(t.Context(), db, d); err != nil {
			t.Fatal(err)
		}
		complete(t, db, d)
	}
	testdb.Each(t, up)
	t.Run("memory", func(t *testing.T) { up(t, "sqlite::memory:") })
}

func TestUpManyHandles(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		manyStart(t, url, func() error {
			db, d, err := openURL(url)
			if err != nil {
				return err
			}
			defer db.Close()
			_, to, err := Up(t.Context(), db, d)
			if err == nil && to != Latest() {
				err = errors.New("Up returned before the schema was there")
			}
			return err
		})
	})
}

func TestUpManyProcesses(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		manyStart(t, url, func() error {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), upEnv+"="+url)
			out, err := cmd.CombinedOutput()
			return errors.Join(err, errors.New(string(out)))
		})
	})
}

func manyStart(t *testing.T, url string, start func() error) {
	t.Helper()
	var starters sync.WaitGroup
	for range 8 {
		starters.Go(func() {
			if err := start(); err != nil && err.Error() != "" {
				t.Error(err)
			}
		})
	}
	starters.Wait()
	db, d := open(t, url)
	complete(t, db, d)
}

// MySQL commits each statement of DDL by itself, so a process can die after any of them.
func TestUpAfterHalfAMigration(t *testing.T) {
	statements := slices.Clone(mysql.bookkeeping)
	for _, m := range known {
		statements = append(statements, upStatements(t, fmt.Sprintf("mysql/%05d_%s.sql", m.Version, m.Name))...)
	}
	for done := range len(statements) {
		db, d := open(t, testdb.URL(t, testdb.MySQL))
		db.SetMaxOpenConns(1) // a migration runs in one session
		for _, s := range statements[:done] {
			execute(t, db, s)
		}
		db.SetMaxOpenConns(0)
		if _, _, err := Up(t.Context(), db, d); err != nil {
			t.Fatalf("after %d statements: %v", done, err)
		}
		complete(t, db, d)
	}
}

func upStatements(t *testing.T, file string) []string {
	t.Helper()
	text, err := fs.ReadFile(files, file)
	if err != nil {
		t.Fatal(err)
	}
	statements := strings.Split(strings.TrimSpace(string(text)), ";\n")
	if len(statements) < 3 {
		t.Fatalf("%d statements in %s", len(statements), file)
	}
	return statements
}

// Elsewhere a migration that fails leaves nothing behind.
func TestUpIsAtomic(t *testing.T) {
	for _, kind := range []string{testdb.Postgres, testdb.SQLite} {
		t.Run(kind, func(t *testing.T) {
			db, d := open(t, testdb.URL(t, kind))
			execute(t, db, `CREATE TABLE schedule_event (id INTEGER)`)
			_, _, err := Up(t.Context(), db, d)
			if err == nil || !strings.Contains(err.Error(), "apply migration 00001_roster.sql: ") {
				t.Fatalf("Up over a foreign table: %v", err)
			}
			want := []string{"schedule_event", "schedule_schema_lock", versionTable}
			if diff := cmp.Diff(want, relations(t, db, d)); diff != "" {
				t.Errorf("left behind (-want +got):\n%s", diff)
			}
			execute(t, db, `DROP TABLE schedule_event`)
			if _, _, err := Up(t.Context(), db, d); err != nil {
				t.Fatal(err)
			}
			complete(t, db, d)
		})
	}
}

// A stranger's transaction holds SQLite's only lock for longer than busy_timeout.
func TestUpWhileBusy(t *testing.T) {
	url := testdb.URL(t, testdb.SQLite)
	stranger, _ := session(t, url, `BEGIN IMMEDIATE`)
	db, d := open(t, url)
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := Up(short, db, d); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Up while the database is locked: %v", err)
	}
	ended := make(chan error)
	go func() {
		_, _, err := Up(t.Context(), db, d)
		ended <- err
	}()
	execute(t, stranger, `ROLLBACK`)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	complete(t, db, d)
}

func TestDialectsHaveTheSameMigrations(t *testing.T) {
	for i, m := range known {
		if m.Version != int64(i+1) || m.Name == "" {
			t.Errorf("migration %d is %+v", i+1, m)
		}
	}
	for _, d := range []Dialect{MySQL, SQLite} {
		if diff := cmp.Diff(known, list(string(d))); diff != "" {
			t.Errorf("%s (-postgres +%[1]s):\n%s", d, diff)
		}
	}
}

func TestUnknownDialect(t *testing.T) {
	_, _, up := Up(t.Context(), nil, "oracle")
	_, status := Status(t.Context(), nil, "")
	for _, err := range []error{up, status, Check(t.Context(), nil, "Postgres")} {
		if err == nil || !strings.Contains(err.Error(), "unknown database dialect") {
			t.Error(err)
		}
	}
}
