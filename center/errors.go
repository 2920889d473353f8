package center

import (
	"errors"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// The errors that a caller may compare with errors.Is.
var (
	// ErrFenced means that a queue of the batch has another owner or epoch by now, or is gone. The transaction must not be
	// committed. The items have not failed: the new owner of the queue selects them again. It is also the cause
	// (context.Cause) of the cancellation of a batch whose server has noticed the loss by itself.
	ErrFenced = roster.ErrFenced

	// ErrGone means that the server is not registered any more: it left or was expired. Its uuid is never used again.
	ErrGone = roster.ErrGone

	// ErrNumbered means that a queue cannot be added or removed by its name, because the queues have numbers.
	ErrNumbered = roster.ErrNumbered
	// ErrUnknownTask means that the task type has no row.
	ErrUnknownTask = roster.ErrUnknownTask

	// ErrNoBatch means that the context given to Fence, InTx or SaveCursor does not come from Execute.
	ErrNoBatch = errors.New("the context carries no batch: pass on the context that Execute was called with")

	// ErrNoTx means that Fence was called with a pool or a connection: each of its statements is a transaction of its own,
	// and fences nothing. Begin a transaction and pass it, also if a statement (BEGIN) has begun one on the connection.
	ErrNoTx = errors.New("a pool or a connection cannot be fenced: pass a transaction, which has Commit and Rollback")

	// ErrNoRoster means that the transaction cannot be fenced, because it does not lead to the roster's database: it sees
	// no Rota tables, or those of another roster. Its server, database, schema or search_path is another one.
	ErrNoRoster = errors.New("the transaction does not lead to the roster's database, and the fence needs its tables")

	// ErrUnfitPool means that InTx refuses a pool of the program, because a setting of its connections would break the
	// fence. The error names the pool's driver, the setting, its value and the rule.
	ErrUnfitPool = errors.New("this pool cannot be fenced")

	// ErrOtherBatch means that the items of the batch are in another database than the data database that was asked to
	// fence them.
	ErrOtherBatch = errors.New("the items of the batch are not in this data database")

	// ErrOtherData means that a database is not the data database that the roster knows under its name: it belongs to
	// another roster, has another name, or is new.
	ErrOtherData = roster.ErrOtherData

	// ErrUnknownCommit means that a commit was sent and its reply was lost: the transaction may have been committed or
	// rolled back. Read the rows again to find out.
	ErrUnknownCommit = sqldb.ErrUnknownCommit
)
