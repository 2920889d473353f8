package demo

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq" // the driver "postgres"
)

// database belongs to the demo alone.
type database struct {
	name string // without a password
	url  string
	drop func(context.Context) error
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
	schema := "rota_demo_" + strings.ToLower(rand.Text()[:8])
	redacted, cascade := u.Redacted(), ""
	var driver, dsn string
	switch u.Scheme {
	case "postgres", "postgresql":
		driver, dsn, cascade = "postgres", usePostgres(u, schema), " CASCADE"
	case "mysql":
		driver = "mysql"
		dsn, err = useMySQL(u, schema)
	default:
		err = fmt.Errorf("unknown scheme %q; want postgres or mysql", u.Scheme)
	}
	if err == nil {
		err = execute(ctx, driver, dsn, "CREATE SCHEMA "+schema) // on MySQL this creates a database
	}
	if err != nil {
		return nil, fmt.Errorf("--db %s: %w", redacted, err)
	}
	drop := func(ctx context.Context) error { return execute(ctx, driver, dsn, "DROP SCHEMA "+schema+cascade) }
	return &database{name: driver + ", schema " + schema, url: u.String(), drop: drop}, nil
}

// usePostgres returns the data source name of the server and changes u to that of the schema. Connections to this
// host need no TLS, as for center.
func usePostgres(u *url.URL, schema string) (dsn string) {
	q := u.Query()
	host := cmp.Or(q.Get("host"), u.Hostname())
	if !q.Has("sslmode") && (host == "localhost" || strings.HasPrefix(host, "/") || net.ParseIP(host).IsLoopback()) {
		q.Set("sslmode", "disable")
	}
	u.RawQuery = q.Encode()
	dsn = u.String()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return dsn
}

// useMySQL does the same for MySQL.
func useMySQL(u *url.URL, schema string) (dsn string, err error) {
	c, err := mysql.ParseDSN("tcp(" + u.Host + ")/?" + u.RawQuery)
	if err != nil {
		return "", err
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	u.Path = "/" + schema
	return c.FormatDSN(), nil
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, driver, dsn, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err = db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// createOrders makes the user's table of work. The statements are the same on every database.
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
