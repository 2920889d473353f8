package mysql

import (
	"context"
	"database/sql"

	"github.com/dutyrota/rota/internal/sqldb"
)

// URL returns the database at mysql://user:password@host:3306/database, or mariadb://..., with the parameters of
// go-sql-driver/mysql behind the question mark, as far as they leave the roster intact; socket=FILE connects to a
// Unix socket. A list of hosts, host1:3306,host2:3306, is tried in order; a read-only host is passed over. Off this
// host the connection is encrypted (tls=skip-verify), unless the URL says otherwise: tls=true also verifies the
// server, tls=false does without TLS. center.Open returns the error of a malformed URL.
func URL(raw string) sqldb.Database {
	u, err := sqldb.ParseURL(raw, "mysql://...", "mysql", "mariadb")
	if err != nil {
		return sqldb.Database{Err: err}
	}
	if u.Query, err = params.Check(u.Query); err != nil {
		return sqldb.Database{Err: err}
	}
	if _, err := newHosts(u, sqldb.RoleStore, sqldb.PoolOptions{}, nil); err != nil {
		return sqldb.Database{Err: err}
	}
	return sqldb.Database{
		Dialect: dialect,
		Address: u.Address(),
		Local:   local(u),
		Pool: func(r sqldb.Role, o sqldb.PoolOptions) (*sql.DB, error) {
			c, err := connector(u, r, o)
			if err != nil {
				return nil, err
			}
			return sql.OpenDB(c), nil
		},
		Probe:       probe,
		CheckTx:     checkTx,
		CheckTables: checkTables,
		Notes: func(ctx context.Context, db *sql.DB) ([]sqldb.Note, error) {
			list, err := notes(ctx, db)
			return append(list, tlsNote(u)), err
		},
		Node: node,
	}
}
