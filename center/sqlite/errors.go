package sqlite

import (
	"errors"
	"strings"

	driver "modernc.org/sqlite"

	"github.com/dutyrota/rota/internal/sqldb"
)

func classify(err error) sqldb.Class {
	var e *driver.Error
	if !errors.As(err, &e) {
		return sqldb.Other
	}
	switch e.Code() {
	case 1555, 2067: // SQLITE_CONSTRAINT_PRIMARYKEY, _UNIQUE
		return sqldb.Duplicate
	}
	switch e.Code() & 0xff {
	case 5, 6: // SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT among its kinds; SQLITE_LOCKED
		return sqldb.RolledBack
	case 18, 19, 20: // SQLITE_TOOBIG, SQLITE_CONSTRAINT, SQLITE_MISMATCH
		return sqldb.BadData
	case 8:
		return sqldb.ReadOnly
	case 1:
		if strings.Contains(e.Error(), "no such table") {
			return sqldb.NoTable
		}
	}
	return sqldb.Refused
}
