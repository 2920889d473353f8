package postgres

import (
	"context"
	"database/sql"
	"net/url"

	"github.com/dutyrota/rota/internal/sqldb"
)

// URL returns the database at postgres://user:password@host:5432/database?sslmode=verify-full, whose query may hold
// parameters of lib/pq. center.Open returns the error of a malformed URL.
func URL(raw string) sqldb.Database {
	u, err := sqldb.ParseURL(raw, "postgres://...", "postgres", "postgresql")
	if err != nil {
		return sqldb.Database{Err: err}
	}
	withSSLMode(u)
	return sqldb.Database{
		Dialect: dialect,
		Address: u.Redacted(),
		Local:   sqldb.Loopback(u),
		Pool: func(r sqldb.Role, _ bool) (*sql.DB, error) {
			c, err := connector(u.String(), r)
			if err != nil {
				return nil, err
			}
			return sql.OpenDB(c), nil
		},
		Probe: probe,
		Notes: func(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) { return notes(ctx, db, u) },
	}
}

// withSSLMode sets sslmode unless the URL has it: the default of lib/pq refuses a server without TLS, and a developer's
// own server usually has none.
func withSSLMode(u *url.URL) {
	q := u.Query()
	if q.Has("sslmode") {
		return
	}
	mode := "require"
	if sqldb.Loopback(u) {
		mode = "disable"
	}
	q.Set("sslmode", mode)
	u.RawQuery = q.Encode()
}
