package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
)

// URL returns the database at postgres://user:password@host:5432/database?sslmode=verify-full, with the parameters of
// lib/pq behind the question mark, as far as they leave the roster intact. center.Open returns the error of a malformed URL.
func URL(raw string) sqldb.Database {
	u, err := sqldb.ParseURL(raw, "postgres://...", "postgres", "postgresql")
	if err != nil {
		return sqldb.Database{Err: err}
	}
	if u.Query, err = params.Check(u.Query); err != nil {
		return sqldb.Database{Err: err}
	}
	withSSLMode(u)
	cfg, err := pq.NewConfig(dsn(u))
	if err != nil {
		return sqldb.Database{Err: fmt.Errorf("database URL: %w", err)}
	}
	if err := checkOptions(cfg.Options); err != nil {
		return sqldb.Database{Err: err}
	}
	return sqldb.Database{
		Dialect: dialect,
		Address: u.Address(),
		Local:   loopback(u),
		Pool: func(r sqldb.Role, _ bool) (*sql.DB, error) {
			c, err := connector(dsn(u), r)
			if err != nil {
				return nil, err
			}
			return sql.OpenDB(c), nil
		},
		Probe: probe,
		Notes: func(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) { return notes(ctx, db, u) },
	}
}

// withSSLMode writes the sslmode that the URL leaves open: the default of lib/pq refuses a server without TLS, which is
// what runs on a developer's own machine.
func withSSLMode(u *sqldb.URL) {
	if u.Query.Has("sslmode") {
		return
	}
	mode := "require"
	if loopback(u) {
		mode = "disable"
	}
	u.Query.Set("sslmode", mode)
}

// loopback reports whether the server is on this host.
func loopback(u *sqldb.URL) bool {
	if host := u.Query.Get("host"); host != "" {
		return sqldb.Host{Name: host}.Loopback()
	}
	return u.Loopback()
}

// dsn returns the URL in the form keyword='value' of lib/pq, whose own parser prints passwords in its errors and knows
// one host. The parameters of the URL win.
func dsn(u *sqldb.URL) string {
	values := map[string]string{"user": u.User, "password": u.Password, "dbname": u.Database}
	values["host"], values["port"] = hosts(u.Hosts)
	for name := range u.Query {
		values[name] = u.Query.Get(name)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if value := values[name]; value != "" {
			list = append(list, name+"='"+escape.Replace(value)+"'")
		}
	}
	return strings.Join(list, " ")
}

var escape = strings.NewReplacer(`'`, `\'`, `\`, `\\`)

// hosts returns the hosts and their ports as lists. Without any port, that of the environment applies.
func hosts(list []sqldb.Host) (names, ports string) {
	named := slices.ContainsFunc(list, func(h sqldb.Host) bool { return h.Port != "" })
	for i, h := range list {
		sep := ","
		if i == 0 {
			sep = ""
		}
		names += sep + h.Name
		if named {
			ports += sep + cmp.Or(h.Port, defaultPort)
		}
	}
	return names, ports
}

const defaultPort = "5432"

// port returns the port of the first host.
func port(u *sqldb.URL) string {
	first := ""
	if len(u.Hosts) > 0 {
		first = u.Hosts[0].Port
	}
	return cmp.Or(u.Query.Get("port"), first, defaultPort)
}
