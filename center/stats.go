package center

import (
	"github.com/dutyrota/rota/internal/sqldb"
)

// Stats count what a Center has asked of the database since it was opened. Tries are statements outside, and
// transactions: what was tried again counts each time.
type Stats struct {
	Done   int64            // what was done, however often it had to be tried
	Tries  int64            // tries
	Errors map[string]int64 // tries that failed, by what the error meant; see the Error constants

	// Runs are those whose end this Center has written, by what they came to.
	Runs map[RunEnd]int64
}

// What an error of the database means, as Stats counts it.
const (
	ErrorRolledBack  = "rolled_back" // a collision: serialization, deadlock, lock timeout, busy
	ErrorInterrupted = "interrupted" // it took too long, or was killed
	ErrorBroken      = "broken"      // the connection
	ErrorReadOnly    = "read_only"   // the server takes no writes
	ErrorRefused     = "refused"     // the database said no
	ErrorOther       = "other"       // not the database's: ErrFenced, or an ended context
)

// Stats returns what was counted so far. It may be called at any time.
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
	case sqldb.Refused, sqldb.NoTable, sqldb.Duplicate:
		return ErrorRefused
	case sqldb.Other:
	}
	return ErrorOther
}
