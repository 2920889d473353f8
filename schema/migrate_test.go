package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/testdb"
)

func TestUp(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := open(t, url)
		step := func(from, to int64) {
			t.Helper()
			gotFrom, gotTo, err := Up(t.Context(), db, d)
			if err != nil || gotFrom != from || gotTo != to {
				t.Fatalf("Up = %d, %d, %v; want %d, %d", gotFrom, gotTo, err, from, to)
			}
			complete(t, db, d)
		}
		step(0, own)
		step(own, own)
		TeachLater(t, own+1)
		step(own, own+1)
		TeachLater(t, own+2)
		step(own+1, own+2)
		if holders := texts(t, db, `SELECT holder FROM schedule_schema_lock`); !slices.Equal(holders, []string{""}) {
			t.Errorf("the lease is still held by %q", holders)
		}
	})
}

func TestUpAppliesAllMigrationsAtOnce(t *testing.T) {
	TeachLater(t, own+2)
	testdb.Each(t, func(t *testing.T, url string) {
		db, d := open(t, url)
		if from, to, err := Up(t.Context(), db, d); err != nil || from != 0 || to != own+2 {
			t.Fatalf("Up = %d, %d, %v", from, to, err)
		}
		complete(t, db, d)
	})
}

// complete checks that the database has all tables and views with their columns, and each version recorded once.
func complete(t *testing.T, db *sql.DB, d Dialect) {
	t.Helper()
	if diff := cmp.Diff(layout(t, inMemory(t), SQLite), layout(t, db, d)); diff != "" {
		t.Errorf("tables and views (-want +got):\n%s", diff)
	}
	if err := Check(t.Context(), db, d); err != nil {
		t.Error(err)
	}
	versions := texts(t, db, `SELECT version_id FROM schedule_schema_version ORDER BY id`)
	if len(versions) != int(Latest())+1 {
		t.Errorf("recorded versions: %v", versions)
	}
}

// Up on a pool of one connection, as SQLite's writers have it, must not wait for its own connection.
func TestUpOneConnection(t *testing.T) {
	TeachLater(t, own+1)
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
			cmd.Env = append(os.Environ(), upEnv+"="+url, latestEnv+"="+strconv.FormatInt(Latest(), 10))
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	})
}

// manyStart calls start many times at once on an empty database, and again with a later version of the schema.
func manyStart(t *testing.T, url string, start func() error) {
	t.Helper()
	for _, latest := range []int64{own, own + 1} {
		TeachLater(t, latest)
		var starters sync.WaitGroup
		for range 8 {
			starters.Go(func() {
				if err := start(); err != nil {
					t.Error(err)
				}
			})
		}
		starters.Wait()
		db, d := open(t, url)
		complete(t, db, d)
	}
}

// MySQL commits each DDL statement by itself, so a process can die after any of them.
func TestUpAfterHalfAMigration(t *testing.T) {
	TeachLater(t, own+2)
	statements := slices.Clone(mysql.bookkeeping)
	for _, m := range known.steps {
		statements = append(statements, statementsOf(t, fileName(&mysql, m))...)
	}
	if len(statements) < 20 {
		t.Fatalf("%d statements", len(statements))
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

var endOfStatement = regexp.MustCompile(`;( *--.*)?\n`)

func statementsOf(t *testing.T, file string) []string {
	t.Helper()
	text, err := fs.ReadFile(known.files, file)
	if err != nil {
		t.Fatal(err)
	}
	return endOfStatement.Split(strings.TrimSpace(string(text)), -1)
}

// On PostgreSQL and SQLite a migration that fails leaves nothing behind.
func TestUpIsAtomic(t *testing.T) {
	for _, kind := range []string{testdb.Postgres, testdb.SQLite} {
		t.Run(kind, func(t *testing.T) {
			db, d := open(t, testdb.URL(t, kind))
			fails := func(from int64, file string, left ...string) {
				t.Helper()
				gotFrom, to, err := Up(t.Context(), db, d)
				if err == nil || !strings.Contains(err.Error(), "apply migration "+file+": ") || gotFrom != from || to != from {
					t.Fatalf("Up = %d, %d, %v", gotFrom, to, err)
				}
				if diff := cmp.Diff(left, relations(t, db, d)); diff != "" {
					t.Errorf("left behind (-want +got):\n%s", diff)
				}
			}
			execute(t, db, `CREATE TABLE schedule_event (id INTEGER)`)
			fails(0, "00001_roster.sql", "schedule_event", "schedule_schema_lock", versionTable)
			execute(t, db, `DROP TABLE schedule_event`)
			if _, _, err := Up(t.Context(), db, d); err != nil {
				t.Fatal(err)
			}
			complete(t, db, d)
			all := relations(t, db, d)

			TeachLater(t, own+1)
			execute(t, db, `ALTER TABLE schedule_queue ADD COLUMN later INTEGER`)
			fails(own, fmt.Sprintf("%05d_later.sql", own+1), all...)
			execute(t, db, `ALTER TABLE schedule_queue DROP COLUMN later`)
			if _, _, err := Up(t.Context(), db, d); err != nil {
				t.Fatal(err)
			}
			complete(t, db, d)
		})
	}
}

// A foreign transaction holds SQLite's only lock for longer than busy_timeout.
func TestUpWhileBusy(t *testing.T) {
	t.Parallel()
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

func TestUnknownDialect(t *testing.T) {
	t.Parallel()
	_, _, up := Up(t.Context(), nil, "oracle")
	_, status := Status(t.Context(), nil, "")
	for _, err := range []error{up, status, Check(t.Context(), nil, "Postgres")} {
		if err == nil || !strings.Contains(err.Error(), "unknown database dialect") {
			t.Error(err)
		}
	}
}
