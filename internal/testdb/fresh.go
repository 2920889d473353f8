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

// fresh creates a database on the server and returns its URL. It is dropped when the test ends.
func fresh(t testing.TB, server string) string {
	t.Helper()
	url, drop, err := Create(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// t.Context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := drop(ctx); err != nil {
			t.Error(err)
		}
	})
	return url
}

// Create creates an empty database on the server at a URL, for programs that are not tests. It returns the URL of the
// database. remove cuts the connections that are still open to it and drops it.
func Create(ctx context.Context, server string) (own string, remove func(context.Context) error, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, err
	}
	name := "rota_test_" + strings.ToLower(rand.Text())
	if err := create(ctx, u, name); err != nil {
		return "", nil, fmt.Errorf("create a database on %s: %w", u.Redacted(), err)
	}
	at := *u
	at.Path = "/" + name
	return at.String(), func(ctx context.Context) error {
		if err := drop(ctx, u, name); err != nil {
			return fmt.Errorf("drop %s on %s: %w", name, u.Redacted(), err)
		}
		return nil
	}, nil
}

func create(ctx context.Context, server *url.URL, name string) error {
	db, err := open(server)
	if err != nil {
		return err
	}
	// Close at once: a test may look for leaked goroutines before it ends.
	defer db.Close()
	strategy := ""
	if server.Scheme == Postgres {
		if strategy, err = cheapest(ctx, db); err != nil {
			return err
		}
	}
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+name+strategy)
	return err
}

// cheapest returns the option with which PostgreSQL copies the files of its template. By default PostgreSQL 15
// and later write each page to the log: creating and dropping a database then takes three times the processor
// time. Older versions copy files and know no option.
func cheapest(ctx context.Context, db *sql.DB) (option string, err error) {
	var version int
	err = db.QueryRowContext(ctx, "SELECT CAST(current_setting('server_version_num') AS integer)").Scan(&version)
	if err != nil || version < 150000 {
		return "", err
	}
	return " STRATEGY FILE_COPY", nil
}

// drop drops the database. It first cuts the connections to it: a failed test may have left a transaction open that
// would block the drop.
func drop(ctx context.Context, server *url.URL, name string) error {
	db, err := open(server)
	if err != nil {
		return err
	}
	defer db.Close()
	force := " WITH (FORCE)"
	if server.Scheme != Postgres {
		force = ""
		if err := cut(ctx, db, name); err != nil {
			return err
		}
	}
	_, err = db.ExecContext(ctx, "DROP DATABASE "+name+force)
	return err
}

// cut kills the connections to a database of MySQL or MariaDB. DROP DATABASE would wait for them.
func cut(ctx context.Context, db *sql.DB, name string) error {
	sessions, err := processlist(ctx, db)
	if err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, "SELECT id FROM "+sessions+" WHERE db = ? ORDER BY id", name)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		_, _ = db.ExecContext(ctx, fmt.Sprintf("KILL %d", id)) // fails if the connection has just ended
	}
	return rows.Err()
}

// processlist returns the table of the sessions of a MySQL or a MariaDB server. MySQL has that of MariaDB, too, and
// cannot read it while a session runs a statement with a character of four bytes.
func processlist(ctx context.Context, db *sql.DB) (table string, err error) {
	err = db.QueryRowContext(ctx, `SELECT CASE WHEN VERSION() LIKE '%MariaDB%' THEN 'information_schema.processlist'
		ELSE 'performance_schema.processlist' END`).Scan(&table)
	return table, err
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
