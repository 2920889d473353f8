package centertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// timeLayout is how the tables write a time.
const timeLayout = "2006-01-02 15:04:05.000000"

// triggerSteps are what a case does with the triggers of its task type.
type triggerSteps struct {
	*taskType
	slot time.Time // the last slot of hourly
}

// now reads the database's clock.
func (r *triggerSteps) now() time.Time {
	r.Helper()
	ticked, err := r.c.Engine().Scheduler.Tick(r.Context(), r.task)
	r.must(err)
	return ticked.Now
}

// defineTrigger defines a trigger of the task type. Its name is the task type's unless t has one.
func (r *triggerSteps) defineTrigger(t runs.Trigger) runs.Trigger {
	r.Helper()
	if t.Name == "" {
		t.Name = r.task
	}
	t.Target = r.task
	now, err := r.c.Engine().Triggers.Define(r.Context(), t)
	r.must(err)
	return now
}

// applyTrigger compares a trigger with what is in force, and writes it.
func (r *triggerSteps) applyTrigger(t runs.Trigger) (runs.Trigger, error) {
	d, err := ops.New(r.c).Triggers().Compare(r.Context(), t, 0)
	if err != nil {
		return runs.Trigger{}, err
	}
	return r.c.Engine().Triggers.Apply(r.Context(), d, "test")
}

// hourly defines a trigger with a slot in each hour, from ten hours before its last slot on. It returns the trigger and
// the last slot. That is half an hour ago at the first call, and the same at later calls, so that no slot becomes due
// during the case.
func (r *triggerSteps) hourly(change func(*runs.Trigger)) (t runs.Trigger, last time.Time) {
	r.Helper()
	if r.slot.IsZero() {
		r.slot = r.now().Add(-30 * time.Minute).Truncate(time.Second)
	}
	t = runs.Trigger{Kind: runs.TriggerEvery, Expression: "1h", StartAt: r.slot.Add(-10 * time.Hour), MisfireAfter: 3 * time.Hour}
	if change != nil {
		change(&t)
	}
	return r.defineTrigger(t), r.slot
}

// downSince resets the trigger of the task type as if no worker had ticked since the slot.
func (r *triggerSteps) downSince(slot time.Time) {
	r.Helper()
	r.exec("UPDATE schedule_trigger SET next_fire_at = '%s' WHERE name = '%s'", slot.UTC().Format(timeLayout), r.task)
}

// readTrigger reads a trigger by its name.
func (r *triggerSteps) readTrigger(name string) runs.Trigger {
	r.Helper()
	list, err := r.c.Engine().Triggers.List(r.Context(), runs.TriggerFilter{Name: name})
	r.must(err)
	if len(list) != 1 {
		r.Fatalf("%d triggers %s, want 1", len(list), name)
	}
	return list[0].Trigger
}

// runSlots returns how long before the given slot the slot of each run was, oldest first.
func (r *triggerSteps) runSlots(last time.Time) (ago []string) {
	r.Helper()
	list, err := r.c.Engine().Runs.List(r.Context(), runs.Filter{TaskType: r.task}, 100)
	r.must(err)
	for _, run := range slices.Backward(list) {
		ago = append(ago, fmt.Sprint(last.Sub(run.ScheduledAt)))
	}
	return ago
}

func (r *triggerSteps) wantSlots(last time.Time, want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.runSlots(last), cmpopts.EquateEmpty()); diff != "" {
		r.Fatalf("slots of the runs, before the last slot (-want +got):\n%s", diff)
	}
}
