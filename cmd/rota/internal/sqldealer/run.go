package sqldealer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// runParam is the start of the placeholders of a run's params: {{params.region}}.
const runParam = "params."

// runNames are the placeholders of a run: its fields, and its params.
var runNames = func() []string {
	var names []string
	for _, f := range processor.RunFields() {
		names = append(names, f.Name)
	}
	return append(names, runParam)
}()

// ofRun returns the first placeholder of the statement that needs a run, or "".
func (s *statement) ofRun() string {
	at := slices.IndexFunc(s.names, func(name string) bool {
		return strings.HasPrefix(name, runParam) || slices.Contains(runNames, name)
	})
	if at < 0 {
		return ""
	}
	return s.names[at]
}

// runArg returns the value of a placeholder of a run. Without a run it is NULL: the file says RUN, the database says
// CONTINUOUS, and the database wins.
func runArg(name string, r *processor.Run, sy syntax) any {
	if r == nil {
		return nil
	}
	if param, ok := strings.CutPrefix(name, runParam); ok {
		value, _ := r.Param(param) // checkRun has returned the error
		return value
	}
	for _, f := range processor.RunFields() {
		if f.Name == name {
			return boundTime(f.Value(r), sy)
		}
	}
	panic("sqldealer: no value for {{" + name + "}}") // parse refuses all other names
}

// boundTime returns an instant as a text in UTC, in the form in which each database compares it with its columns of
// times. PostgreSQL would take a text without a zone for the session's.
func boundTime(value any, sy syntax) any {
	at, ok := value.(time.Time)
	if !ok {
		return value
	}
	text := at.Format("2006-01-02 15:04:05.999999")
	if sy.numberedMarks {
		text += "+00"
	}
	return text
}

// checkRun returns an error if the run lacks what the statements need. NULL instead would find no rows, and the run
// would succeed.
func (d *Dealer) checkRun(r *processor.Run) error {
	if r == nil {
		return nil
	}
	for _, name := range d.runUses {
		param, isParam := strings.CutPrefix(name, runParam)
		if isParam {
			if _, err := r.Param(param); err != nil {
				return err
			}
		} else if runArg(name, r, d.syntax) == nil {
			return fmt.Errorf("run %s has no {{%s}}: it was submitted or fired by hand, or this host does not know the time "+
				"zone %q", r.ID, name, r.TimeZone)
		}
	}
	return nil
}

// slotless reports whether no statement uses the slot of the run. A program gets it with each request.
func (d *Dealer) slotless() bool {
	return d.settings.Mode == center.ModeRun && !d.external && !slices.ContainsFunc(d.runUses, func(name string) bool {
		return strings.HasPrefix(name, "slot") || name == runKey
	})
}
