package schema

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"

	"github.com/dutyrota/rota/internal/testdb"
)

// These variables make this binary a process that migrates the database of the URL to a version, and ends.
const (
	upEnv     = "ROTA_SCHEMA_TEST_UP"
	latestEnv = "ROTA_SCHEMA_TEST_LATEST"
)

func TestMain(m *testing.M) {
	if target := os.Getenv(upEnv); target != "" {
		if err := upProcess(target, os.Getenv(latestEnv)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	testdb.EveryEngine()
	goleak.VerifyTestMain(m)
}

func upProcess(target, latest string) error {
	version, err := strconv.ParseInt(latest, 10, 64)
	if err != nil {
		return err
	}
	if known, err = withLater(version); err != nil {
		return err
	}
	db, d, err := openURL(target)
	if err != nil {
		return err
	}
	defer db.Close()
	_, _, err = Up(context.Background(), db, d)
	return err
}

// openURL opens a handle. On SQLite its busy_timeout is short, so that the code under test has to wait.
func openURL(target string) (*sql.DB, Dialect, error) {
	if file, ok := strings.CutPrefix(target, "sqlite:"); ok {
		db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10)")
		return db, SQLite, err
	}
	u, err := url.Parse(target)
	if err != nil {
		return nil, "", err
	}
	if u.Scheme == string(Postgres) {
		db, err := sql.Open("postgres", target)
		return db, Postgres, err
	}
	c := driver.NewConfig()
	c.Net, c.Addr, c.User, c.DBName, c.ParseTime = "tcp", u.Host, u.User.Username(), strings.TrimPrefix(u.Path, "/"), true
	c.Passwd, _ = u.User.Password()
	db, err := sql.Open("mysql", c.FormatDSN())
	if err != nil {
		return nil, "", err
	}
	d, version := MySQL, ""
	// A server that cannot be asked has the statements of MySQL, too.
	if db.QueryRow("SELECT VERSION()").Scan(&version) == nil && strings.Contains(version, "MariaDB") {
		d = MariaDB
	}
	return db, d, nil
}

// open returns a handle that is closed before the database is dropped.
func open(t *testing.T, target string) (*sql.DB, Dialect) {
	t.Helper()
	db, d, err := openURL(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, d
}

// migrated returns a handle on a database with the newest schema.
func migrated(t *testing.T, target string) (*sql.DB, Dialect) {
	t.Helper()
	db, d := open(t, target)
	if _, _, err := Up(t.Context(), db, d); err != nil {
		t.Fatal(err)
	}
	return db, d
}

// inMemory returns a handle on a database of SQLite in memory with the newest schema.
func inMemory(t *testing.T) *sql.DB {
	t.Helper()
	db, d := session(t, "sqlite::memory:", `SELECT 1`)
	if _, _, err := Up(t.Context(), db, d); err != nil {
		t.Fatal(err)
	}
	return db
}

// session returns a handle with one connection, on which it has run the statement.
func session(t *testing.T, target, statement string) (*sql.DB, Dialect) {
	t.Helper()
	db, d := open(t, target)
	db.SetMaxOpenConns(1)
	execute(t, db, statement)
	return db, d
}

// execute runs a statement whose parameters are written as ?.
func execute(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if strings.Contains(fmt.Sprintf("%T", db.Driver()), "pq.") {
		query = dollars(query)
	}
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// texts returns the first column of a query.
func texts(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// columnsOf returns the columns of a table or view, in their order.
func columnsOf(t *testing.T, db *sql.DB, table string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT * FROM `+table+` WHERE 1 = 0`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err := cmp.Or(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	return columns
}

// layout returns the columns of each table and view.
func layout(t *testing.T, db *sql.DB, d Dialect) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, relation := range relations(t, db, d) {
		all[relation] = columnsOf(t, db, relation)
	}
	return all
}

// relations returns the tables and views of the database.
func relations(t *testing.T, db *sql.DB, d Dialect) []string {
	t.Helper()
	return texts(t, db, map[Dialect]string{
		Postgres: `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1`,
		MySQL:    `SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1`,
		SQLite:   `SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1`,
	}[d.Family()])
}

func fileName(g *grammar, m Migration) string {
	return fmt.Sprintf("%s/%05d_%s.sql", g.dir, m.Version, m.Name)
}
