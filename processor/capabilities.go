package processor

import (
	"errors"
	"reflect"
	"strings"
)

// Capable is an optional interface of a TaskDealer that has methods of capabilities without offering them, because they
// follow from its configuration, or from the dealer that it wraps. The other capabilities have a no of their own:
// ErrNoPeek, ErrNoBacklog, an empty TraceParent and a false Atomic.
type Capable interface {
	// Capabilities returns what the dealer offers of what it has the methods for. It is called before the first
	// select. A type that embeds a Capable dealer and adds a capability must return that, too.
	Capabilities() Capabilities
}

// Capabilities are capabilities that a dealer offers: those that settings can contradict.
type Capabilities struct {
	Keyed, Cursored, Paged, Ordered, Discarder, SetSelector bool
	// Slotless says that what the dealer does does not depend on the slot of the run: a backfill would do the same work
	// again and again.
	Slotless bool
}

// String lists the capabilities by name, with commas. ParseCapabilities reads it.
func (a Capabilities) String() string {
	var names []string
	for field, value := range reflect.ValueOf(a).Fields() {
		if value.Bool() {
			names = append(names, field.Name)
		}
	}
	return strings.Join(names, ",")
}

// ParseCapabilities returns the capabilities that a list names. It ignores names that it does not know: the list may be
// that of a program of a later version.
func ParseCapabilities(list string) (a Capabilities) {
	for name := range strings.SplitSeq(list, ",") {
		if field := reflect.ValueOf(&a).Elem().FieldByName(name); field.IsValid() {
			field.SetBool(true)
		}
	}
	return a
}

// Needs are what the settings of a task type ask of its dealer.
type Needs struct {
	Runs       bool // mode RUN
	NotSleep   bool // processor_type NOTSLEEP
	Splittable bool
	Databases  int // data databases that have the items
}

// CursorsInData reports whether the dealer's cursors of mode CONTINUOUS are in data databases, beside its items.
// databases is Needs.Databases.
func (a Capabilities) CursorsInData(databases int) bool { return a.Cursored && databases > 0 }

// Check returns an error if the capabilities contradict each other or the needs. A worker asks it, and so can a program
// that has only the list of another process's dealer.
func (a Capabilities) Check(n Needs) error {
	switch {
	case a.CursorsInData(n.Databases) && n.Runs:
		return errors.New("mode (RUN) keeps cursors in the roster, and a dealer that is Cursored and has its items in a " +
			"data database keeps them there")
	case a.Discarder && !a.Keyed:
		return errors.New("a dealer that is a Discarder must be Keyed")
	case a.Paged && (!a.Keyed || a.Cursored):
		return errors.New("a dealer that is Paged must be Keyed and not Cursored")
	case a.Ordered && (!a.Keyed || a.Cursored):
		return errors.New("a dealer that is Ordered must be Keyed and not Cursored")
	case n.Splittable && a.CursorsInData(n.Databases):
		return errors.New("splittable (true) needs cursors in the roster, and a dealer that is Cursored and has its items " +
			"in a data database keeps them there")
	case n.NotSleep && a.Cursored:
		return errors.New("processor_type (NOTSLEEP) must be SLEEP for a dealer that is Cursored, " +
			"because its batches run one after another")
	case n.NotSleep && !a.Keyed:
		return errors.New("processor_type (NOTSLEEP) needs a dealer that is Keyed, to recognize the items in flight")
	}
	return nil
}
