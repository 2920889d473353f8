package roster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
	// PlannerVersion is the version of the planner's rules that the program knows: plan.Version.
	PlannerVersion int
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

	// OnGiven is called after the commit of a transaction that has given servers queues, or requests for them, with their
	// uuids, from the goroutine that ran it. It must return at once. Nil means no notice.
	OnGiven func(servers ...string)

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

// Planner does what any server of a task type does for all of them: it rebalances and audits.
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

// MaxOwnSign is the longest own_sign, in bytes.
const MaxOwnSign = 50

// ValidTaskType returns an error for a name that no task type can have. See ValidArgument.
func ValidTaskType(name string) error { return ValidArgument("task type", name, MaxTaskType) }

// MaxTaskType is the width of the columns with the name of a task type, in bytes.
const MaxTaskType = 100

// ValidName returns an error for a name that an operator cannot read in a SELECT or type into a command. what begins
// the error; most is the maximum length in bytes.
func ValidName(what, name string, most int) error {
	switch {
	case name == "":
		return fmt.Errorf("%s must not be empty", what)
	case len(name) > most:
		return fmt.Errorf("%s (%.60q) must have at most %d bytes, not %d", what, name, most, len(name))
	case !utf8.ValidString(name):
		return fmt.Errorf("%s (%.60q) must be UTF-8", what, name)
	case strings.ContainsFunc(name, unprintable), strings.Contains(" "+name+" ", "  "):
		return fmt.Errorf("%s (%.60q) must be printable, without white space around it", what, name)
	}
	return nil
}

// ValidArgument is ValidName for a name that is an argument of commands, where one that begins with - would be a flag.
func ValidArgument(what, name string, most int) error {
	if strings.HasPrefix(name, "-") {
		return fmt.Errorf("%s (%.60q) must not begin with -, as a flag of a command does", what, name)
	}
	return ValidName(what, name, most)
}

// unprintable reports whether a character is not visible: control, format and bidi characters, which could make a name
// look like another, and all white space but the usual space.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// ServerName returns the short name of a server: host:pid, which is its uuid without the random end. The servers of a
// process that serves several task types share the name.
func ServerName(uuid string) string {
	if at := strings.LastIndexByte(uuid, ':'); at > 0 && len(uuid)-at == len(":12345678") {
		return uuid[:at]
	}
	return uuid
}

// Callers distinguish these errors with errors.Is.
var (
	// ErrFenced means that a queue has another owner or epoch by now, or is gone.
	ErrFenced = errors.New("fenced: the queue has another owner or epoch by now")

	// ErrGone means that the row of the server is gone: the server has left, or was expired. Its uuid is never used again.
	ErrGone = errors.New("the worker's row is gone")

	// errNodeLags means that the node that a heartbeat reached has not applied what this process wrote on another node.
	errNodeLags = errors.New("the node of the cluster lags behind this process")

	// ErrChanged means that another operator or worker has changed the row since the caller compared it.
	ErrChanged = errors.New("it has changed meanwhile: begin again")

	// ErrUnknownTask means that the task type has no row.
	ErrUnknownTask = errors.New("unknown task type")
)

// Reconnect makes sure that heartbeats have a connection. A new connection takes several round trips, for which a
// heartbeat that must renew a lease has no time.
func (r *Roster) Reconnect(ctx context.Context) error {
	if err := r.DB.Heartbeat.PingContext(ctx); err != nil {
		return fmt.Errorf("connect for heartbeats: %w", err)
	}
	return nil
}

// RoundTrip returns how long the database takes to answer a statement that does nothing, on the connection for
// heartbeats. It must not be called concurrently with SendHeartbeat.
func (r *Roster) RoundTrip(ctx context.Context) (time.Duration, error) {
	if err := r.Reconnect(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	err := r.DB.Heartbeat.QueryRowContext(ctx, "SELECT 1").Scan(new(int))
	return time.Since(start), sqldb.Wrap(err, "measure a round trip")
}

// HeartbeatAge returns how long ago the database received the server's last heartbeat, by the database's clock. After
// ErrGone there is no row.
func (s Server) HeartbeatAge(ctx context.Context) (time.Duration, error) {
	type times struct{ Now, Last time.Time }
	t, err := sqldb.One[times](ctx, s.roster.DB, ErrGone, `SELECT {now}, heartbeat_time FROM schedule_server
		WHERE uuid = ?`, s.uuid)
	return t.Now.Sub(t.Last), sqldb.Wrap(err, "read the last heartbeat of %s", s.uuid)
}
