// Package anydb opens rosters on any database that Rota supports, by the scheme of a URL. It links all drivers: the
// commands use it. A program that knows its database when it is built imports center/postgres, center/mysql or
// center/sqlite instead.
package anydb

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/dutyrota/rota/center/mysql"
	"github.com/dutyrota/rota/center/postgres"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/sqldb"
)

// URL returns the database at a URL of one of the forms
//
//	postgres://user:password@host:5432/database?sslmode=verify-full
//	mysql://user:password@host:3306/database     (MySQL and MariaDB)
//	sqlite:/path/to/file.db                      (several processes of one host)
//	sqlite::memory:                              (one process, for tests)
//
// The query may hold parameters of the driver. center.Open returns the error of a malformed URL.
func URL(raw string) sqldb.Database {
	if strings.HasPrefix(raw, "sqlite:") {
		return sqlite.URL(raw) // the rest is a path, which url.Parse may refuse
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse quotes the URL with its password.
		return sqldb.Database{Err: fmt.Errorf("database URL: not a URL; want postgres://..., mysql://... or sqlite:FILE")}
	}
	switch u.Scheme {
	case "postgres", "postgresql":
		return postgres.URL(raw)
	case "mysql":
		return mysql.URL(raw)
	case "":
		err = fmt.Errorf("database URL %q: no scheme; want postgres://..., mysql://... or sqlite:FILE", u.Redacted())
	default:
		err = fmt.Errorf("database URL %q: unknown scheme %q; want postgres, mysql or sqlite", u.Redacted(), u.Scheme)
	}
	return sqldb.Database{Err: err}
}
