package roster

import (
	"context"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// DefaultOwnSign is the own_sign of a roster that is opened without one.
const DefaultOwnSign = "BASE"

// Roster reads and changes the ownership of queues, in one own_sign. Its own methods are what all callers share: the
// transactions under the lock row, registering, the heartbeat of a process, and alerts. Server, Planner and Operator
// return what one kind of caller needs. All methods may be called concurrently, except SendHeartbeat.
type Roster struct {
	DB      *sqldb.DB
	OwnSign string
	// PlannerVersion is the newest version of the planner's rules that the program knows: plan.Version.
	PlannerVersion int
	// WriteFence says that share locks do not reach all writers, so that fences write (F3).
	WriteFence bool
	// IdleTxTimeout is how long a fenced transaction may be idle before the database ends it (F6). Zero leaves the
	// database's own setting.
	IdleTxTimeout time.Duration

	// OnLock is called after each transaction under the lock row, from the goroutine that ran it, with the time that it
	// held the lock.
	OnLock func(taskType string, held time.Duration)

	// OnInvalid is called by Audit for each value that no server can work with, from the goroutine of the audit.
	OnInvalid func(ctx context.Context, taskType string, v InvalidValue)

	// OnLineHeld is called when a transaction took a lock row that was free without the line before it, because the line
	// was held for too long. Nil means no notice.
	OnLineHeld func(ctx context.Context, taskType string)

	// QueuesRemoved is called in the transaction l, which deletes the queues (N1, N2). It ends the work of open runs
	// in them: it sets the state of these queues of the runs, for the reason.
	QueuesRemoved QueuesRemovedFunc
}

// QueuesRemovedFunc ends the work of open runs in queues that l deletes.
type QueuesRemovedFunc func(ctx context.Context, l *LockTx, state, reason string, queues []string) error

// Server is a registered server of a task type. Its methods are what a server does with its own queues.
type Server struct {
	roster         *Roster
	taskType, uuid string
}

// Server returns the server with the uuid. It reads nothing, and the server need not be registered.
func (r *Roster) Server(taskType, uuid string) Server { return Server{r, taskType, uuid} }

// Planner does what any server of a task type does for all of them: it rebalances, audits and finishes a repartition.
type Planner struct {
	roster          *Roster
	taskType, actor string
}

// Planner returns the planner of a task type for the server with the uuid actor.
func (r *Roster) Planner(taskType, actor string) Planner { return Planner{r, taskType, actor} }

// Operator writes the requests of operators. The servers carry them out.
type Operator struct {
	roster *Roster
	actor  string
}

// Operator returns the operator with the name actor, which the events record.
func (r *Roster) Operator(actor string) Operator { return Operator{r, actor} }

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
