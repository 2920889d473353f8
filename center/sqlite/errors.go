package sqlite

import (
	"errors"
	"strings"

	driver "modernc.org/sqlite"

	"github.com/dutyrota/rota/internal/sqldb"
)

// classes has what the errors of SQLite mean, by their extended code, or by their primary code, which is its lowest
// byte. SQLite refuses for a lasting reason with all others. TestErrorClasses has a case for each row.
var classes = map[int]sqldb.Class{
	5: sqldb.RolledBack, // SQLITE_BUSY, with SQLITE_BUSY_SNAPSHOT among its kinds
	6: sqldb.RolledBack, // SQLITE_LOCKED

	8: sqldb.ReadOnly, // SQLITE_READONLY

	1555: sqldb.Duplicate, // SQLITE_CONSTRAINT_PRIMARYKEY
	2067: sqldb.Duplicate, // SQLITE_CONSTRAINT_UNIQUE

	18: sqldb.BadData, // SQLITE_TOOBIG
	19: sqldb.BadData, // SQLITE_CONSTRAINT
	20: sqldb.BadData, // SQLITE_MISMATCH
}

func classify(err error) sqldb.Class {
	var e *driver.Error
	if !errors.As(err, &e) {
		return sqldb.Other
	}
	for _, row := range []int{e.Code(), e.Code() & 0xff} {
		if class, listed := classes[row]; listed {
			return class
		}
	}
	if isNoTable(e) {
		return sqldb.NoTable
	}
	return sqldb.Refused
}

// isNoTable reports whether a table does not exist. SQLite has one code for this and for other errors of a statement.
func isNoTable(e *driver.Error) bool {
	return e.Code() == 1 && strings.Contains(e.Error(), "no such table")
}
