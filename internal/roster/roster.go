package roster

import (
	"context"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// DefaultOwnSign is the own_sign of a roster that is opened without one.
const DefaultOwnSign = "BASE"

// Roster reads and changes the ownership of queues, in one own_sign. Its methods may be called concurrently, except
// SendHeartbeat.
type Roster struct {
	DB      *sqldb.DB
	OwnSign string
	// WriteFence says that share locks do not reach all writers, so that fences write (F3).
	WriteFence bool

	// OnLock is called after each transaction under the lock row, from the goroutine that ran it, with the time that it
	// held the lock.
	OnLock func(taskType string, held time.Duration)

	// QueuesRemoved is called in the transaction l, which deletes the queues (N1, N2). It ends the work of open runs
	// in them: it sets the state of these queues of the runs, for the reason.
	QueuesRemoved QueuesRemovedFunc
}

// QueuesRemovedFunc ends the work of open runs in queues that l deletes.
type QueuesRemovedFunc func(ctx context.Context, l *LockTx, state, reason string, queues []string) error

// QueueEpoch is a queue and the epoch under which a server owns it.
type QueueEpoch struct {
	ID    string
	Epoch int64
}

// In returns the roster of another own_sign in the same database.
func (r *Roster) In(ownSign string) *Roster {
	other := *r
	other.OwnSign = ownSign
	return &other
}
