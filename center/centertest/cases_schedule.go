package centertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
)

var nightly = center.Settings{Mode: center.ModeRun, Queues: 2, Cron: "0 0 2 * * ?", TimeZone: "Europe/Berlin"}

// testSchedule: cron, every and after among the settings.
func testSchedule(t *testing.T, c *center.Center, url string) {
	t.Run("the first definition makes the trigger", func(t *testing.T) {
		r := newFixture(t, c, nightly)
		r.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
		made := r.readTrigger(r.task)
		r.define(center.Settings{Mode: center.ModeRun, Queues: 2, Every: time.Hour})
		if diff := cmp.Diff(made, r.readTrigger(r.task)); diff != "" {
			t.Fatalf("the row was changed by another definition:\n%s", diff)
		}
		row, err := c.Tasks().Settings(t.Context(), r.task)
		r.must(err)
		want := []center.Difference{{Name: "every", Given: "1h0m0s", Row: "not set"}}
		if diff := cmp.Diff(want, (center.Settings{Mode: center.ModeRun, Every: time.Hour}).DiffersFrom(row)); diff != "" {
			t.Fatal(diff)
		}
		if diffs := nightly.DiffersFrom(row); len(diffs) > 0 {
			t.Fatal(diffs)
		}
	})
	t.Run("a trigger that is deleted stays so", func(t *testing.T) {
		r := newFixture(t, c, nightly)
		r.must(c.Engine().DeleteTrigger(t.Context(), r.task, "test"))
		r.define(nightly)
		r.wantTrigger()
	})
	t.Run("each environment has its own", func(t *testing.T) {
		r := newFixture(t, c, nightly)
		other := newFixture(t, Open(t, url, center.Options{OwnSign: "OTHER"}), nightly)
		other.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
		r.must(other.c.Engine().DeleteTrigger(t.Context(), r.task, "test"))
		r.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
	})
	t.Run("none where the row says CONTINUOUS", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		newFixture(t, Open(t, url, center.Options{OwnSign: "OTHER"}), nightly).wantTrigger()
		r.wantTrigger()
	})
	t.Run("after", func(t *testing.T) { testAfterSettings(t, c) })
	t.Run("apply", func(t *testing.T) { testApplySchedule(t, c) })
	t.Run("the task type is deleted", func(t *testing.T) { testDeleteRuns(t, c) })
	t.Run("the environment is forgotten", func(t *testing.T) { testForgottenRuns(t, c, url) })
}

// wantTrigger compares the triggers that fire the task type, by name.
func (r *fixture) wantTrigger(want ...string) {
	r.Helper()
	triggers, err := r.c.Engine().Triggers(r.Context())
	r.must(err)
	var got []string
	for _, t := range triggers {
		if t.Target == r.task {
			got = append(got, t.Kind+" "+t.Expression+" "+t.TimeZone)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("triggers (-want +got):\n%s", diff)
	}
}

func (r *fixture) wantAfter(want ...center.After) {
	r.Helper()
	got, err := r.c.Engine().After(r.Context(), r.task)
	r.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("it runs after (-want +got):\n%s", diff)
	}
}

func testAfterSettings(t *testing.T, c *center.Center) {
	up := newRunFixture(t, c, 1)
	s := center.Settings{Mode: center.ModeRun, Queues: 1, After: []center.After{{Upstream: up.task}, {Upstream: up.task + ".late", Rule: center.RuleFinished}}}
	r := &fixture{T: t, c: c, task: up.task + ".down", tokens: map[string]string{}}
	_, err := c.Tasks().Define(t.Context(), r.task, s)
	if !errors.Is(err, center.ErrUnknownTask) || !strings.Contains(err.Error(), "after "+up.task+".late: ") {
		t.Fatal(err)
	}
	if _, err := c.Tasks().List(t.Context(), r.task); !errors.Is(err, center.ErrUnknownTask) {
		t.Fatalf("half of the task type was made: %v", err)
	}
	late := &fixture{T: t, c: c, task: up.task + ".late", tokens: map[string]string{}}
	late.define(center.Settings{Mode: center.ModeRun, Queues: 1})
	r.define(s)
	want := []center.After{{Upstream: up.task, Rule: center.RuleSuccess}, {Upstream: late.task, Rule: center.RuleFinished}}
	r.wantAfter(want...)
	r.define(center.Settings{Mode: center.ModeRun, Queues: 1})
	r.wantAfter(want...)
	row, err := c.Tasks().Settings(t.Context(), r.task)
	r.must(err)
	if diffs := s.DiffersFrom(row); len(diffs) > 0 {
		t.Fatal(diffs)
	}
	if err := c.Tasks().Delete(t.Context(), late.task, "test"); err == nil || !strings.Contains(err.Error(), r.task+" runs after it: change "+r.task+" first") {
		t.Fatal(err)
	}
	r.must(c.Tasks().Delete(t.Context(), r.task, "test"))
	r.must(c.Tasks().Delete(t.Context(), late.task, "test"))
}

// apply makes the database say what the settings say, and returns the names of what was different.
func (r *fixture) apply(s center.Settings) (changed []string) {
	r.Helper()
	a, err := r.c.Tasks().Compare(r.Context(), r.task, s)
	r.must(err)
	for _, d := range a.Changes {
		changed = append(changed, d.Name+": "+d.Row+" -> "+d.Given)
	}
	r.must(r.c.Tasks().Apply(r.Context(), r.task, s, a, "test"))
	if a, err = r.c.Tasks().Compare(r.Context(), r.task, s); err != nil || !a.Same() {
		r.Fatalf("still to do: %+v, %v", a, err)
	}
	return changed
}

func (r *fixture) wantApplied(s center.Settings, want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.apply(s)); diff != "" {
		r.Fatalf("changes (-want +got):\n%s", diff)
	}
}

func testApplySchedule(t *testing.T, c *center.Center) {
	up := newRunFixture(t, c, 1)
	r := &fixture{T: t, c: c, task: up.task + ".applied", tokens: map[string]string{}}
	r.define(center.Settings{Mode: center.ModeRun, Queues: 2})
	r.wantTrigger()
	r.wantApplied(nightly, "time_zone: UTC -> Europe/Berlin", "cron:  -> 0 0 2 * * ?")
	r.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
	_, err := c.Engine().ApplyTrigger(t.Context(), center.Trigger{Name: r.task, Target: r.task, Kind: center.TriggerCron, Expression: "0 0 3 * * ?", Overlap: center.OverlapWait}, "test")
	r.must(err)
	r.wantApplied(nightly, "time_zone: UTC -> Europe/Berlin", "cron: 0 0 3 * * ? -> 0 0 2 * * ?")
	if trigger := r.readTrigger(r.task); trigger.Overlap != center.OverlapWait {
		t.Fatalf("what the settings do not speak of has changed: %+v", trigger)
	}
	version, other := r.readTrigger(r.task).Version, nightly
	other.ExecuteNumber = 7
	r.wantApplied(other, "execute_number: 1 -> 7")
	if now := r.readTrigger(r.task).Version; now != version {
		t.Fatal("the trigger was written, although it is the same")
	}
	hourly := center.Settings{Mode: center.ModeRun, Queues: 2, Every: time.Hour, After: []center.After{{Upstream: up.task}}}
	r.wantApplied(hourly, "execute_number: 7 -> 1", "time_zone: Europe/Berlin -> UTC", "cron: 0 0 2 * * ? -> ", "every:  -> 1h0m0s", "after:  -> "+up.task)
	r.wantTrigger("EVERY 1h0m0s UTC")
	r.wantAfter(center.After{Upstream: up.task, Rule: center.RuleSuccess})
	counted := r.readTrigger(r.task).StartAt
	hourly.Every = 2 * time.Hour
	r.wantApplied(hourly, "every: 1h0m0s -> 2h0m0s")
	if at := r.readTrigger(r.task).StartAt; !at.Equal(counted) {
		t.Fatalf("the slots are counted from %s, and were from %s", at, counted)
	}
	r.wantApplied(center.Settings{Mode: center.ModeRun, Queues: 2}, "every: 2h0m0s -> ", "after: "+up.task+" -> ")
	r.wantTrigger()
	r.wantAfter()

	r.must(c.Tasks().Delete(t.Context(), r.task, "test"))
	elsewhere := up.defineTrigger(center.Trigger{Name: r.task, Kind: center.TriggerCron, Expression: "0 0 1 * * ?"})
	r.define(center.Settings{Mode: center.ModeRun, Queues: 2})
	a, err := c.Tasks().Compare(t.Context(), r.task, nightly)
	r.must(err)
	err = c.Tasks().Apply(t.Context(), r.task, nightly, a, "test")
	if err == nil || !strings.Contains(err.Error(), "trigger "+r.task+" has the name of this task type, and fires "+up.task) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(elsewhere, up.readTrigger(r.task)); diff != "" {
		t.Fatal(diff)
	}
}

// testDeleteRuns: with a task type its triggers go, and its open runs end; what has ended is kept.
func testDeleteRuns(t *testing.T, c *center.Center) {
	r := newFixture(t, c, nightly)
	r.join("A")
	ended := r.submitAndOpen("ended")
	r.finishAll("A", "0", "1")
	down := &fixture{T: t, c: c, task: r.task + ".down", tokens: map[string]string{}}
	down.define(center.Settings{Mode: center.ModeRun, Queues: 1})
	open, ready := r.submitAndOpen("open"), r.submit("ready")
	waits := down.submit("waits", open)
	r.makeSilent("A")
	r.must(c.Tasks().Delete(t.Context(), r.task, "test"))
	r.wantTrigger()
	r.wantState(ended, center.RunSuccess)
	r.wantState(open, center.RunCancelled)
	r.wantQueueStates(open, "0 CANCELLED", "1 CANCELLED")
	r.wantState(ready, center.RunCancelled)
	down.tick()
	down.wantState(waits, center.RunDependentFailed)
	r.define(nightly)
	r.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
}

// testForgottenRuns: an environment that is forgotten takes the trigger of the settings along, but not an operator's.
func testForgottenRuns(t *testing.T, c *center.Center, url string) {
	base := newFixture(t, c, nightly)
	base.join("A")
	signs := map[string]*fixture{}
	for _, sign := range []string{"CODE", "OPERATOR"} {
		signs[sign] = newFixture(t, Open(t, url, center.Options{OwnSign: sign}), nightly)
	}
	id := signs["CODE"].submit("")
	signs["OPERATOR"].defineTrigger(center.Trigger{Name: t.Name(), Kind: center.TriggerCron, Expression: "0 0 1 * * ?"})
	base.exec("UPDATE schedule_queue SET gmt_modified = '2020-01-01 00:00:00.000000' WHERE task_type = '%s'", base.task)
	p, _ := base.heartbeat("A")
	expired, err := c.ExpireOwnSigns(t.Context(), base.task, base.uuid("A"), p.Now, time.Minute)
	base.must(err)
	if diff := cmp.Diff([]string{"CODE"}, expired); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	signs["CODE"].wantTrigger()
	signs["CODE"].wantState(id, center.RunCancelled)
	signs["CODE"].define(nightly)
	signs["CODE"].wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
	base.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
}
