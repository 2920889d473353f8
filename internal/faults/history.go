package faults

import (
	"fmt"
	"time"
)

// History is everything that is known of a run once it is over: what the roster says, what the work left
// behind, what the processes noted, and what was done to them. All times are of one host's clock.
type History struct {
	JudgeDead time.Duration // silence after which others take over
	Trust     time.Duration // how long a process may believe that it owns anything without a heartbeat

	Events  []Event  // of the whole roster, in commit order
	Effects []Effect // of all items, in any order
	Items   []Item
	Spans   []Span
	Windows []Window

	// Stillborn are servers that never beat: registrations whose reply was lost. Their processes do not know of
	// them and have joined under another name.
	Stillborn []string
}

// Event is a row of schedule_event. The lock row orders them: the next one's transaction begins after this
// one's commit.
type Event struct {
	At       time.Time
	Kind     string // as package center spells it
	Queue    string // "" if it is about a server
	From, To string // servers
	Epoch    int64
}

// Effect is what one committed transaction says about one item.
type Effect struct {
	Server string
	Queue  string
	Epoch  int64
	Item   int64

	// Seen is how many effects of older epochs of this queue the transaction found, when it had its fence.
	// That makes a later commit of an older epoch visible without any clock.
	Seen int64
}

// Item is a row of work at the end.
type Item struct {
	ID      int64
	Done    bool
	Effects int64 // raised by each transaction that believed to do it
}

// Span is one call of Execute, as the process saw it: it covers the work outside the database and the
// transaction behind that.
type Span struct {
	Process  int
	Server   string
	Queue    string
	Epoch    int64
	Begin    time.Time
	WorkEnd  time.Time // zero: the process died in the work
	End      time.Time // zero: the process died before the end
	LastSeen time.Time // when the process died, for those
}

// Kind is what was done to a process, or what happened to it.
type Kind int

// The kinds of Window.
const (
	Pause     Kind = iota // it stood still
	Partition             // it ran and could not reach the database
	Death                 // it was killed; To is never
)

func (k Kind) String() string { return [...]string{"pause", "partition", "death"}[k] }

// Window is a time in which a process was in trouble.
type Window struct {
	Process  int // 0: all processes alike, which excuses nobody's expiry
	Kind     Kind
	From, To time.Time
}

func (w Window) length() time.Duration { return w.To.Sub(w.From) }

func (w Window) of(process int) bool { return w.Process == process || w.Process == 0 }

// over is the latest moment at which the call can have been under way.
func (s Span) over() time.Time {
	if s.End.IsZero() {
		return s.LastSeen
	}
	return s.End
}

// worked is the latest moment at which the work outside the database can have been under way.
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
