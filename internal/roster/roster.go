package roster

import (
	"context"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// DefaultOwnSign is the environment of rosters that name none.
const DefaultOwnSign = "BASE"

// Roster reads and changes who owns what, in one own_sign. All methods may be called concurrently.
type Roster struct {
	DB      *sqldb.DB
	OwnSign string
	// WriteFence says that share locks do not reach every writer (F3).
	WriteFence bool

	OnLock func(taskType string, held time.Duration)

	// queuesRemoved ends the work of open runs in queues that this transaction deletes (N1, N2). It sets the state of the
	// queues of the runs, for the reason.
	QueuesRemoved func(ctx context.Context, l *LockTx, state, reason string, queues []string) error
}

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
