package processor

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// RunField is a field of a run under the name that all kinds of dealers know: a placeholder of the sql dealer, a
// property of the requests to a program, and in Go the value of RunOf. It is here once, so that no kind of dealer lacks
// one.
type RunField struct {
	Name string
	// Value returns a text, an int64, or an instant as a time.Time in UTC. It is nil if the run has none.
	Value func(*Run) any
}

// RunFields returns the fields of a run. The params of the run are beside them, see [Run.Param].
func RunFields() []RunField {
	list := []RunField{
		{"run_key", func(r *Run) any { return r.Key }},
		{"attempt", func(r *Run) any { return int64(r.Attempt) }},
	}
	for _, slot := range []struct {
		name string
		at   func(*Run) time.Time
	}{
		{"slot", func(r *Run) time.Time { return r.ScheduledAt }}, {"slot_end", func(r *Run) time.Time { return r.SlotEnd }},
	} {
		add := func(form string, value func(r *Run, at time.Time) any) {
			list = append(list, RunField{slot.name + form, func(r *Run) any {
				if at := slot.at(r); !at.IsZero() {
					return value(r, at.UTC())
				}
				return nil
			}})
		}
		add("", func(_ *Run, at time.Time) any { return at })
		add(".utc_date", func(_ *Run, at time.Time) any { return at.Format(time.DateOnly) })
		add(".date", func(r *Run, at time.Time) any { return r.local(at, time.DateOnly) })
		add(".local", func(r *Run, at time.Time) any { return r.local(at, time.DateTime) })
	}
	return list
}

// local returns the wall time in the zone of the trigger, or nil if this host does not know the zone.
func (r *Run) local(at time.Time, layout string) any {
	zone, err := time.LoadLocation(r.TimeZone)
	if err != nil {
		return nil
	}
	return at.In(zone).Format(layout)
}

// Param returns a value of the params of the run, which must be a JSON object that has it: a text, an int64, a float64,
// a bool, nil for null, or the JSON text of a list or an object.
func (r *Run) Param(name string) (any, error) {
	var params map[string]json.RawMessage
	if err := json.Unmarshal([]byte(r.Params), &params); err != nil {
		return nil, fmt.Errorf("the params of run %s must be a JSON object with %s: %w", r.ID, name, err)
	}
	raw, ok := params[name]
	if !ok {
		return nil, fmt.Errorf("the params of run %s have no %s", r.ID, name)
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("read %s of the params of run %s: %w", name, r.ID, err)
	}
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case map[string]any, []any:
		return string(raw), nil
	}
	return value, nil
}
