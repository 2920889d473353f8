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
	name   string // without a password
	url    string
	server *url.URL
	drop   string // the statement that drops the schema; empty for a file
}

// newDatabase creates a schema on the server at the URL, or chooses a file in the folder if there is no URL.
func newDatabase(ctx context.Context, server, folder string) (*database, error) {
	if server == "" {
		return &database{name: "SQLite", url: "sqlite:" + filepath.Join(folder, "rota.db")}, nil // it is part of the folder
	}
	u, err := url.Parse(server)
	if err != nil {
		return nil, errors.New("--db: not a URL such as postgres://user@host/database") // err quotes the password
	}
	own, name := *u, "rota_demo_"+strings.ToLower(rand.Text()[:8])
	d := &database{name: u.Scheme + ", schema " + name, server: u, drop: "DROP SCHEMA " + name}
	switch u.Scheme {
	case "postgres", "postgresql":
		q := u.Query()
		q.Set("search_path", name)
		own.RawQuery = q.Encode()
		d.drop += " CASCADE"
	case "mysql", "mariadb": // where a schema is a database
		own.Path = "/" + name
	default:
		return nil, errors.New("--db: unknown scheme; want postgres, mysql or mariadb")
	}
	d.url = own.String()
	if err := execute(ctx, u, "CREATE SCHEMA "+name); err != nil {
		return nil, fmt.Errorf("--db %s://%s@%s%s: %w", u.Scheme, u.User.Username(), u.Host, u.Path, err)
	}
	return d, nil
}

// end drops the schema. If the user keeps the folder, whose rota.yaml names the schema, it stays, and end prints how to
// drop it.
func (d *database) end(ctx context.Context, out io.Writer, f *folder) error {
	if d.drop == "" {
		return nil
	}
	if !f.keep || !f.used {
		return execute(ctx, d.server, d.drop)
	}
	_, err := fmt.Fprintf(out, "Schema kept; remove it with: %s\n", d.drop)
	return err
}

// execute runs one statement on the server at u, on a connection of its own.
func execute(ctx context.Context, u *url.URL, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	at := *u
	if !strings.HasPrefix(at.Scheme, "postgres") && strings.Trim(at.Path, "/") == "" {
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
		`CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, state VARCHAR(10) NOT NULL, settled_by VARCHAR(150),
			effects INTEGER NOT NULL)`,
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
