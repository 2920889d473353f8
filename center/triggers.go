package center

import (
	"context"

	"github.com/dutyrota/rota/internal/runs"
)

// Triggers lists and defines triggers, which begin runs.
type Triggers struct{ triggers *runs.Triggers }

// Triggers returns the bundle of triggers.
func (c *Center) Triggers() *Triggers { return &Triggers{c.runs.Triggers} }

// The kinds of triggers.
const (
	TriggerCron  = runs.TriggerCron  // a cron expression with seconds, in Quartz's syntax
	TriggerEvery = runs.TriggerEvery // a Go duration, counted from StartAt
	TriggerOnce  = runs.TriggerOnce  // a time in RFC 3339
)

// The states of a trigger.
const (
	TriggerActive = runs.TriggerActive
	TriggerPaused = runs.TriggerPaused // it misses its slots; after a resume its misfire policy decides about them
	TriggerDone   = runs.TriggerDone   // it has no more slots
	TriggerError  = runs.TriggerError  // its row is invalid; the message says why
)

// The misfire policies: which of the due slots fire when they are several or old, because no worker ran or the trigger
// was paused.
const (
	MisfireOne  = runs.MisfireOne  // the newest
	MisfireSkip = runs.MisfireSkip // the newest, if it is younger than MisfireAfter
	MisfireAll  = runs.MisfireAll  // each, up to CatchupMax: then the newest
)

// The overlap policies: what a slot does while runs of its target are open (R4).
const (
	OverlapSkip = runs.OverlapSkip // its run is SKIPPED
	OverlapWait = runs.OverlapWait // its run waits, if no other run waits already; else it is SKIPPED
)

// The rules for an upstream: when a run may begin after it (R5).
const (
	RuleSuccess  = runs.RuleSuccess  // the upstream succeeded
	RuleFinished = runs.RuleFinished // the upstream ended in any state
)

// List lists the triggers of this own_sign by name.
func (t *Triggers) List(ctx context.Context, f TriggerFilter) ([]TriggerRecord, error) {
	return t.triggers.List(ctx, f)
}

// Define makes a trigger unless one of its name exists, and returns the trigger in force.
func (t *Triggers) Define(ctx context.Context, trigger Trigger) (Trigger, error) {
	return t.triggers.Define(ctx, trigger)
}

// Compare returns what Apply would change, and the next n slots. Fields that the trigger leaves open get their defaults.
func (t *Triggers) Compare(ctx context.Context, trigger Trigger, n int) (TriggerDiff, error) {
	return t.triggers.Compare(ctx, trigger, n)
}
