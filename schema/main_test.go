package schema

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"
)

// upEnv makes this binary a process that migrates the database of the URL and ends.
const upEnv = "ROTA_SCHEMA_TEST_UP"

func TestMain(m *testing.M) {
	if target := os.Getenv(upEnv); target != "" {
		if err := upProcess(target); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func upProcess(target string) error {
	db, d, err := openURL(target)
	if err != nil {
		return err
	}
	defer db.Close()
	_, _, err = Up(context.Background(), db, d)
	return err
}

// openURL has short waits on SQLite, so that it is the code under test that has to wait.
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
	return db, MySQL, err
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

// session returns a handle with one connection, on which it has run the statement.
func session(t *testing.T, target, statement string) (*sql.DB, Dialect) {
	t.Helper()
	db, d := open(t, target)
	db.SetMaxOpenConns(1)
	execute(t, db, statement)
	return db, d
}

// execute runs a statement with ? in it.
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

// relations returns the tables and views of the database.
func relations(t *testing.T, db *sql.DB, d Dialect) []string {
	t.Helper()
	return texts(t, db, map[Dialect]string{
		Postgres: `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1`,
		MySQL:    `SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1`,
		SQLite:   `SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1`,
	}[d])
}
