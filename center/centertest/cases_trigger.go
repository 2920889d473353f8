package centertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dutyrota/rota/center"
)

const timeLayout = "2006-01-02 15:04:05.000000"

// now reads the database's clock.
func (r *fixture) now() time.Time {
	r.Helper()
	ticked, err := r.c.Engine().Tick(r.Context(), r.task)
	r.must(err)
	return ticked.Now
}

// defineTrigger makes a trigger of the task type. The default name is the task type's.
func (r *fixture) defineTrigger(t center.Trigger) center.Trigger {
	r.Helper()
	if t.Name == "" {
		t.Name = r.task
	}
	t.Target = r.task
	now, err := r.c.Engine().DefineTrigger(r.Context(), t)
	r.must(err)
	return now
}

// hourly is due at each full hour of the database's clock from ten hours ago on.
func (r *fixture) hourly(change func(*center.Trigger)) (t center.Trigger, hour time.Time) {
	r.Helper()
	hour = r.now().Truncate(time.Hour)
	t = center.Trigger{Kind: center.TriggerEvery, Expression: "1h", StartAt: hour.Add(-10 * time.Hour), MisfireAfter: 3 * time.Hour}
	if change != nil {
		change(&t)
	}
	return r.defineTrigger(t), hour
}

// downSince resets the trigger as if no worker had ticked since the slot.
func (r *fixture) downSince(slot time.Time) {
	r.Helper()
	r.exec("UPDATE schedule_trigger SET next_fire_at = '%s' WHERE name = '%s'", slot.UTC().Format(timeLayout), r.task)
}

func (r *fixture) readTrigger(name string) center.Trigger {
	r.Helper()
	triggers, err := r.c.Engine().Triggers(r.Context())
	r.must(err)
	for _, t := range triggers {
		if t.Name == name {
			return t
		}
	}
	r.Fatalf("no trigger %s", name)
	return center.Trigger{}
}

// runSlots returns for each run how many hours its slot lies before an hour.
func (r *fixture) runSlots(hour time.Time) (ago []string) {
	r.Helper()
	runs, err := r.c.Engine().Runs(r.Context(), r.task, 100)
	r.must(err)
	for _, run := range slices.Backward(runs) {
		ago = append(ago, fmt.Sprint(hour.Sub(run.ScheduledAt)))
	}
	return ago
}

func (r *fixture) wantSlots(hour time.Time, want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.runSlots(hour), cmpopts.EquateEmpty()); diff != "" {
		r.Fatalf("slots of the runs (-want +got):\n%s", diff)
	}
}

func testTriggers(t *testing.T, c *center.Center, url string) {
	t.Run("R2 a slot fired by several workers at once", func(t *testing.T) {
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
				all.Go(func() { errs[j] = second(other.Engine().Tick(t.Context(), r.task)) })
			}
			all.Wait()
			r.must(errors.Join(errs...))
			if runs, fires := len(r.runStates()), r.readTrigger(r.task).Fires-before; runs != 1 || fires != 1 {
				t.Fatalf("%d runs, %d firings", runs, fires)
			}
		}
	})
	t.Run("R2 a trigger made again fires no slot twice", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		first, hour := r.hourly(nil)
		r.downSince(hour)
		r.tick()
		r.wantSlots(hour, "0s")
		r.must(c.Engine().DeleteTrigger(t.Context(), r.task, "test"))
		if again, _ := r.hourly(nil); again.ID != first.ID || again.Fires != 0 || !again.NextFireAt.Equal(hour.Add(time.Hour)) {
			t.Fatalf("%+v", again)
		}
		r.downSince(hour) // as after a clock that was set back, or a restored backup
		r.tick()
		r.wantSlots(hour, "0s")
		if now := r.readTrigger(r.task); !now.NextFireAt.Equal(hour.Add(time.Hour)) {
			t.Fatalf("it does not advance: %+v", now)
		}
	})
	t.Run("R2 ONCE, made again", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		hour := r.now().Truncate(time.Hour)
		for range 2 {
			r.defineTrigger(center.Trigger{Kind: center.TriggerOnce, Expression: hour.Format(time.RFC3339)})
			r.tick()
			r.wantSlots(hour, "0s")
			if now := r.readTrigger(r.task); now.Status != center.TriggerDone || !now.NextFireAt.IsZero() {
				t.Fatalf("%+v", now)
			}
			r.must(c.Engine().DeleteTrigger(t.Context(), r.task, "test"))
		}
	})
	for name, tt := range map[string]struct {
		change func(*center.Trigger)
		down   time.Duration // the age of the first slot that no worker saw
		want   []string
		missed int64
	}{
		"ONE":             {nil, 5 * time.Hour, []string{"0s"}, 5},
		"SKIP, young":     {func(t *center.Trigger) { t.Misfire = center.MisfireSkip }, 5 * time.Hour, []string{"0s"}, 5},
		"SKIP, old":       {func(t *center.Trigger) { t.Misfire, t.Expression = center.MisfireSkip, "9h" }, 10 * time.Hour, []string{"1h0m0s"}, 1},
		"SKIP, too old":   {func(t *center.Trigger) { t.Misfire, t.Expression = center.MisfireSkip, "6h" }, 4 * time.Hour, nil, 1},
		"ALL":             {func(t *center.Trigger) { t.Misfire = center.MisfireAll }, 2 * time.Hour, []string{"2h0m0s", "1h0m0s", "0s"}, 0},
		"ALL, at most":    {func(t *center.Trigger) { t.Misfire, t.CatchupMax = center.MisfireAll, 2 }, 5 * time.Hour, []string{"1h0m0s", "0s"}, 4},
		"ALL, max_fires":  {func(t *center.Trigger) { t.Misfire, t.MaxFires = center.MisfireAll, 1 }, 5 * time.Hour, []string{"0s"}, 5},
		"ALL, until then": {func(t *center.Trigger) { t.Misfire, t.EndAt = center.MisfireAll, t.StartAt.Add(6*time.Hour) }, 5 * time.Hour, []string{"5h0m0s", "4h0m0s"}, 0},
	} {
		fires := func(t *testing.T, r *fixture, hour time.Time) {
			r.tick()
			r.wantSlots(hour, tt.want...)
			if now := r.readTrigger(r.task); now.Missed != tt.missed || now.Fires != int64(len(tt.want)) {
				t.Fatalf("%+v", now)
			}
			for _, state := range r.runStates() {
				if state == center.RunSkipped {
					t.Fatal("a caught-up run was skipped because of another one")
				}
			}
		}
		t.Run("R3 downtime: "+name, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(tt.change)
			if tt.change != nil && r.readTrigger(r.task).Status == center.TriggerDone { // its end has passed
				r.exec("UPDATE schedule_trigger SET status = 'ACTIVE' WHERE name = '%s'", r.task)
			}
			r.downSince(hour.Add(-tt.down))
			fires(t, r, hour)
		})
		t.Run("R3 slots missed while paused: "+name, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(tt.change)
			r.exec("UPDATE schedule_trigger SET status = 'ACTIVE' WHERE name = '%s'", r.task)
			r.must(c.Engine().PauseTrigger(t.Context(), r.task, true, "test"))
			r.downSince(hour.Add(-tt.down))
			r.tick()
			r.wantSlots(hour)
			r.must(c.Engine().PauseTrigger(t.Context(), r.task, false, "test"))
			fires(t, r, hour)
		})
	}
	for overlap, want := range map[string][]string{
		center.OverlapSkip: {"RUNNING", "SKIPPED", "SKIPPED", "SKIPPED"},
		center.OverlapWait: {"RUNNING", "READY", "SKIPPED", "SKIPPED"},
	} {
		t.Run("R4 a run longer than its interval: "+overlap, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(func(t *center.Trigger) { t.Overlap = overlap })
			for ago := 3; ago >= 0; ago-- {
				slot := hour.Add(-time.Duration(ago) * time.Hour)
				r.downSince(slot)
				r.exec("UPDATE schedule_trigger SET end_at = '%s' WHERE name = '%s'", slot.Format(timeLayout), r.task) // as if it were then
				r.exec("UPDATE schedule_trigger SET status = 'ACTIVE' WHERE name = '%s'", r.task)
				r.tick()
			}
			r.wantRunStates(want...)
			runs, err := c.Engine().Runs(t.Context(), r.task, 10)
			r.must(err)
			if !strings.Contains(runs[0].Message, runs[3].ID+" is RUNNING") || runs[0].FinishedAt.IsZero() {
				t.Fatalf("why it is skipped: %+v", runs[0])
			}
			r.finishAll("A", "0")
			if ticked := r.tick(); (ticked.Open != "") != (overlap == center.OverlapWait) {
				t.Fatalf("%+v", ticked)
			}
		})
	}
	t.Run("R2 a bad expression stops its own trigger only", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		r.defineTrigger(center.Trigger{Name: r.task + ".bad", Kind: center.TriggerCron, Expression: "0 0 2 * * ?"})
		r.exec("UPDATE schedule_trigger SET expression = '0 0 99 * * ?', next_fire_at = '2020-01-01 00:00:00.000000' WHERE name = '%s.bad'", r.task)
		r.downSince(hour)
		r.tick()
		r.wantSlots(hour, "0s")
		bad := r.readTrigger(r.task + ".bad")
		if bad.Status != center.TriggerError || !strings.Contains(bad.Message, `cron "0 0 99 * * ?"`) || bad.Fires != 0 {
			t.Fatalf("%+v", bad)
		}
		if err := c.Engine().PauseTrigger(t.Context(), bad.Name, false, "test"); err == nil {
			t.Fatal("resumed although its row makes no sense")
		}
		r.exec("UPDATE schedule_trigger SET expression = '0 0 9 * * ?' WHERE name = '%s.bad'", r.task)
		r.must(c.Engine().PauseTrigger(t.Context(), bad.Name, false, "test"))
		if now := r.readTrigger(bad.Name); now.Status != center.TriggerActive || now.NextFireAt.Before(hour) {
			t.Fatalf("%+v", now)
		}
	})
	t.Run("R2 more triggers than a page", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		const many = 230
		for i := range many {
			r.defineTrigger(center.Trigger{Name: fmt.Sprintf("%s.%03d", r.task, i), Kind: center.TriggerEvery, Expression: "1h", Overlap: center.OverlapWait})
		}
		r.exec("UPDATE schedule_trigger SET next_fire_at = start_at WHERE target = '%s'", r.task)
		r.tick()
		if n := r.readInt("SELECT COUNT(*) FROM schedule_trigger WHERE target = '%s' AND fires = 1 AND version = 2", r.task); n != many {
			t.Fatalf("%d of %d fired", n, many)
		}
		if n := len(r.runStates()); n != many {
			t.Fatalf("%d runs", n)
		}
	})
	t.Run("fire now", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		before, _ := r.hourly(func(t *center.Trigger) { t.Params, t.Priority = "x", 3 })
		for _, want := range []string{center.RunReady, center.RunSkipped} {
			id, err := c.Engine().FireTrigger(t.Context(), r.task, "test")
			r.must(err)
			if run := r.wantState(id, want); run.Trigger != r.task || run.Params != "x" || run.Priority != 3 {
				t.Fatalf("%+v", run)
			}
		}
		if diff := cmp.Diff(before, r.readTrigger(r.task)); diff != "" {
			t.Fatalf("the trigger has changed (-before +after):\n%s", diff)
		}
	})
	t.Run("apply", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		made, hour := r.hourly(nil)
		if again, _ := r.hourly(func(t *center.Trigger) { t.Expression = "2h" }); again.Expression != "1h" {
			t.Fatalf("defined twice: %+v", again)
		}
		r.downSince(hour)
		r.tick()
		change := center.Trigger{Name: r.task, Target: r.task, Kind: center.TriggerEvery, Expression: "1h", StartAt: made.StartAt, Params: "new"}
		now, err := c.Engine().ApplyTrigger(t.Context(), change, "test")
		if err != nil || now.Params != "new" || now.Fires != 1 || !now.NextFireAt.Equal(hour.Add(time.Hour)) {
			t.Fatalf("%+v, %v", now, err)
		}
		r.must(c.Engine().PauseTrigger(t.Context(), r.task, true, "test"))
		change.Expression = "4h"
		now, err = c.Engine().ApplyTrigger(t.Context(), change, "test")
		if err != nil || now.Status != center.TriggerPaused || now.Fires != 1 || !now.NextFireAt.Equal(made.StartAt.Add(12*time.Hour)) {
			t.Fatalf("%+v, %v", now, err)
		}
		if diff := cmp.Diff(now, r.readTrigger(r.task)); diff != "" {
			t.Fatalf("the row is another (-returned +row):\n%s", diff)
		}
	})
	t.Run("bad input", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		define := func(change func(*center.Trigger)) error {
			trigger := center.Trigger{Name: r.task, Target: r.task, Kind: center.TriggerCron, Expression: "0 0 2 * * ?"}
			change(&trigger)
			_, err := c.Engine().ApplyTrigger(t.Context(), trigger, "test")
			return err
		}
		for want, err := range map[string]error{
			"target nobody: unknown task type":      define(func(t *center.Trigger) { t.Target = "nobody" }),
			`kind ("HOURLY") must be CRON, EVERY`:   define(func(t *center.Trigger) { t.Kind = "HOURLY" }),
			"expression: cron":                      define(func(t *center.Trigger) { t.Expression = "0 2 * * ?" }),
			`time_zone ("Mars") must be`:            define(func(t *center.Trigger) { t.TimeZone = "Mars" }),
			`misfire ("TWO") must be ONE, SKIP`:     define(func(t *center.Trigger) { t.Misfire = "TWO" }),
			"misfire_after (-1s) must be at least":  define(func(t *center.Trigger) { t.MisfireAfter = -time.Second }),
			"catchup_max (-1) must be between 1":    define(func(t *center.Trigger) { t.CatchupMax = -1 }),
			`overlap ("BOTH") must be SKIP or WAIT`: define(func(t *center.Trigger) { t.Overlap = "BOTH" }),
			"max_fires (-1) must not be negative":   define(func(t *center.Trigger) { t.MaxFires = -1 }),
			"must not be before start_at":           define(func(t *center.Trigger) { t.StartAt, t.EndAt = time.Unix(2000, 0), time.Unix(1000, 0) }),
			"trigger must not be empty":             define(func(t *center.Trigger) { t.Name = "" }),
			"delete trigger x: unknown trigger":     c.Engine().DeleteTrigger(t.Context(), "x", "test"),
			"pause trigger x: unknown trigger":      c.Engine().PauseTrigger(t.Context(), "x", true, "test"),
			"fire trigger x: unknown trigger":       second(c.Engine().FireTrigger(t.Context(), "x", "test")),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	})
}
