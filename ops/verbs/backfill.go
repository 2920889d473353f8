package verbs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

const backfillHelp = `BACKFILL is the id of a backfill, or a task type, which stands for its newest
backfill.`

func backfillExample(verb string) string {
	return fmt.Sprintf("  rota run backfill %[1]s reindex\n  rota run backfill %[1]s 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c",
		verb)
}

// StartBackfill makes a run for each slot of a trigger in a range of time.
type StartBackfill struct {
	TaskType     string `arg:"TASK" of:"run task" json:"-"`
	From         string `flag:"from" json:"-" help:"the first possible slot: a time, or a day in the time zone of the trigger"`
	To           string `flag:"to" json:"-" help:"all slots are earlier; left out: now"`
	Trigger      string `flag:"trigger" of:"trigger" json:"-" help:"trigger whose slots get runs, if the task type has several"`
	Parallel     int    `flag:"parallel" default:"1" json:"-" help:"slots that are in progress at a time, from 1 to 100"`
	Priority     string `flag:"priority" json:"-" help:"priority of the runs; left out: one less than the trigger's"`
	RerunFailed  bool   `flag:"rerun-failed" json:"-" help:"rerun the runs of slots that failed or were cancelled"`
	NoDependants bool   `flag:"no-dependants" json:"-" help:"make no runs of the task types that run after it"`
	NewestFirst  bool   `flag:"reverse" json:"-" help:"the newest slot first"`
	SameWork     bool   `flag:"same-work" json:"-" help:"also if the statements do not use the slot, so that all runs do the same work"`
}

var startBackfill = verb[StartBackfill](Verb{
	Name: "run backfill", Right: RightOperate,
	Short: "Make a run for each slot of a trigger in a range of time",
	Help: `Make a run for each slot of the trigger of a task type from --from on and before
--to, and print the id of the backfill. The command returns at once. The workers
of the task type make the runs, the oldest slot first; when one of them dies,
the others go on. A time is in RFC 3339, or a day in the time zone of the
trigger.

A slot has one run, whether the trigger or a backfill makes it. A slot that has
a run keeps it, unless the run is SKIPPED. Workers delete a run seven days after
its end: then its slot gets a run again. With --rerun-failed the backfill also
reruns the runs that failed or were cancelled. A failed run does not stop the
others, but the backfill ends FAILED. A backfill is refused if the statements of
a worker use no slot, because the run of each slot would do the same work;
--same-work makes the runs all the same.

The runs have the params of the trigger. Each run makes the runs of the task
types after it, unless --no-dependants is given. A slot is in progress until its
run and these runs have ended; --parallel is how many slots are in progress at a
time. One run of a task type works at a time. The trigger keeps firing
meanwhile: its runs have a higher priority, and a backfill makes it skip no
slot. A later change of the trigger does not change the backfill.`,
	Example: `  rota run backfill reindex --from 2026-11-01 --to 2026-11-13 --dry-run
  rota run backfill reindex --from 2026-11-01T12:00:00Z --rerun-failed
  rota run backfill show reindex --watch`,
})

// Prepare implements Operation.
func (a StartBackfill) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	t, err := readTask(ctx, c, a.TaskType)
	if err != nil {
		return nil, err
	}
	change := &Change{Title: "Backfill " + t.TaskType, TaskTypes: []string{t.TaskType}}
	zone, err := a.zone(ctx, c)
	if err != nil {
		return nil, err
	}
	want, err := a.span(zone)
	if err != nil {
		return change, err
	}
	_, slots, err := c.Backfills().Preview(ctx, want)
	if errors.Is(err, runs.ErrBackfillRange) {
		return change, err
	}
	if err != nil {
		return nil, err
	}
	n := map[string]int{}
	for _, slot := range slots {
		n[slot.Action]++
	}
	change.Says = []string{
		fmt.Sprintf("%s: %d to make, %d to rerun, %d to keep.", human.Count(len(slots), "slot", "slots"),
			n[runs.SlotMake], n[runs.SlotRerun], n[runs.SlotKeep]),
		"The workers make the runs, also after this program has ended. The trigger keeps firing meanwhile.",
	}
	change.Objects = []Object{{
		Name: "a backfill of " + inEnvironment(c, t.TaskType), Past: "started", Planned: slots,
		do: func(ctx context.Context, actor string) (Done, error) {
			b, err := c.Backfills().Start(ctx, want, actor)
			record := records.Object{records.M("backfill_id", b.ID), records.M("slots_total", b.SlotsTotal)}
			return Done{ID: b.ID, Record: record}, err
		},
	}}
	return change, nil
}

// zone returns the time zone of the trigger. It returns UTC if there is none, or several: the backfill is then refused.
func (a StartBackfill) zone(ctx context.Context, c *ops.Client) (*time.Location, error) {
	list, err := c.Triggers().List(ctx, runs.TriggerFilter{Name: a.Trigger, Target: a.TaskType})
	if err != nil || len(list) != 1 {
		return time.UTC, err
	}
	zone, err := time.LoadLocation(list[0].TimeZone)
	if err != nil {
		return nil, fmt.Errorf("trigger %s: time zone %s is unknown on this host", list[0].Name, list[0].TimeZone)
	}
	return zone, nil
}

// span reads the arguments. A day begins at midnight in the time zone.
func (a StartBackfill) span(zone *time.Location) (r runs.BackfillRange, err error) {
	r = runs.BackfillRange{
		TaskType: a.TaskType, Trigger: a.Trigger, Parallel: a.Parallel,
		RerunFailed: a.RerunFailed, NoDependants: a.NoDependants, NewestFirst: a.NewestFirst, SameWork: a.SameWork,
	}
	errs := []error{given("from", a.From)}
	for _, bound := range []struct {
		name, text string
		to         *time.Time
	}{{"from", a.From, &r.From}, {"to", a.To, &r.To}} {
		if bound.text != "" {
			*bound.to, err = readSlot(bound.name, bound.text, zone)
			errs = append(errs, err)
		}
	}
	if a.Parallel < 1 { // center takes zero for the default
		errs = append(errs, fmt.Errorf("parallel (%d) must be at least 1", a.Parallel))
	}
	if a.Priority != "" {
		priority, err := strconv.Atoi(a.Priority)
		if r.Priority = &priority; err != nil {
			errs = append(errs, fmt.Errorf("priority (%s) must be a whole number", a.Priority))
		}
	}
	return r, errors.Join(errs...)
}

func readSlot(name, text string, zone *time.Location) (time.Time, error) {
	if t, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		if _, skipped := t.ZoneBounds(); t.Format(time.DateOnly) != text { // the clock skips midnight
			t = skipped
		}
		return t, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%s (%s) must be a day, such as 2026-12-01, or a time with its offset, such as "+
			"2026-12-01T02:00:00+01:00", name, text)
	}
	return t, nil
}

// PauseBackfill stops a backfill from making runs.
type PauseBackfill struct {
	Backfill string `arg:"BACKFILL" of:"open backfill" json:"-"`
}

var pauseBackfill = verb[PauseBackfill](Verb{
	Name: "run backfill pause", Right: RightOperate,
	Short:   "Pause a backfill",
	Effect:  "No further slot gets a run until somebody resumes it. The runs that it has made go on.",
	Help:    backfillHelp,
	Example: backfillExample("pause"),
})

// Prepare implements Operation.
func (a PauseBackfill) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return backfillChange(ctx, c, a.Backfill, pauseBackfill, "paused", "the runs that it has made go on",
		pausing[*runs.Backfills](true))
}

// ResumeBackfill ends the pause of a backfill.
type ResumeBackfill struct {
	Backfill string `arg:"BACKFILL" of:"paused backfill" json:"-"`
}

var resumeBackfill = verb[ResumeBackfill](Verb{
	Name: "run backfill resume", Right: RightOperate,
	Short:   "Resume a paused backfill",
	Effect:  "It goes on with the next slot.",
	Help:    backfillHelp,
	Example: backfillExample("resume"),
})

// Prepare implements Operation.
func (a ResumeBackfill) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return backfillChange(ctx, c, a.Backfill, resumeBackfill, "resumed", "", pausing[*runs.Backfills](false))
}

// CancelBackfill ends a backfill and its open runs.
type CancelBackfill struct {
	Backfill string `arg:"BACKFILL" of:"open backfill" json:"-"`
}

var cancelBackfill = verb[CancelBackfill](Verb{
	Name: "run backfill cancel", Right: RightOperate,
	Short: "Cancel a backfill and its open runs",
	Effect: "Its open runs end, also those of the task types that run after its own. A worker notices within two " +
		"seconds; what it has started may still take effect. Runs that have ended stay as they are.",
	Help: `A new backfill of the range makes the other runs, and with --rerun-failed also
reruns the cancelled runs.

` + backfillHelp,
	Example: backfillExample("cancel"),
})

// Prepare implements Operation.
func (a CancelBackfill) Prepare(ctx context.Context, c *ops.Client) (*Change, error) {
	return backfillChange(ctx, c, a.Backfill, cancelBackfill, "cancelled", "", (*runs.Backfills).Cancel)
}

func backfillChange(
	ctx context.Context, c *ops.Client, name string, v *Verb, past, effect string,
	do func(b *runs.Backfills, ctx context.Context, id, actor string) error,
) (*Change, error) {
	if name == "" {
		return nil, missing("the backfill")
	}
	b, err := ops.FindBackfill(ctx, c, name)
	if err == nil && b.State != runs.BackfillRunning {
		err = fmt.Errorf("%s backfill %s: %w: it is %s", v.Word(), b.ID, runs.ErrBackfillState, b.State)
	}
	if err != nil {
		return nil, err
	}
	return &Change{
		Title:     fmt.Sprintf("%s the backfill of %s", v.Button(), b.TaskType),
		TaskTypes: []string{b.TaskType}, Says: []string{v.Effect},
		Objects: []Object{{
			ID: b.ID, Name: fmt.Sprintf("backfill %s (%s)", b.ID, b.TaskType), Past: past, Effect: effect,
			do: done(func(ctx context.Context, actor string) error { return do(c.Backfills(), ctx, b.ID, actor) }),
		}},
	}, nil
}
