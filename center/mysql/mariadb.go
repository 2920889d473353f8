package mysql

import (
	"strings"

	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

// mariadb is the dialect of MariaDB, which knows neither OF nor FOR SHARE. It passes over JSON_TABLE when it locks.
var mariadb = func() *sqldb.Dialect {
	d := *dialect
	d.Name = schema.MariaDB
	d.Version = "SELECT VERSION()" // it says MariaDB
	d.Share = " LOCK IN SHARE MODE"
	d.SkipLocked = " FOR UPDATE SKIP LOCKED"
	d.LockServers = " FOR UPDATE"
	return &d
}()

// isMariaDB reports whether a server that says this about itself is MariaDB.
func isMariaDB(version string) bool { return strings.Contains(version, "MariaDB") }
