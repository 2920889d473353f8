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

func classify(err error) sqldb.Class {
	code := state(err)
	switch {
	case code == "" && isPassedOver(err):
		return sqldb.ReadOnly
	case code == "":
		return sqldb.Other
	}
	if unprepared(err) {
		return sqldb.RolledBack
	}
	switch code {
	case "40001", "40P01", "55P03", "26000": // serialization, deadlock, lock not available, no such prepared statement
		return sqldb.RolledBack
	case "57014": // cancelled, or took too long
		return sqldb.Interrupted
	case "53300": // too many connections
		return sqldb.Broken
	case "57P01", "57P02", "57P03": // the server goes down or comes up
		return sqldb.Broken
	case "42P01", "3F000": // no such table or schema
		return sqldb.NoTable
	case "23505":
		return sqldb.Duplicate
	case "25006":
		return sqldb.ReadOnly
	}
	switch code[:min(2, len(code))] {
	case "08":
		if isUnsupported(err) {
			return sqldb.Refused
		}
		return sqldb.Broken
	case "22", "23": // data exception, integrity constraint violation
		return sqldb.BadData
	}
	return sqldb.Refused
}

// isPassedOver reports whether lib/pq found no host that takes writes (target_session_attrs). Its error has no type.
func isPassedOver(err error) bool {
	return strings.Contains(err.Error(), "session is read-only") ||
		strings.Contains(err.Error(), "server is in hot standby mode")
}

// isUnsupported reports whether PgBouncer refuses a parameter of the URL. It has one code for this and for all that may
// pass, such as a server that is away.
func isUnsupported(err error) bool {
	return strings.Contains(err.Error(), "unsupported startup parameter")
}

// unprepared reports whether the server has dropped the prepared statement (DISCARD ALL), or a changed table would
// change the columns of its result.
func unprepared(err error) bool {
	var e *pq.Error
	return errors.As(err, &e) && (e.Code == "26000" || e.Code == "0A000" && e.Routine == "RevalidateCachedQuery")
}

// denied reports whether the role lacks a right.
func denied(err error) bool { return state(err) == "42501" }
