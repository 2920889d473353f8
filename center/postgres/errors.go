package postgres

import (
	"errors"
	"strings"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
)

// state returns the SQLSTATE of an error of the server, by lib/pq, pgx or another driver; else it is empty.
func state(err error) string {
	if e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return e.SQLState()
	}
	return ""
}

// classes has what the errors of the server mean, by SQLSTATE, or by its first two characters, which are a class of the
// standard. The server refuses for a lasting reason with all other SQLSTATEs. TestErrorClasses has a case for each row.
var classes = map[string]sqldb.Class{
	"40001": sqldb.RolledBack, // a serialization failure
	"40P01": sqldb.RolledBack, // a deadlock
	"55P03": sqldb.RolledBack, // a lock is not available
	"26000": sqldb.RolledBack, // no such prepared statement

	"57014": sqldb.Interrupted, // cancelled, or took too long

	"08":    sqldb.Broken, // connections
	"53300": sqldb.Broken, // too many connections
	"57P01": sqldb.Broken, // the server goes down, or an administrator has ended the session
	"57P02": sqldb.Broken, // another session has crashed
	"57P03": sqldb.Broken, // the server comes up
	"57P05": sqldb.Broken, // the session was idle for too long

	"25006": sqldb.ReadOnly,
	"42P01": sqldb.NoTable,
	"3F000": sqldb.NoTable, // no such schema, or search_path has none that exists
	"23505": sqldb.Duplicate,

	"22": sqldb.BadData, // data
	"23": sqldb.BadData, // constraints
}

func classify(err error) sqldb.Class {
	code := state(err)
	switch {
	case code == "" && isPassedOver(err):
		return sqldb.ReadOnly
	case code == "" && isFailedTransaction(err):
		return sqldb.Refused
	case code == "":
		return sqldb.Other
	case unprepared(err):
		return sqldb.RolledBack
	case isUnsupported(err):
		return sqldb.Refused
	}
	for _, row := range []string{code, code[:min(2, len(code))]} {
		if class, listed := classes[row]; listed {
			return class
		}
	}
	return sqldb.Refused
}

// isPassedOver reports whether lib/pq found no host that takes writes (target_session_attrs). Its error has no type.
func isPassedOver(err error) bool {
	return strings.Contains(err.Error(), "session is read-only") ||
		strings.Contains(err.Error(), "server is in hot standby mode")
}

// isFailedTransaction reports whether a commit has ended as a rollback, because an earlier statement of the transaction
// has failed. The error is that of lib/pq, or by its text that of pgx.
func isFailedTransaction(err error) bool {
	return errors.Is(err, pq.ErrInFailedTransaction) ||
		strings.Contains(err.Error(), "commit unexpectedly resulted in rollback")
}

// isUnsupported reports whether PgBouncer refuses a parameter of the URL. It has one code, 08P01, for this and for all
// that may pass, such as a server that is away.
func isUnsupported(err error) bool {
	return strings.HasPrefix(state(err), "08") && strings.Contains(err.Error(), "unsupported startup parameter")
}

// unprepared reports whether the server has dropped the prepared statement (DISCARD ALL), or a changed table would
// change the columns of its result.
func unprepared(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && (e.Code == "26000" || e.Code == "0A000" && e.Routine == "RevalidateCachedQuery")
}

// denied reports whether the role lacks a right.
func denied(err error) bool { return state(err) == "42501" }
