package center

import (
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/runs"
)

// Stats counts the calls of a Center to the database since Open. A try is a transaction, or a statement outside of one.
// Each retry counts as a try.
type Stats struct {
	Done  int64 // operations, each counted once however often it was tried
	Tries int64 // tries

	// Errors counts the failed tries by the kind of their error, and has all kinds: rolled_back (a conflict:
	// serialization, deadlock, lock timeout, busy), interrupted (the statement took too long, or was killed), broken
	// (the connection failed), read_only (the server does not accept writes), bad_data (a value or a row breaks a
	// rule, as an item of a dealer may do), refused (the database refused the statement for another reason) and other
	// (not an error of the database: ErrFenced, or an ended context).
	Errors map[string]int64

	// Runs counts the runs whose end this Center has written, by their end.
	Runs map[runs.End]int64
}

// errorKinds are the kinds in Stats.Errors.
var errorKinds = map[sqldb.Class]string{
	sqldb.RolledBack: "rolled_back", sqldb.Held: "rolled_back",
	sqldb.Interrupted: "interrupted", sqldb.Broken: "broken", sqldb.ReadOnly: "read_only", sqldb.Other: "other",
	sqldb.Refused: "refused", sqldb.NoTable: "refused", sqldb.Duplicate: "bad_data", sqldb.BadData: "bad_data",
}

// Stats returns the counts so far.
func (c *Center) Stats() Stats {
	asked := c.db.Counts()
	s := Stats{Done: asked.Done, Tries: asked.Tries, Errors: map[string]int64{}}
	for class, kind := range errorKinds {
		s.Errors[kind] += asked.Errors[class]
	}
	s.Runs = c.runs.Ended()
	return s
}
