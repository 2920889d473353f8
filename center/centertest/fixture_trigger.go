package centertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dutyrota/rota/center"
)

// timeLayout is how the tables write a time.
const timeLayout = "2006-01-02 15:04:05.000000"

// now reads the database's clock.
func (r *fixture) now() time.Time {
	r.Helper()
	ticked, err := r.c.Engine().Scheduler.Tick(r.Context(), r.task)
	r.must(err)
	return ticked.Now
}

// defineTrigger defines a trigger of the task type. Its name is the task type's unless t has one.
func (r *fixture) defineTrigger(t center.Trigger) center.Trigger {
	r.Helper()
	if t.Name == "" {
		t.Name = r.task
	}
	t.Target = r.task
	now, err := r.c.Engine().Triggers.Define(r.Context(), t)
	r.must(err)
	return now
}

// hourly defines a trigger that is due at each full hour of the database's clock, from ten hours ago on. It returns the
// trigger and the last full hour.
func (r *fixture) hourly(change func(*center.Trigger)) (t center.Trigger, hour time.Time) {
	r.Helper()
	hour = r.now().Truncate(time.Hour)
	t = center.Trigger{Kind: center.TriggerEvery, Expression: "1h", StartAt: hour.Add(-10 * time.Hour), MisfireAfter: 3 * time.Hour}
	if change != nil {
		change(&t)
	}
	return r.defineTrigger(t), hour
}

// downSince resets the trigger of the task type as if no worker had ticked since the slot.
func (r *fixture) downSince(slot time.Time) {
	r.Helper()
	r.exec("UPDATE schedule_trigger SET next_fire_at = '%s' WHERE name = '%s'", slot.UTC().Format(timeLayout), r.task)
}

// readTrigger reads a trigger by its name.
func (r *fixture) readTrigger(name string) center.Trigger {
	r.Helper()
	list, err := r.c.Engine().Triggers.List(r.Context(), center.TriggerFilter{Name: name})
	r.must(err)
	if len(list) != 1 {
		r.Fatalf("%d triggers %s, want 1", len(list), name)
	}
	return list[0].Trigger
}

// runSlots returns how long before an hour the slot of each run was, oldest first.
func (r *fixture) runSlots(hour time.Time) (ago []string) {
	r.Helper()
	runs, err := r.c.Engine().Runs.List(r.Context(), center.RunFilter{TaskType: r.task}, 100)
	r.must(err)
	for _, run := range slices.Backward(runs) {
		ago = append(ago, fmt.Sprint(hour.Sub(run.ScheduledAt)))
	}
	return ago
}

func (r *fixture) wantSlots(hour time.Time, want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.runSlots(hour), cmpopts.EquateEmpty()); diff != "" {
		r.Fatalf("slots of the runs, before the last full hour (-want +got):\n%s", diff)
	}
}
