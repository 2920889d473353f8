package demo

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq" // the driver "postgres"
)

// server is a PostgreSQL or MySQL server of the user's.
type server struct {
	title  string // of the product
	noun   string // what holds tables and is made for the demo
	driver string
	dsn    string
	within func(name string) string // the URL of such a holder
	drop   func(ctx context.Context, name string) error
}

func newServer(u *url.URL) (*server, error) {
	switch u.Scheme {
	case "postgres", "postgresql":
		return newPostgres(u), nil
	case "mysql":
		return newMySQL(u)
	}
	return nil, fmt.Errorf("--db %s: unknown scheme %q; want postgres, mysql or sqlite", u.Redacted(), u.Scheme)
}

func newPostgres(u *url.URL) *server {
	s := &server{title: "PostgreSQL", noun: "SCHEMA", driver: "postgres"}
	s.within = func(name string) string {
		own := *u
		q := own.Query()
		q.Set("search_path", name)
		own.RawQuery = q.Encode()
		return own.String()
	}
	s.drop = func(ctx context.Context, name string) error { return s.exec(ctx, "DROP SCHEMA "+name+" CASCADE") }
	admin := *u
	if q := admin.Query(); !q.Has("sslmode") && onLoopback(u) {
		q.Set("sslmode", "disable") // as center does, for the demo's other connections
		admin.RawQuery = q.Encode()
	}
	s.dsn = admin.String()
	return s
}

func onLoopback(u *url.URL) bool {
	host := u.Hostname()
	if h := u.Query().Get("host"); h != "" {
		host = h
	}
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasPrefix(host, "/") || ip != nil && ip.IsLoopback()
}

func newMySQL(u *url.URL) (*server, error) {
	s := &server{title: "MySQL", noun: "DATABASE", driver: "mysql"}
	cfg, err := mysql.ParseDSN("tcp(" + u.Host + ")/?" + u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("--db %s: %w", u.Redacted(), err)
	}
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	s.dsn = cfg.FormatDSN()
	s.within = func(name string) string {
		own := *u
		own.Path = "/" + name
		return own.String()
	}
	s.drop = func(ctx context.Context, name string) error { return s.exec(ctx, "DROP DATABASE "+name) }
	return s, nil
}

// exec runs one statement on a connection of its own.
func (s *server) exec(ctx context.Context, statement string) error {
	db, err := sql.Open(s.driver, s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}
