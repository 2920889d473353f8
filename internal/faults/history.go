package faults

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// History is the record of a scenario: the events of the roster, the effects of the work, the notes of the processes,
// and the faults. All times are of the clock of one host.
type History struct {
	JudgeDead time.Duration // the silence after which other servers take over
	Trust     time.Duration // how long a process may trust its ownership without a heartbeat

	Events  []Event  // of the whole roster, in commit order
	Effects []Effect // of all items, in any order
	Items   []Item
	Spans   []Span
	Drains  []Drain
	Windows []Window

	// Witnessed says that the roster has lost history, and that the effects are in data databases, which have not.
	Witnessed bool

	Rosters []Roster // as they were read during the scenario, in snapshots; none twice in a row

	// Stillborn is the servers that never sent a heartbeat: registrations with a lost reply. Their processes do not know
	// them and have joined under another uuid.
	Stillborn []string
}

// Event is a row of schedule_event. The lock row orders the events: the transaction of the next event begins after the
// commit of this event.
type Event struct {
	At       time.Time
	Kind     string // a constant of package ops
	Queue    string // "" for an event of a server
	From, To string // servers
	Epoch    int64
}

// Effect is the record of one committed transaction about one item.
type Effect struct {
	Server string
	Queue  string
	Epoch  int64
	Item   int64

	// Seen is how many effects of older epochs of this queue the transaction found when it had its fence. It reveals a
	// later commit of an older epoch without any clock.
	Seen int64
}

// Item is a row of work at the end.
type Item struct {
	ID      int64
	Done    bool
	Effects int64 // incremented by each transaction that does the item
}

// Span is one call of Execute as the process recorded it. It covers the work outside the database and the transaction
// after it.
type Span struct {
	Process  int
	Server   string
	Queue    string
	Epoch    int64
	Begin    time.Time
	WorkEnd  time.Time // zero if the process died during the work
	End      time.Time // zero if the process died before the end
	Done     bool      // the call ended without an error: the database had acknowledged its effects
	LastSeen time.Time // when the process died, if it did
}

// Drain is a time in which a process drains a queue: until it resumes the queue or begins another sweep of it, or for
// good.
type Drain struct {
	Process  int
	Queue    string
	Epoch    int64
	From, To time.Time // To is zero if the drain did not end
}

// Roster is the input of a plan at one commit.
type Roster struct {
	At   time.Time
	Rest bool // the plan is not due: no server has joined, left or changed since the last one, and it skipped no row
	Plan roster.PlanInput
}

// Kind is the kind of trouble of a process.
type Kind int

// The kinds of Window.
const (
	Pause     Kind = iota // it stood still
	Partition             // it ran and could not reach the database
	Death                 // it was killed; the window has no end
	Silence               // it could reach the database, and the scenario cannot tell whether it did in time
)

func (k Kind) String() string { return [...]string{"pause", "partition", "death", "silence"}[k] }

// Window is a time in which a process was in trouble.
type Window struct {
	Process  int // 0 means all processes, and such trouble excuses no expiry
	Kind     Kind
	From, To time.Time
}

func (w Window) length() time.Duration { return w.To.Sub(w.From) }

func (w Window) of(process int) bool { return w.Process == process || w.Process == 0 }

// over returns the latest instant at which the call can have been under way.
func (s Span) over() time.Time {
	if s.End.IsZero() {
		return s.LastSeen
	}
	return s.End
}

// worked returns the latest instant at which the work outside the database can have been under way.
func (s Span) worked() time.Time {
	if s.WorkEnd.IsZero() {
		return s.over()
	}
	return s.WorkEnd
}

func (s Span) String() string {
	return fmt.Sprintf("queue %s epoch %d by %s from %s to %s (worked until %s)",
		s.Queue, s.Epoch, s.Server, clock(s.Begin), clock(s.over()), clock(s.worked()))
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000000") }
