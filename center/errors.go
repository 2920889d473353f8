package center

import (
	"errors"
	"strings"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/runs"
	"github.com/dutyrota/rota/internal/sqldb"
)

// What a caller may branch on with errors.Is.
var (
	// ErrFenced means that a queue of the batch has another owner or epoch by now, or is gone. Nothing of the transaction
	// may be committed. The items are not at fault: the new owner of the queue selects them again.
	ErrFenced = roster.ErrFenced

	// ErrGone means that the server is not registered any more: it left or was expired. Its uuid is never used again.
	ErrGone = roster.ErrGone

	// ErrUnknownTask means that the task type has no row.
	ErrUnknownTask = roster.ErrUnknownTask

	// ErrNoBatch means that Fence or InTx was called with a context that does not come from
	// Execute.
	ErrNoBatch = errors.New("the context carries no batch: pass on the context that Execute was called with")

	// ErrNoRoster means that the transaction's database has no Rota tables: it is another
	// database, schema or search_path than the roster's, and cannot be fenced.
	ErrNoRoster = errors.New("this database has no Rota tables, and the fence needs them")

	// ErrUnknownCommit means that a commit was sent and its reply was lost: the transaction has
	// either happened or not. Read the rows again to find out.
	ErrUnknownCommit = sqldb.ErrUnknownCommit

	ErrUnknownRun     = runs.ErrUnknownRun     // no run with this id in this own_sign
	ErrRunState       = runs.ErrRunState       // the state of the run does not allow the operation
	ErrRunOver        = runs.ErrRunOver        // the queue of the run no longer belongs to this sweep
	ErrUnknownTrigger = runs.ErrUnknownTrigger // no trigger with this name in this own_sign
)

// What Servers.Find and Runs.Find may return.
var (
	ErrUnknownServer   = errors.New("unknown server")
	ErrAmbiguousServer = errors.New("ambiguous name")
	ErrNoRunOrTask     = errors.New("neither a run nor a task type has this name")
	ErrNoRunYet        = errors.New("the task type has had no run")
)

// oneLine joins the lines of a driver's error.
func oneLine(err error) error { return lineError{err} }

type lineError struct{ error }

func (e lineError) Error() string {
	return strings.Join(strings.FieldsFunc(e.error.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

func (e lineError) Unwrap() error { return e.error }
