package demo

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/sqldb"
)

// database is a database, or a schema on a server, that only the demo uses.
type database struct {
	name    string // without a password
	url     string
	drop    func(context.Context) error
	dropSQL string // the statement that drop executes on a server; empty for a file
}

// newDatabase creates a schema on the server at the URL, or chooses a file in the folder if there is no URL.
func newDatabase(ctx context.Context, server, folder string) (*database, error) {
	if server == "" {
		file := "sqlite:" + filepath.Join(folder, "rota.db")
		return &database{name: "SQLite", url: file, drop: func(context.Context) error { return nil }}, nil // it is part of the folder
	}
	u, err := url.Parse(server)
	if err != nil {
		return nil, errors.New("--db: not a URL such as postgres://user@host/database") // err quotes the password
	}
	name := "rota_demo_" + strings.ToLower(rand.Text()[:8])
	own, cascade, err := inSchema(*u, name)
	if err != nil {
		return nil, fmt.Errorf("--db: %w", err)
	}
	if err := execute(ctx, u, "CREATE SCHEMA "+name); err != nil { // on MySQL this creates a database
		return nil, fmt.Errorf("--db %s: %w", address(*u), err)
	}
	statement := "DROP SCHEMA " + name + cascade
	drop := func(ctx context.Context) error { return execute(ctx, u, statement) }
	return &database{name: u.Scheme + ", schema " + name, url: own.String(), drop: drop, dropSQL: statement}, nil
}

// end drops the schema. If the user keeps the folder, whose rota.yaml names the schema, it stays, and end prints how to
// drop it.
func (d *database) end(ctx context.Context, out io.Writer, f *folder) error {
	if !f.keep || !f.used {
		return d.drop(ctx)
	}
	if d.dropSQL == "" {
		return nil
	}
	_, err := fmt.Fprintf(out, "Schema kept; remove it with: %s\n", d.dropSQL)
	return err
}

// address returns the URL without its password, which may also be a parameter.
func address(u url.URL) string {
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	u.RawQuery = ""
	return u.String()
}

// inSchema returns the URL of a schema on the server at u, and how DROP SCHEMA ends there.
func inSchema(u url.URL, schema string) (own url.URL, cascade string, err error) {
	switch u.Scheme {
	case "postgres", "postgresql":
		q := u.Query()
		q.Set("search_path", schema)
		u.RawQuery = q.Encode()
		return u, " CASCADE", nil
	case "mysql", "mariadb":
		u.Path = "/" + schema
		return u, "", nil
	}
	return u, "", errors.New("unknown scheme; want postgres, mysql or mariadb")
}

// execute runs one statement on the server at u, on a connection of its own.
func execute(ctx context.Context, u *url.URL, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	at := *u
	if at.Scheme != "postgres" && at.Scheme != "postgresql" && strings.Trim(at.Path, "/") == "" {
		at.Path = "/information_schema" // each user may connect to it
	}
	d := anydb.URL(at.String())
	if d.Err != nil {
		return d.Err
	}
	db, err := d.Pool(sqldb.RoleDealers, sqldb.PoolOptions{})
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err = db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// createOrders creates the user's table of work. The statements are the same on every database.
func createOrders(ctx context.Context, db *sql.DB) error {
	statements := []string{
		`CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, state VARCHAR(10) NOT NULL, settled_by VARCHAR(150), effects INTEGER NOT NULL)`,
		`CREATE INDEX orders_state ON orders (state, id)`,
		`INSERT INTO orders (id, state, effects) VALUES (1, 'NEW', 0)`,
	}
	for n := 1; n < orderCount; n *= 2 {
		const double = `INSERT INTO orders (id, state, effects) SELECT id + %d, state, effects FROM orders WHERE id <= %d`
		statements = append(statements, fmt.Sprintf(double, n, orderCount-n))
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
