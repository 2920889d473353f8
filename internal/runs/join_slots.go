package runs

import (
	"context"
	"slices"
	"time"
)

// UnmetJoin is a join whose upstreams share no slot, so that triggers never lead to a run of it (R18).
type UnmetJoin struct {
	TaskType  string
	Upstreams []string
	Slotless  []string  // upstreams to which no trigger leads
	Until     time.Time // until when UnmetJoins has compared their slots
}

const (
	// joinHorizon is how far ahead UnmetJoins compares the slots of upstreams. It contains each day of a year, also a leap
	// day.
	joinHorizon = 5 * 366 * 24 * time.Hour

	// joinSteps bounds the slots that are compared for a join.
	joinSteps = 10_000
)

// UnmetJoins returns the joins whose upstreams have slots, but none in common. It reads the triggers of all task types.
// It leaves out joins whose upstreams are only submitted.
func (d *Dependencies) UnmetJoins(ctx context.Context, triggers []TriggerRecord, now time.Time) ([]UnmetJoin, error) {
	edges, err := d.edges(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Trigger, len(triggers))
	for i, t := range triggers {
		list[i] = t.Trigger
	}
	return unmetJoins(edges, list, now), nil
}

func unmetJoins(edges []Edge, triggers []Trigger, now time.Time) (unmet []UnmetJoin) {
	var names []string
	for _, e := range edges {
		if !slices.Contains(names, e.TaskType) && joins(upstreamsOf(edges, e.TaskType)) {
			names = append(names, e.TaskType)
		}
	}
	for _, name := range names {
		b := calendars{edges: edges, triggers: triggers, until: now.Add(joinHorizon), steps: joinSteps}
		join := UnmetJoin{TaskType: name, Until: b.until}
		var all []calendar
		for _, e := range upstreamsOf(edges, name) {
			join.Upstreams = append(join.Upstreams, e.Upstream)
			if c := b.of(e.Upstream, nil); c != nil {
				all = append(all, c)
			} else {
				join.Slotless = append(join.Slotless, e.Upstream)
			}
		}
		if len(all) > 0 && (len(join.Slotless) > 0 || b.meet(all)(now).IsZero()) {
			unmet = append(unmet, join)
		}
	}
	return unmet
}

// calendar returns the first slot after an instant, or zero. A nil calendar has no slots.
type calendar func(after time.Time) time.Time

// calendars finds the slots of task types: the slots of their triggers, and the slots that they inherit from their
// upstreams.
type calendars struct {
	edges    []Edge
	triggers []Trigger
	until    time.Time
	steps    int // left
}

// of returns the slots of a task type. It leaves out a cycle that was made by hand.
func (b *calendars) of(name string, path []string) calendar {
	if slices.Contains(path, name) {
		return nil
	}
	path = append(slices.Clone(path), name)
	var all, inherited []calendar
	for _, t := range b.triggers {
		if t.Target == name && t.Status != TriggerDone {
			if c := slotsOf(t); c != nil {
				all = append(all, c)
			}
		}
	}
	upstreams := upstreamsOf(b.edges, name)
	for _, e := range upstreams {
		if c := b.of(e.Upstream, path); c != nil {
			inherited = append(inherited, c)
		}
	}
	switch {
	case !joins(upstreams):
		all = append(all, inherited...)
	case len(inherited) == len(upstreams):
		all = append(all, b.meet(inherited))
	}
	if len(all) == 0 {
		return nil
	}
	return earliest(all)
}

// slotsOf returns the slots of a trigger within its bounds, or nil if its row is invalid.
func slotsOf(t Trigger) calendar {
	p, err := t.parse()
	if err != nil {
		return nil
	}
	return func(after time.Time) time.Time {
		if p.StartAt.After(after) {
			after = p.StartAt.Add(-1)
		}
		slot := p.Schedule.Next(after)
		if !p.EndAt.IsZero() && slot.After(p.EndAt) {
			return time.Time{}
		}
		return slot
	}
}

func earliest(all []calendar) calendar {
	return func(after time.Time) (first time.Time) {
		for _, c := range all {
			if slot := c(after); !slot.IsZero() && (first.IsZero() || slot.Before(first)) {
				first = slot
			}
		}
		return first
	}
}

// meet returns the slots that all calendars have. Each step goes on at the latest of their next slots, so that meet
// compares a rare slot with few slots of a frequent trigger.
func (b *calendars) meet(all []calendar) calendar {
	return func(after time.Time) time.Time {
		slot := all[0](after)
		for met := false; !met; {
			met = true
			for _, c := range all {
				next := time.Time{}
				if b.steps--; b.steps > 0 && !slot.IsZero() && slot.Before(b.until) {
					next = c(slot.Add(-1))
				}
				if next.IsZero() {
					return next
				}
				if next.After(slot) {
					slot, met = next, false
				}
			}
		}
		return slot
	}
}
