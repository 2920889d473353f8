package mysql

import (
	"database/sql"

	"github.com/dutyrota/rota/internal/sqldb"
)

// URL returns the database at mysql://user:password@host:3306/database, with the parameters of go-sql-driver/mysql
// behind the question mark, as far as they leave the roster intact; socket=FILE connects to a Unix socket. center.Open returns the error of a malformed URL.
func URL(raw string) sqldb.Database {
	u, err := sqldb.ParseURL(raw, "mysql://...", "mysql")
	if err != nil {
		return sqldb.Database{Err: err}
	}
	query, err := params.Check(u.Query())
	if err != nil {
		return sqldb.Database{Err: err}
	}
	u.RawQuery = query.Encode()
	return sqldb.Database{
		Dialect: dialect,
		Address: u.Redacted(),
		Local:   sqldb.Loopback(u),
		Pool: func(r sqldb.Role, _ bool) (*sql.DB, error) {
			c, err := connector(u, r)
			if err != nil {
				return nil, err
			}
			return sql.OpenDB(c), nil
		},
		Probe:       probe,
		CheckTables: checkTables,
		Notes:       notes,
	}
}
