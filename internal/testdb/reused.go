package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// EachReused is [Each] for tests that need the roster's tables and leave them as the migrations made them. See [Reused].
func EachReused(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	for _, kind := range Kinds(t) {
		t.Run(kind, func(t *testing.T) { f(t, Reused(t, kind)) })
	}
}

// Reused is [URL], except that the database may have been used by another test of the process: it is empty, or has the
// roster's tables without rows. To make and drop these tables takes MySQL 300 ms of processor time, and PostgreSQL 120.
// When the test ends, Reused cuts the connections, deletes all rows of the roster and drops whatever else the test has
// made in the database. Numbers of events go on where they were. A test that changes the roster's tables needs [URL].
// The TestMain of the package calls [DropReused].
func Reused(t testing.TB, kind string) string {
	t.Helper()
	skipUnwanted(t, kind)
	if clearing[kind] == "" {
		return URL(t, kind)
	}
	d, err := takeIdle(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// t.Context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() { // it may have changed what the next test relies on
			err = d.remove(ctx)
		} else if err = d.clear(ctx, kind); err == nil {
			idle.Lock()
			defer idle.Unlock()
			idle.of[kind] = append(idle.of[kind], d)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return d.url
}

// reused is a database that tests use one after the other.
type reused struct {
	url    string
	remove func(context.Context) error
}

// idle is the databases that no test uses now, by kind.
var idle = struct {
	sync.Mutex
	of map[string][]reused
}{of: map[string][]reused{}}

// takeIdle returns a database that no other test uses, and makes one if there is none.
func takeIdle(ctx context.Context, kind string) (d reused, err error) {
	idle.Lock()
	defer idle.Unlock()
	if list := idle.of[kind]; len(list) > 0 {
		idle.of[kind] = list[:len(list)-1]
		return list[len(list)-1], nil
	}
	server, err := shared[kind]()
	if err != nil {
		return d, err
	}
	d.url, d.remove, err = Create(ctx, server.URL())
	return d, err
}

// DropReused drops the databases of [Reused] after all tests, and ends the process with their exit code, or with 1 if it
// cannot: see the package goleak, Cleanup.
func DropReused(code int) {
	idle.Lock()
	defer idle.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, list := range idle.of {
		for _, d := range list {
			if err := d.remove(ctx); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
	}
	os.Exit(code)
}

// clearing selects, by kind, the statements that clear a database. The tables schedule_schema_... say which migrations
// have been made, and keep their rows.
var clearing = map[string]string{
	Postgres: `SELECT CASE WHEN relname LIKE 'schedule\_%' THEN 'DELETE FROM ' || relname
			ELSE CASE relkind WHEN 'v' THEN 'DROP VIEW IF EXISTS ' ELSE 'DROP TABLE IF EXISTS ' END || quote_ident(relname) || ' CASCADE' END
		FROM pg_class WHERE relnamespace = CAST('public' AS regnamespace) AND relkind IN ('r', 'p', 'v')
			AND relname NOT LIKE 'schedule\_schema%' AND (relkind <> 'v' OR relname NOT LIKE 'schedule\_%')
		UNION ALL SELECT 'DROP TYPE ' || quote_ident(typname) || ' CASCADE' FROM pg_type
		WHERE typnamespace = CAST('public' AS regnamespace) AND typtype IN ('d', 'e')`,
	MySQL: mysqlClearing, MariaDB: mysqlClearing,
}

const mysqlClearing = "SELECT CONCAT(CASE WHEN table_name LIKE 'schedule\\_%' THEN 'DELETE FROM ' " +
	"WHEN table_type = 'VIEW' THEN 'DROP VIEW ' ELSE 'DROP TABLE ' END, '`', table_name, '`') FROM information_schema.tables " +
	"WHERE table_schema = DATABASE() AND table_name NOT LIKE 'schedule\\_schema%' " +
	"AND (table_type <> 'VIEW' OR table_name NOT LIKE 'schedule\\_%')"

// clear cuts the connections of the last test, whose transactions would block it, and clears the database.
func (d reused) clear(ctx context.Context, kind string) error {
	u, err := url.Parse(d.url)
	if err != nil {
		return err
	}
	if err := cutAll(ctx, u); err != nil {
		return fmt.Errorf("cut the connections to %s: %w", u.Redacted(), err)
	}
	db, err := open(u)
	if err != nil {
		return err
	}
	defer db.Close()
	statements, err := texts(ctx, db, clearing[kind])
	if err != nil {
		return fmt.Errorf("list what %s has: %w", u.Redacted(), err)
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s in %s: %w", statement, u.Redacted(), err)
		}
	}
	return nil
}

// cutAll kills the connections to a database, without one of its own to it.
func cutAll(ctx context.Context, of *url.URL) error {
	server, name := *of, strings.TrimPrefix(of.Path, "/")
	server.Path = "/postgres"
	if of.Scheme != Postgres {
		server.Path = "/"
	}
	db, err := open(&server)
	if err != nil {
		return err
	}
	defer db.Close()
	if of.Scheme != Postgres {
		return cut(ctx, db, name)
	}
	_, err = db.ExecContext(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
	return err
}

// texts returns the rows of a query of one text.
func texts(ctx context.Context, db *sql.DB, query string) (list []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}
