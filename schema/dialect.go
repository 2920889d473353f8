package schema

import (
	"fmt"
	"slices"

	"github.com/pressly/goose/v3/database"
)

// Dialect names a family of databases: [Postgres], [MySQL] or [SQLite]. Every function refuses the zero value.
type Dialect string

// grammars are the dialects that Rota supports. Each has a file of its own, and a directory of migrations that has its
// name.
var grammars = []*grammar{&postgres, &mysql, &sqlite}

// grammar holds what differs between the dialects, apart from the migrations.
type grammar struct {
	name  Dialect
	goose database.Dialect

	// bookkeeping creates goose's version table and the lease row. Many processes run it at once and repeatedly:
	// a statement does nothing if its work is done.
	bookkeeping []string
	now         string              // the database's clock
	soon        string              // the database's clock, ? milliseconds from now
	bind        func(string) string // from ? to the placeholders of the driver

	// begin is the first statement of each migration. Empty if the migration needs none.
	begin string

	noTable   func(error) bool // the table of the query does not exist
	noColumn  func(error) bool // a column of the query does not exist
	transient func(error) bool // nothing was done, and the same statement may succeed a moment later
	raced     func(error) bool // another process created the same table at the same moment
}

// grammar returns the grammar of a dialect, or an error if there is none.
func (d Dialect) grammar() (*grammar, error) {
	i := slices.IndexFunc(grammars, func(g *grammar) bool { return g.name == d })
	if i < 0 {
		return nil, fmt.Errorf("unknown database dialect %q", string(d))
	}
	return grammars[i], nil
}

// store returns goose's access to the version table.
func (g *grammar) store() (database.Store, error) {
	return database.NewStore(g.goose, versionTable)
}

func never(error) bool { return false }

func unchanged(query string) string { return query }
