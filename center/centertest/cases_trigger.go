package centertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

func testTriggerSlots(t *testing.T, c *center.Center, url string) {
	t.Run("R2 several workers fire a slot once", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		for i := range 5 {
			r.downSince(hour.Add(-time.Duration(5-i) * time.Hour))
			r.exec("DELETE FROM schedule_run WHERE task_type = '%s'", r.task)
			before := r.readTrigger(r.task).Fires
			var all sync.WaitGroup
			errs := make([]error, 4)
			for j := range errs {
				other := Open(t, url, center.Options{})
				all.Go(func() { errs[j] = second(other.Engine().Scheduler.Tick(t.Context(), r.task)) })
			}
			all.Wait()
			r.must(errors.Join(errs...))
			if list, fires := len(r.runStates()), r.readTrigger(r.task).Fires-before; list != 1 || fires != 1 {
				t.Fatalf("the slot has %d runs and %d firings, want 1 of each", list, fires)
			}
		}
	})
	t.Run("R2 a trigger that is defined again fires no slot twice", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		first, hour := r.hourly(nil)
		r.downSince(hour)
		r.tick()
		r.wantSlots(hour, "0s")
		r.must(c.Engine().Triggers.Delete(t.Context(), r.task, "test"))
		if again, _ := r.hourly(nil); again.ID != first.ID || again.Fires != 0 || !again.NextFireAt.Equal(hour.Add(time.Hour)) {
			t.Fatalf("the trigger is %+v, want id %s, no firings and the next in an hour", again, first.ID)
		}
		r.downSince(hour) // as after a clock that was set back, or a restored backup
		r.tick()
		r.wantSlots(hour, "0s")
		if now := r.readTrigger(r.task); !now.NextFireAt.Equal(hour.Add(time.Hour)) {
			t.Fatalf("the next firing is at %s, want %s", now.NextFireAt, hour.Add(time.Hour))
		}
	})
	t.Run("R3 one transaction makes up for few slots", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		begin := r.now().Truncate(time.Second).Add(-20 * time.Minute)
		for i := range 3 {
			r.defineTrigger(runs.Trigger{
				Name: fmt.Sprint(r.task, i), Kind: runs.TriggerEvery, Expression: "1s", StartAt: begin,
				Misfire: runs.MisfireAll, CatchupMax: 600,
			})
		}
		r.exec("UPDATE schedule_trigger SET next_fire_at = '%s' WHERE target = '%s'", begin.UTC().Format(timeLayout), r.task)
		made := func() int64 { return r.readInt("SELECT COUNT(*) FROM schedule_run WHERE task_type = '%s'", r.task) }
		ticked, err := c.Engine().Scheduler.Tick(t.Context(), r.task)
		if r.must(err); made() != 1200 || !ticked.More {
			t.Fatalf("%d runs after a tick, and more is due: %t; want those of two triggers, and more", made(), ticked.More)
		}
		_, err = c.Engine().Scheduler.Tick(t.Context(), r.task)
		if r.must(err); made() < 1800 {
			t.Fatalf("%d runs after the second tick, want those of all triggers", made())
		}
	})
	t.Run("R2 a trigger of kind ONCE that is defined again fires no slot twice", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		hour := r.now().Truncate(time.Hour)
		for range 2 {
			r.defineTrigger(runs.Trigger{Kind: runs.TriggerOnce, Expression: hour.Format(time.RFC3339)})
			r.tick()
			r.wantSlots(hour, "0s")
			if now := r.readTrigger(r.task); now.Status != runs.TriggerDone || !now.NextFireAt.IsZero() {
				t.Fatalf("the trigger is %+v, want DONE without a next firing", now)
			}
			r.must(c.Engine().Triggers.Delete(t.Context(), r.task, "test"))
		}
	})
}

func testTriggerStates(t *testing.T, c *center.Center) {
	t.Run("R2 a trigger with a bad row stops only itself", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		r.defineTrigger(runs.Trigger{Name: r.task + ".bad", Kind: runs.TriggerCron, Expression: "0 0 2 * * ?"})
		r.exec("UPDATE schedule_trigger SET expression = '0 0 99 * * ?', next_fire_at = '2020-01-01 00:00:00.000000' WHERE name = '%s.bad'", r.task)
		r.downSince(hour)
		r.tick()
		r.wantSlots(hour, "0s")
		bad := r.readTrigger(r.task + ".bad")
		if bad.Status != runs.TriggerError || !strings.Contains(bad.Message, `cron "0 0 99 * * ?"`) || bad.Fires != 0 {
			t.Fatalf("the trigger is %+v, want ERROR with a message about its expression and no firings", bad)
		}
		if err := c.Engine().Triggers.SetPaused(t.Context(), bad.Name, false, "test"); err == nil {
			t.Fatal("a trigger with a bad row was resumed")
		}
		r.exec("UPDATE schedule_trigger SET expression = '0 0 9 * * ?' WHERE name = '%s.bad'", r.task)
		r.must(c.Engine().Triggers.SetPaused(t.Context(), bad.Name, false, "test"))
		if now := r.readTrigger(bad.Name); now.Status != runs.TriggerActive || now.NextFireAt.Before(hour) {
			t.Fatalf("the trigger is %+v, want ACTIVE and due after %s", now, hour)
		}
	})
	t.Run("R2 one tick fires more triggers than it reads at a time", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		const many = 230
		for i := range many {
			r.defineTrigger(runs.Trigger{Name: fmt.Sprintf("%s.%03d", r.task, i), Kind: runs.TriggerEvery, Expression: "1h", Overlap: runs.OverlapWait})
		}
		r.exec("UPDATE schedule_trigger SET next_fire_at = start_at WHERE target = '%s'", r.task)
		r.tick()
		if n := r.readInt("SELECT COUNT(*) FROM schedule_trigger WHERE target = '%s' AND prev_fire_at IS NOT NULL AND version = 2", r.task); n != many {
			t.Fatalf("%d triggers fired, want %d", n, many)
		}
		if n := len(r.runStates()); n != many {
			t.Fatalf("the triggers made %d runs, want %d", n, many)
		}
	})
}

func testTriggerCommands(t *testing.T, c *center.Center) {
	t.Run("R4 fire now makes a run and does not change the trigger", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		before, _ := r.hourly(func(t *runs.Trigger) { t.Params, t.Priority = "x", 3 })
		for _, want := range []string{runs.Ready, runs.Skipped} {
			id, err := c.Engine().Triggers.Fire(t.Context(), r.task, "test")
			r.must(err)
			if run := r.wantState(id, want); run.Trigger != r.task || run.Params != "x" || run.Priority != 3 {
				t.Fatalf("the run is %+v, want trigger %s, params x and priority 3", run, r.task)
			}
		}
		if diff := cmp.Diff(before, r.readTrigger(r.task)); diff != "" {
			t.Fatalf("fire now changed the trigger (-before +after):\n%s", diff)
		}
	})
	t.Run("apply changes a trigger and keeps its history", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		made, hour := r.hourly(nil)
		if again, _ := r.hourly(func(t *runs.Trigger) { t.Expression = "2h" }); again.Expression != "1h" {
			t.Fatalf("the second definition changed the expression to %s, want 1h", again.Expression)
		}
		r.downSince(hour)
		r.tick()
		change := runs.Trigger{Name: r.task, Target: r.task, Kind: runs.TriggerEvery, Expression: "1h", StartAt: made.StartAt, Params: "new"}
		now, err := r.applyTrigger(change)
		if err != nil || now.Params != "new" || now.Fires != 1 || !now.NextFireAt.Equal(hour.Add(time.Hour)) {
			t.Fatalf("the trigger is %+v, want the new params, 1 firing and the next in an hour: %v", now, err)
		}
		r.must(c.Engine().Triggers.SetPaused(t.Context(), r.task, true, "test"))
		change.Expression = "4h"
		now, err = r.applyTrigger(change)
		if err != nil || now.Status != runs.TriggerPaused || now.Fires != 1 || !now.NextFireAt.Equal(made.StartAt.Add(12*time.Hour)) {
			t.Fatalf("the trigger is %+v, want it paused with 1 firing, the next 12 hours after its start: %v", now, err)
		}
		if diff := cmp.Diff(now, r.readTrigger(r.task)); diff != "" {
			t.Fatalf("row of the trigger (-returned +row):\n%s", diff)
		}
	})
	t.Run("apply refuses a trigger that is another one since it was compared", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		compare := func(params string) runs.TriggerDiff {
			d, err := ops.New(c).Triggers().Compare(t.Context(), runs.Trigger{Name: r.task, Target: r.task, Kind: runs.TriggerEvery, Expression: "1h", Params: params}, 0)
			r.must(err)
			return d
		}
		for _, theirs := range []string{"theirs", "others"} { // the trigger is new, and then it is changed
			overtaken := compare("mine")
			_, err := c.Engine().Triggers.Apply(t.Context(), compare(theirs), "test")
			r.must(err)
			if _, err := c.Engine().Triggers.Apply(t.Context(), overtaken, "test"); !errors.Is(err, ops.ErrChanged) {
				t.Errorf("error %v, want ErrChanged", err)
			}
			if now := r.readTrigger(r.task); now.Params != theirs {
				t.Errorf("the trigger has the parameters %q", now.Params)
			}
		}
	})
	t.Run("apply changes a trigger that has fired since it was compared", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		made, hour := r.hourly(nil)
		d, err := ops.New(c).Triggers().Compare(t.Context(), runs.Trigger{Name: r.task, Target: r.task, Kind: runs.TriggerEvery, Expression: "1h", StartAt: made.StartAt, Params: "new"}, 0)
		r.must(err)
		r.downSince(hour)
		r.tick()
		now, err := c.Engine().Triggers.Apply(t.Context(), d, "test")
		if err != nil || now.Params != "new" || now.Fires != 1 {
			t.Fatalf("the trigger is %+v, want the new params and 1 firing: %v", now, err)
		}
	})
}

// testTriggerChange checks that a slot is not lost that is due when its trigger is changed, although no worker was there
// to fire it.
func testTriggerChange(t *testing.T, c *center.Center) {
	apply := func(r *fixture, change func(*runs.Trigger)) runs.Trigger {
		r.Helper()
		now := r.readTrigger(r.task)
		change(&now)
		_, err := r.applyTrigger(now)
		r.must(err)
		return r.readTrigger(r.task)
	}
	halve := func(t *runs.Trigger) { t.Expression = "30m" }
	t.Run("R3 the slots that are due fire before a change", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		r.downSince(hour.Add(-2 * time.Hour))
		now := apply(r, halve)
		r.wantSlots(hour, "0s")
		if now.Missed != 2 || now.Fires != 1 || !now.NextFireAt.After(hour) || now.Expression != "30m" {
			t.Fatalf("the trigger is %+v, want two missed slots, one firing and the next after %s", now, hour)
		}
		r.wantProblems("SLOT_MISSED ii ACTIVE")
	})
	t.Run("R3 a change of the misfire policy does not touch the due slots", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		r.downSince(hour)
		apply(r, func(t *runs.Trigger) { t.Misfire = runs.MisfireAll })
		r.wantSlots(hour)
		r.tick()
		r.wantSlots(hour, "0s")
	})
	for name, stop := range map[string]func(*fixture){
		"paused": func(r *fixture) { r.must(c.Engine().Triggers.SetPaused(r.Context(), r.task, true, "test")) },
		"invalid": func(r *fixture) {
			r.exec("UPDATE schedule_trigger SET status = 'ERROR', expression = 'often' WHERE name = '%s'", r.task)
		},
	} {
		t.Run("R3 the due slots are missed if a trigger is changed that is "+name, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(nil)
			r.downSince(hour)
			stop(r)
			if now := apply(r, halve); now.Missed != 1 || !now.MissedAt.Equal(hour) || !now.NextFireAt.After(hour) {
				t.Fatalf("the trigger is %+v, want the slot %s missed", now, hour)
			}
			r.wantSlots(hour)
		})
	}
	for name, goOn := range map[string]func(*fixture){
		"resumed": func(r *fixture) { r.must(c.Engine().Triggers.SetPaused(r.Context(), r.task, false, "test")) },
		"changed": func(r *fixture) { apply(r, func(t *runs.Trigger) { t.Overlap = runs.OverlapWait }) },
	} {
		t.Run("R3 the due slots are missed if a trigger with a mended row is "+name, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(nil)
			r.downSince(hour.Add(-2 * time.Hour))
			r.exec("UPDATE schedule_trigger SET status = 'ERROR' WHERE name = '%s'", r.task)
			goOn(r)
			now := r.readTrigger(r.task)
			if now.Status != runs.TriggerActive || now.Missed != 3 || !now.MissedAt.Equal(hour) {
				t.Fatalf("the trigger is %+v, want it ACTIVE, with 3 slots missed until %s", now, hour)
			}
			r.wantSlots(hour)
		})
	}
	t.Run("R2 a trigger in ERROR that is paused stays paused when its row is mended", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.hourly(nil)
		r.exec("UPDATE schedule_trigger SET status = 'ERROR', expression = 'often' WHERE name = '%s'", r.task)
		r.must(c.Engine().Triggers.SetPaused(t.Context(), r.task, true, "test"))
		if now := apply(r, halve); now.Status != runs.TriggerPaused {
			t.Fatalf("the trigger is %+v, want PAUSED", now)
		}
	})
	t.Run("R3 the due slots are missed if a trigger gets another target", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		other := r.sibling("other")
		other.define(center.Settings{Mode: center.ModeRun, Queues: 1})
		_, hour := r.hourly(nil)
		r.downSince(hour)
		if now := apply(r, func(t *runs.Trigger) { t.Target = other.task }); now.Missed != 1 || now.Target != other.task {
			t.Fatalf("the trigger is %+v, want one missed slot and target %s", now, other.task)
		}
		r.wantSlots(hour)
	})
	t.Run("R3 the slots that are due fire before the settings change the schedule", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		r.downSince(hour)
		a, err := ops.New(c).Tasks().Compare(t.Context(), r.task, center.Settings{Mode: center.ModeRun, Queues: 1, Every: 30 * time.Minute})
		r.must(err)
		r.must(ops.New(c).Tasks().Apply(t.Context(), a, "test"))
		r.wantSlots(hour, "0s")
		if now := r.readTrigger(r.task); now.Expression != "30m0s" || now.Fires != 1 {
			t.Fatalf("the trigger is %+v, want it to fire every 30m0s, after one firing", now)
		}
	})
}

// farFuture is a time after which no database has room for a limit.
var farFuture = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func testTriggerErrors(t *testing.T, c *center.Center) {
	t.Run("errors name the setting and the rule", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		define := func(change func(*runs.Trigger)) error {
			trigger := runs.Trigger{Name: r.task, Target: r.task, Kind: runs.TriggerCron, Expression: "0 0 2 * * ?"}
			change(&trigger)
			_, err := r.applyTrigger(trigger)
			return err
		}
		wantErrors(t, map[string]error{
			"target \"nobody\": unknown task type":  define(func(t *runs.Trigger) { t.Target = "nobody" }),
			`kind ("HOURLY") must be CRON, EVERY`:   define(func(t *runs.Trigger) { t.Kind = "HOURLY" }),
			"expression: cron":                      define(func(t *runs.Trigger) { t.Expression = "0 2 * * ?" }),
			`time_zone ("Mars") must be`:            define(func(t *runs.Trigger) { t.TimeZone = "Mars" }),
			`misfire ("TWO") must be ONE, SKIP`:     define(func(t *runs.Trigger) { t.Misfire = "TWO" }),
			"misfire_after (-1s) must be from 1ms":  define(func(t *runs.Trigger) { t.MisfireAfter = -time.Second }),
			"misfire_after (1.5ms) must be from 1":  define(func(t *runs.Trigger) { t.MisfireAfter = 1500 * time.Microsecond }),
			"misfire_after (100000h0m0s) must be f": define(func(t *runs.Trigger) { t.MisfireAfter = 100_000 * time.Hour }),
			"catchup_max (-1) must be between 1":    define(func(t *runs.Trigger) { t.CatchupMax = -1 }),
			`overlap ("BOTH") must be SKIP or WAIT`: define(func(t *runs.Trigger) { t.Overlap = "BOTH" }),
			"max_fires (-1) must be between 0 and":  define(func(t *runs.Trigger) { t.MaxFires = -1 }),
			"max_fires (2000000000000) must be bet": define(func(t *runs.Trigger) { t.MaxFires = 2_000_000_000_000 }),
			"priority (2000000000000000000) must b": define(func(t *runs.Trigger) { t.Priority = 2_000_000_000_000_000_000 }),
			"end_at (9999-01-01T00:00:00Z) must be": define(func(t *runs.Trigger) { t.EndAt = farFuture }),
			"start_at (9999-01-01T00:00:00Z) must ": define(func(t *runs.Trigger) { t.StartAt = farFuture }),
			"expression (9999-01-01T00:00:00Z) of ": define(func(t *runs.Trigger) { t.Kind, t.Expression = runs.TriggerOnce, "9999-01-01T00:00:00Z" }),
			"must not be before start_at":           define(func(t *runs.Trigger) { t.StartAt, t.EndAt = time.Unix(2000, 0), time.Unix(1000, 0) }),
			"trigger must not be empty":             define(func(t *runs.Trigger) { t.Name = "" }),
			"delete trigger x: unknown trigger":     c.Engine().Triggers.Delete(t.Context(), "x", "test"),
			"pause trigger x: unknown trigger":      c.Engine().Triggers.SetPaused(t.Context(), "x", true, "test"),
			"fire trigger x: unknown trigger":       second(c.Engine().Triggers.Fire(t.Context(), "x", "test")),
		})
	})
}
