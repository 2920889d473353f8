package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"regexp"
	"slices"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/internal/sqldb"
)

// classes has what the errors of the server mean, by their numbers. The server refuses for a lasting reason with all
// other numbers. TestErrorClasses has a case for each row.
var classes = map[uint16]sqldb.Class{
	recordChanged: sqldb.RolledBack,
	lockTimeout:   sqldb.RolledBack,
	deadlock:      sqldb.RolledBack,
	3101:          sqldb.RolledBack, // a conflict in a MySQL group
	8002:          sqldb.RolledBack, // TiDB: a conflict
	8022:          sqldb.RolledBack, // TiDB: a conflict
	8028:          sqldb.RolledBack, // TiDB: another schema
	9007:          sqldb.RolledBack, // TiDB: a conflict
	noSuchHandler: sqldb.RolledBack,
	needReprepare: sqldb.RolledBack,

	3572: sqldb.Held, // NOWAIT

	1105: sqldb.Interrupted, // TiDB: an error that has no number of its own
	1317: sqldb.Interrupted, // killed
	1969: sqldb.Interrupted, // MariaDB: took too long
	3024: sqldb.Interrupted, // MySQL: took too long
	9001: sqldb.Interrupted, // TiDB, to 9005: its storage is slow or away
	9002: sqldb.Interrupted,
	9003: sqldb.Interrupted,
	9004: sqldb.Interrupted,
	9005: sqldb.Interrupted,

	1040: sqldb.Broken, // too many connections
	1047: sqldb.Broken, // Galera: no quorum
	1053: sqldb.Broken, // the server goes down
	1152: sqldb.Broken, // the connection was aborted
	1180: sqldb.Broken, // the commit failed: on a Galera node without a quorum, the others may have it
	1203: sqldb.Broken, // too many connections of the user, by the limit for all users
	1226: sqldb.Broken, // too many connections or statements of the user, by its own limit
	1927: sqldb.Broken, // MariaDB: the connection was killed
	2006: sqldb.Broken, // the server has gone away
	2013: sqldb.Broken, // the connection was lost
	3169: sqldb.Broken, // MySQL: the session was killed
	4031: sqldb.Broken, // MySQL: the connection was idle for too long
	8501: sqldb.Broken, // TiDB: the outcome of the commit is unknown

	byOption: sqldb.ReadOnly, // read_only; of another option it is Refused
	1792:     sqldb.ReadOnly, // a transaction that is read-only, by the default of the server or of the session
	1836:     sqldb.ReadOnly, // innodb_read_only, innodb_force_recovery, and TiDB

	1146: sqldb.NoTable,
	1062: sqldb.Duplicate,

	1048: sqldb.BadData, // NULL
	1169: sqldb.BadData, // a key that must be unique
	1216: sqldb.BadData, // a foreign key, as 1217, 1451, 1452 and 1557
	1217: sqldb.BadData,
	1264: sqldb.BadData, // out of range
	1265: sqldb.BadData, // cut off
	1292: sqldb.BadData, // a value of the wrong format
	1364: sqldb.BadData, // no value
	1365: sqldb.BadData, // a division by zero
	1366: sqldb.BadData, // a value of the wrong type
	1367: sqldb.BadData, // a number that is none
	1406: sqldb.BadData, // too long
	1411: sqldb.BadData, // a wrong value for a function
	1451: sqldb.BadData,
	1452: sqldb.BadData,
	1525: sqldb.BadData, // a wrong value for a type
	1557: sqldb.BadData,
	1690: sqldb.BadData, // out of range in an expression
	3140: sqldb.BadData, // JSON, as 3141 and 3156
	3141: sqldb.BadData,
	3156: sqldb.BadData,
	3819: sqldb.BadData, // MySQL: a CHECK
	4025: sqldb.BadData, // MariaDB: a CHECK
}

func classify(err error) sqldb.Class {
	if errors.Is(err, driver.ErrInvalidConn) {
		return sqldb.Broken
	}
	var e *driver.MySQLError
	if !errors.As(err, &e) {
		return sqldb.Other
	}
	if class, listed := classes[e.Number]; listed && !isOtherOption(e) {
		return class
	}
	return sqldb.Refused
}

// isOtherOption reports whether the server names another option than read_only with the error of read_only, such as
// --secure-file-priv, which lasts.
func isOtherOption(e *driver.MySQLError) bool {
	return e.Number == byOption && !readOnlyOption.MatchString(e.Message)
}

// byOption is the number of the error of a statement that an option of the server rules out.
const byOption = 1290

// readOnlyOption matches the options that make a server read-only: --read-only, --super-read-only and those of TiDB.
var readOnlyOption = regexp.MustCompile(`read[-_]only`)

// Errors with which the server rolls the transaction back, and not only the statement.
const (
	recordChanged = 1020 // since the snapshot; of MariaDB
	deadlock      = 1213
	lockTimeout   = 1205 // with innodb_rollback_on_timeout
)

// ended reports whether the server has rolled the transaction back, and not only the statement. After a lock wait that
// took too long it asks for innodb_rollback_on_timeout; without an answer, the server may have done so.
func ended(c sqldb.Conn, err error) bool {
	if !numbered(err, lockTimeout) {
		return numbered(err, deadlock, recordChanged)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	rows, err := c.QueryContext(ctx, `SELECT 1 FROM DUAL WHERE @@innodb_rollback_on_timeout = 0`, nil)
	if err != nil {
		return true
	}
	err = rows.Next(make([]sqldriver.Value, 1))
	return rows.Close() != nil || err != nil
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
