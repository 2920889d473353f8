package centertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// nightly is a task type that a trigger fires at two each night.
var nightly = center.Settings{Mode: center.ModeRun, Queues: 2, Cron: "0 0 2 * * ?", TimeZone: "Europe/Berlin"}

// testSchedule checks the settings cron, every and after: they define triggers and dependencies.
func testSchedule(t *testing.T, c *center.Center, url string) {
	t.Run("the first definition makes the trigger", func(t *testing.T) {
		r := newFixture(t, c, nightly)
		r.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
		made := r.readTrigger(r.task)
		r.define(center.Settings{Mode: center.ModeRun, Queues: 2, Every: time.Hour})
		if diff := cmp.Diff(made, r.readTrigger(r.task)); diff != "" {
			t.Fatalf("trigger after another definition (-before +after):\n%s", diff)
		}
		row, err := ops.New(c).Tasks().Settings(t.Context(), r.task)
		r.must(err)
		want := []runs.Difference{{Name: "every", Given: "1h0m0s", Row: "not set"}}
		if diff := cmp.Diff(want, row.DiffersFrom(center.Settings{Mode: center.ModeRun, Every: time.Hour}.Given())); diff != "" {
			t.Fatalf("differences of another schedule (-want +got):\n%s", diff)
		}
		if diffs := row.DiffersFrom(nightly.Given()); len(diffs) > 0 {
			t.Fatalf("differences %+v of the same schedule, want none", diffs)
		}
	})
	t.Run("a definition does not restore a deleted trigger", func(t *testing.T) {
		r := newFixture(t, c, nightly)
		r.must(c.Engine().Triggers.Delete(t.Context(), r.task, "test"))
		r.define(nightly)
		r.wantTrigger()
	})
	t.Run("each environment has its own trigger", func(t *testing.T) {
		r := newFixture(t, c, nightly)
		other := newFixture(t, Open(t, url, center.Options{OwnSign: "OTHER"}), nightly)
		other.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
		r.must(other.c.Engine().Triggers.Delete(t.Context(), r.task, "test"))
		r.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
	})
	t.Run("a task type of mode CONTINUOUS gets no trigger", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		newFixture(t, Open(t, url, center.Options{OwnSign: "OTHER"}), nightly).wantTrigger()
		r.wantTrigger()
	})
	t.Run("R5 a definition names its upstreams", func(t *testing.T) { testAfterSettings(t, c) })
	t.Run("apply changes triggers and upstreams", func(t *testing.T) { testApplySchedule(t, c) })
	t.Run("R9 deletion ends the open runs", func(t *testing.T) { testDeleteRuns(t, c) })
	t.Run("R9 expiry of an environment ends its open runs", func(t *testing.T) { testForgottenRuns(t, c, url) })
}

// wantTrigger checks the triggers of the task type, ordered by name: "CRON 0 0 2 * * ? UTC".
func (r *triggerSteps) wantTrigger(want ...string) {
	r.Helper()
	triggers, err := ops.New(r.c).Triggers().List(r.Context(), runs.TriggerFilter{})
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

// wantAfter checks the upstreams of the task type.
func (r *triggerSteps) wantAfter(want ...runs.After) {
	r.Helper()
	got, err := r.c.Engine().Dependencies.After(r.Context(), r.task)
	r.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("upstreams (-want +got):\n%s", diff)
	}
}

// testAfterSettings checks that a definition with an unknown upstream writes nothing, and that an upstream is not
// deleted before its dependant.
func testAfterSettings(t *testing.T, c *center.Center) {
	up := newRunFixture(t, c, 1)
	s := center.Settings{Mode: center.ModeRun, Queues: 1, After: []runs.After{{Upstream: up.task}, {Upstream: up.task + ".late", Rule: runs.RuleFinished}}}
	r := up.sibling("down")
	_, err := ops.New(c).Tasks().Define(t.Context(), r.task, s)
	if !errors.Is(err, center.ErrUnknownTask) || !strings.Contains(err.Error(), "after "+up.task+".late: ") {
		t.Fatalf("define with an unknown upstream: error %v, want ErrUnknownTask for it", err)
	}
	if _, err := ops.New(c).Tasks().List(t.Context(), r.task); !errors.Is(err, center.ErrUnknownTask) {
		t.Fatalf("list the task type after the refused definition: error %v, want ErrUnknownTask", err)
	}
	late := up.sibling("late")
	late.define(center.Settings{Mode: center.ModeRun, Queues: 1})
	r.define(s)
	want := []runs.After{{Upstream: up.task, Rule: runs.RuleSuccess}, {Upstream: late.task, Rule: runs.RuleFinished}}
	r.wantAfter(want...)
	r.define(center.Settings{Mode: center.ModeRun, Queues: 1})
	r.wantAfter(want...)
	row, err := ops.New(c).Tasks().Settings(t.Context(), r.task)
	r.must(err)
	if diffs := row.DiffersFrom(s.Given()); len(diffs) > 0 {
		t.Fatalf("differences %+v of the same settings, want none", diffs)
	}
	if err := ops.New(c).Tasks().Delete(t.Context(), late.task, "test"); err == nil || !strings.Contains(err.Error(), r.task+" runs after it: change "+r.task+" first") {
		t.Fatalf("delete an upstream: error %v, want the dependant in it", err)
	}
	r.must(ops.New(c).Tasks().Delete(t.Context(), r.task, "test"))
	r.must(ops.New(c).Tasks().Delete(t.Context(), late.task, "test"))
}

// apply writes settings and schedule. It returns the differences before as "name: row -> wanted".
func (r *taskType) apply(s center.Settings) (changed []string) {
	r.Helper()
	a, err := ops.New(r.c).Tasks().Compare(r.Context(), r.task, s)
	r.must(err)
	for _, d := range a.Changes {
		changed = append(changed, d.Name+": "+d.Row+" -> "+d.Given)
	}
	r.must(ops.New(r.c).Tasks().Apply(r.Context(), a, "test"))
	if a, err = ops.New(r.c).Tasks().Compare(r.Context(), r.task, s); err != nil || !a.Same() {
		r.Fatalf("differences %+v are left after Apply, want none: %v", a, err)
	}
	return changed
}

// wantApplied applies settings and checks the differences before.
func (r *taskType) wantApplied(s center.Settings, want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.apply(s)); diff != "" {
		r.Fatalf("differences before Apply (-want +got):\n%s", diff)
	}
}

// testApplySchedule checks that Apply changes the trigger and the upstreams of a task type, and no trigger of another.
func testApplySchedule(t *testing.T, c *center.Center) {
	up := newRunFixture(t, c, 1)
	r := up.sibling("applied")
	r.define(center.Settings{Mode: center.ModeRun, Queues: 2})
	r.wantTrigger()
	r.wantApplied(nightly, "time_zone: UTC -> Europe/Berlin", "cron:  -> 0 0 2 * * ?")
	r.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
	_, err := r.applyTrigger(runs.Trigger{Name: r.task, Target: r.task, Kind: runs.TriggerCron, Expression: "0 0 3 * * ?", Overlap: runs.OverlapWait})
	r.must(err)
	r.wantApplied(nightly, "time_zone: UTC -> Europe/Berlin", "cron: 0 0 3 * * ? -> 0 0 2 * * ?")
	if trigger := r.readTrigger(r.task); trigger.Overlap != runs.OverlapWait {
		t.Fatalf("the trigger has overlap %s, want WAIT, which no setting sets", trigger.Overlap)
	}
	version, other := r.readTrigger(r.task).Version, nightly
	other.ExecuteNumber = 7
	r.wantApplied(other, "execute_number: 1 -> 7")
	if now := r.readTrigger(r.task).Version; now != version {
		t.Fatalf("the unchanged trigger has version %d, want %d", now, version)
	}
	hourly := center.Settings{Mode: center.ModeRun, Queues: 2, Every: time.Hour, After: []runs.After{{Upstream: up.task}}}
	r.wantApplied(hourly, "execute_number: 7 -> 1", "time_zone: Europe/Berlin -> UTC", "cron: 0 0 2 * * ? -> ", "every:  -> 1h0m0s", "after:  -> "+up.task)
	r.wantTrigger("EVERY 1h0m0s UTC")
	r.wantAfter(runs.After{Upstream: up.task, Rule: runs.RuleSuccess})
	counted := r.readTrigger(r.task).StartAt
	hourly.Every = 2 * time.Hour
	r.wantApplied(hourly, "every: 1h0m0s -> 2h0m0s")
	if at := r.readTrigger(r.task).StartAt; !at.Equal(counted) {
		t.Fatalf("the slots start at %s, want %s as before", at, counted)
	}
	anyOf := hourly
	anyOf.After = []runs.After{{Upstream: up.task, Any: true}}
	r.wantApplied(anyOf)
	second := up.sibling("other")
	second.define(center.Settings{Mode: center.ModeRun, Queues: 1})
	both := up.task + ", " + second.task
	hourly.After = append(hourly.After, runs.After{Upstream: second.task})
	r.wantApplied(hourly, "after: "+up.task+" -> "+both)
	anyOf.After = append(anyOf.After, runs.After{Upstream: second.task, Any: true})
	r.wantApplied(anyOf, "after: "+both+" -> any of "+both)
	r.wantAfter(runs.After{Upstream: up.task, Rule: runs.RuleSuccess, Any: true}, runs.After{Upstream: second.task, Rule: runs.RuleSuccess, Any: true})
	r.wantApplied(hourly, "after: any of "+both+" -> "+both)
	hourly.After = hourly.After[:1]
	r.wantApplied(hourly, "after: "+both+" -> "+up.task)
	r.wantApplied(center.Settings{Mode: center.ModeRun, Queues: 2}, "every: 2h0m0s -> ", "after: "+up.task+" -> ")
	r.wantTrigger()
	r.wantAfter()
	r.defineTrigger(runs.Trigger{Name: r.task, Kind: runs.TriggerOnce, Expression: "2999-01-01T00:00:00Z"})
	r.wantApplied(center.Settings{Mode: center.ModeRun, Queues: 2, ExecuteNumber: 3}, "execute_number: 1 -> 3")
	r.wantTrigger("ONCE 2999-01-01T00:00:00Z UTC") // no setting can define it

	r.must(ops.New(c).Tasks().Delete(t.Context(), r.task, "test"))
	elsewhere := up.defineTrigger(runs.Trigger{Name: r.task, Kind: runs.TriggerCron, Expression: "0 0 1 * * ?"})
	r.define(center.Settings{Mode: center.ModeRun, Queues: 2})
	r.wantApplied(center.Settings{Mode: center.ModeRun, Queues: 2, ExecuteNumber: 3}, "execute_number: 1 -> 3")
	a, err := ops.New(c).Tasks().Compare(t.Context(), r.task, nightly)
	r.must(err)
	err = ops.New(c).Tasks().Apply(t.Context(), a, "test")
	if err == nil || !strings.Contains(err.Error(), "trigger "+r.task+" has the name of this task type, and fires "+up.task) {
		t.Fatalf("apply under the name of a trigger of another task type: error %v, want a refusal", err)
	}
	if diff := cmp.Diff(elsewhere, up.readTrigger(r.task)); diff != "" {
		t.Fatalf("trigger of the other task type (-before +after):\n%s", diff)
	}
}

// testDeleteRuns checks that Delete removes the triggers, cancels the open runs and keeps the others.
func testDeleteRuns(t *testing.T, c *center.Center) {
	r := newFixture(t, c, nightly)
	r.join("A")
	ended := r.submitAndOpen("ended")
	r.finishAll("A", "0", "1")
	down := r.sibling("down")
	down.define(center.Settings{Mode: center.ModeRun, Queues: 1})
	open, ready := r.submitAndOpen("open"), r.submit("ready")
	waits := down.submit("waits", open)
	r.makeSilent("A")
	r.must(ops.New(c).Tasks().Delete(t.Context(), r.task, "test"))
	r.wantTrigger()
	r.wantState(ended, runs.Success)
	r.wantState(open, runs.Cancelled)
	r.wantQueueStates(open, "0 CANCELLED", "1 CANCELLED")
	r.wantState(ready, runs.Cancelled)
	down.tick()
	down.wantState(waits, runs.DependentFailed)
	r.define(nightly)
	r.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
}

// testForgottenRuns checks that the trigger of the settings expires with its environment, and that an operator's
// trigger keeps an environment.
func testForgottenRuns(t *testing.T, c *center.Center, url string) {
	base := newFixture(t, c, nightly)
	base.join("A")
	signs := map[string]*fixture{}
	for _, sign := range []string{"CODE", "OPERATOR"} {
		signs[sign] = newFixture(t, Open(t, url, center.Options{OwnSign: sign}), nightly)
	}
	id := signs["CODE"].submit("")
	signs["OPERATOR"].defineTrigger(runs.Trigger{Name: t.Name(), Kind: runs.TriggerCron, Expression: "0 0 1 * * ?"})
	base.exec("UPDATE schedule_queue SET gmt_modified = '2020-01-01 00:00:00.000000' WHERE task_type = '%s'", base.task)
	p, _ := base.heartbeat("A")
	expired, err := ops.New(c).ExpireOwnSigns(t.Context(), base.task, base.uuid("A"), p.Now, time.Minute)
	base.must(err)
	if diff := cmp.Diff([]string{"CODE"}, expired); diff != "" {
		t.Fatalf("expired own_signs (-want +got):\n%s", diff)
	}
	signs["CODE"].wantTrigger()
	signs["CODE"].wantState(id, runs.Cancelled)
	signs["CODE"].define(nightly)
	signs["CODE"].wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
	base.wantTrigger("CRON 0 0 2 * * ? Europe/Berlin")
}
