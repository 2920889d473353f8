package center

import (
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// Stats counts the calls of a Center to the database since Open. A try is a transaction, or a statement outside of one.
// Each retry counts as a try.
type Stats struct {
	Done   int64            // operations, each counted once however often it was tried
	Tries  int64            // tries
	Errors map[string]int64 // failed tries by the meaning of the error; see the Error constants

	// Runs counts the runs whose end this Center has written, by their end.
	Runs map[runs.End]int64
}

// The meanings of an error of the database, as Stats counts them.
const (
	ErrorRolledBack  = "rolled_back" // a conflict: serialization, deadlock, lock timeout, busy
	ErrorInterrupted = "interrupted" // the statement took too long, or was killed
	ErrorBroken      = "broken"      // the connection failed
	ErrorReadOnly    = "read_only"   // the server does not accept writes
	ErrorRefused     = "refused"     // the database refused the statement
	ErrorOther       = "other"       // not an error of the database: ErrFenced, or an ended context
)

// Stats returns the counts so far.
func (c *Center) Stats() Stats {
	asked := c.db.Counts()
	s := Stats{Done: asked.Done, Tries: asked.Tries, Errors: map[string]int64{}}
	for class, n := range asked.Errors {
		s.Errors[errorName(class)] += n
	}
	s.Runs = c.runs.Ended()
	return s
}

// errorName returns the key in Stats.Errors for a class of errors.
func errorName(c sqldb.Class) string {
	switch c {
	case sqldb.RolledBack:
		return ErrorRolledBack
	case sqldb.Interrupted:
		return ErrorInterrupted
	case sqldb.Broken:
		return ErrorBroken
	case sqldb.ReadOnly:
		return ErrorReadOnly
	case sqldb.Refused, sqldb.NoTable, sqldb.Duplicate, sqldb.BadData:
		return ErrorRefused
	case sqldb.Other:
	}
	return ErrorOther
}
