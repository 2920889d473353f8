// Package anydb opens rosters on any database that Rota supports, by the scheme of a URL. It links all drivers: the
// commands use it. A program that knows its database when it is built imports center/postgres, center/mysql or
// center/sqlite instead.
package anydb

import (
	"strings"

	"github.com/dutyrota/rota/center/mysql"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/sqldb"
)

// URL returns the database at a URL of one of the forms
//
//	postgres://user:password@host:5432/database?sslmode=verify-full
//	mysql://user:password@host:3306/database     (MySQL and MariaDB; mariadb:// is the same)
//	sqlite:/path/to/file.db                      (several processes of one host)
//	sqlite::memory:                              (one process, for tests)
//
// The query may hold parameters of the driver. center.Open returns the error of a malformed URL.
func URL(raw string) sqldb.Database {
	scheme, _, _ := strings.Cut(raw, ":")
	switch strings.ToLower(scheme) {
	case "sqlite":
		return sqlite.URL(raw) // the rest is a path, in which anything may stand
	case "postgres", "postgresql":
		return postgres.URL(raw)
	case "mysql", "mariadb":
		return mysql.URL(raw)
	}
	_, err := sqldb.ParseURL(raw, "postgres://..., mysql://..., mariadb://... or sqlite:FILE")
	return sqldb.Database{Err: err}
}
