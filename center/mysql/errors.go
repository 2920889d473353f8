package mysql

import (
	"errors"
	"slices"

	driver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/internal/sqldb"
)

func classify(err error) sqldb.Class {
	if errors.Is(err, driver.ErrInvalidConn) {
		return sqldb.Broken
	}
	var e *driver.MySQLError
	if !errors.As(err, &e) {
		return sqldb.Other
	}
	switch e.Number {
	// deadlock, lock wait, changed since the snapshot, conflict in a MySQL group; of TiDB: conflicts, another schema
	case 1213, 1205, 1020, 3101, 8002, 8022, 8028, 9007:
		return sqldb.RolledBack
	case 3572: // NOWAIT
		return sqldb.Held
	case noSuchHandler, needReprepare:
		return sqldb.RolledBack
	// took too long, by MariaDB's limit and MySQL's; killed; of TiDB: no number of its own, its storage is slow or away
	case 1969, 3024, 1317, 1105, 9001, 9002, 9003, 9004, 9005:
		return sqldb.Interrupted
	// too many connections, no quorum, shutdown, killed, gone away, idle too long
	case 1040, 1047, 1053, 1152, 1927, 2006, 2013, 3169, 4031:
		return sqldb.Broken
	case 1180, 8501: // the commit failed: on a Galera node without a quorum, the others may have it; unknown to TiDB
		return sqldb.Broken
	case 1062:
		return sqldb.Duplicate
	case 1048, 1169, 1216, 1217, 1264, 1265, 1292, 1364, 1365, 1366, 1367, 1406, 1411, 1451, 1452,
		1525, 1557, 1690, 3140, 3141, 3156, 3819, 4025:
		return sqldb.BadData // NULL, keys, ranges, lengths, formats, JSON, CHECK of MySQL and MariaDB
	case 1146:
		return sqldb.NoTable
	case 1290, 1792, 1836:
		return sqldb.ReadOnly
	}
	return sqldb.Refused
}

// Errors about prepared statements.
const (
	noSuchHandler = 1243
	tooManyHeld   = 1461 // max_prepared_stmt_count
	needReprepare = 1615 // a table has changed several times
)

// unprepared reports whether the server does not know the prepared statement, or refuses to prepare more.
func unprepared(err error) bool {
	return numbered(err, noSuchHandler, tooManyHeld, needReprepare)
}

// unknownColumn is the number of the server's answer to a column that does not exist.
const unknownColumn = 1054

// denied reports whether the user lacks a right.
func denied(err error) bool { return numbered(err, 1142, 1143, 1044) }

func numbered(err error, numbers ...uint16) bool {
	var e *driver.MySQLError
	return errors.As(err, &e) && slices.Contains(numbers, e.Number)
}
