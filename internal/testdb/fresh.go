package testdb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq" // the driver "postgres"
)

// fresh creates a database on the server for the time of the test and returns its URL.
func fresh(t testing.TB, server string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	name := "rota_test_" + strings.ToLower(rand.Text())
	if err := create(t.Context(), u, name); err != nil {
		t.Fatalf("create a database on %s: %v", u.Redacted(), err)
	}
	t.Cleanup(func() {
		// Not t.Context, which has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := drop(ctx, u, name); err != nil {
			t.Errorf("drop %s on %s: %v", name, u.Redacted(), err)
		}
	})
	own := *u
	own.Path = "/" + name
	return own.String()
}

func create(ctx context.Context, server *url.URL, name string) error {
	db, err := open(server)
	if err != nil {
		return err
	}
	// Closed at once: a test may look for leaked goroutines before it ends.
	defer db.Close()
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+name)
	return err
}

// drop drops the database. It cuts the connections to it first, lest one that a failed test left open,
// perhaps in a transaction, should hold it up.
func drop(ctx context.Context, server *url.URL, name string) error {
	db, err := open(server)
	if err != nil {
		return err
	}
	defer db.Close()
	force := " WITH (FORCE)"
	if server.Scheme == MySQL {
		force = ""
		if err := cut(ctx, db, name); err != nil {
			return err
		}
	}
	_, err = db.ExecContext(ctx, "DROP DATABASE "+name+force)
	return err
}

// cut kills the connections to a database of MariaDB, whose DROP DATABASE would wait for them.
func cut(ctx context.Context, db *sql.DB, name string) error {
	rows, err := db.QueryContext(ctx, "SELECT id FROM information_schema.processlist WHERE db = ? ORDER BY id", name)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		_, _ = db.ExecContext(ctx, fmt.Sprintf("KILL %d", id)) // fails if it has just ended by itself
	}
	return rows.Err()
}

func open(u *url.URL) (*sql.DB, error) {
	if u.Scheme == Postgres {
		return sql.Open("postgres", u.String())
	}
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.Passwd, _ = u.User.Password()
	return sql.Open("mysql", c.FormatDSN())
}
