package schema

import (
	"fmt"

	"github.com/pressly/goose/v3/database"
)

// Dialect names a family of databases. Every function refuses the zero value.
type Dialect string

// The dialects that Rota supports.
const (
	Postgres Dialect = "postgres" // PostgreSQL 14 and newer, through lib/pq.
	MySQL    Dialect = "mysql"    // MySQL 8 and MariaDB 10.6 and newer, through go-sql-driver/mysql.
	SQLite   Dialect = "sqlite"   // Embedded, one host, through modernc.org/sqlite.
)

// grammar is what differs between the dialects, apart from the migrations.
type grammar struct {
	name  Dialect
	goose database.Dialect

	// bookkeeping creates goose's version table and the lease row. Many processes run it at once and repeatedly:
	// a statement whose work is done already does nothing.
	bookkeeping []string
	now         string              // the database's clock
	soon        string              // the database's clock, ? milliseconds from now
	bind        func(string) string // from ? to the placeholders of the driver

	noTable   func(error) bool // the table of the query does not exist
	noColumn  func(error) bool // a column of the query does not exist
	transient func(error) bool // nothing was done, and the same statement may succeed a moment later
	raced     func(error) bool // another process created the same table at the same moment
}

func (d Dialect) grammar() (*grammar, error) {
	switch d {
	case Postgres:
		return &postgres, nil
	case MySQL:
		return &mysql, nil
	case SQLite:
		return &sqlite, nil
	}
	return nil, fmt.Errorf("unknown database dialect %q", string(d))
}

// store returns goose's access to the version table.
func (g *grammar) store() (database.Store, error) {
	return database.NewStore(g.goose, versionTable)
}

func never(error) bool { return false }

func unchanged(query string) string { return query }
