package centertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// testApply checks that Apply writes the wanted settings to the row, tells the servers, and refuses to overwrite a
// concurrent change.
func testApply(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 4, ExecuteNumber: 10, RatePerSecond: 2.5})
	other, err := c.In("APPLY")
	r.must(err)
	_, err = ops.New(other).Tasks().Define(t.Context(), r.task, center.Settings{Queues: 4})
	r.must(err)
	compare := func(s center.Settings) ops.SettingsDiff {
		t.Helper()
		a, err := ops.New(c).Tasks().Compare(t.Context(), r.task, s)
		r.must(err)
		return a
	}
	wanted := center.Settings{Queues: 4, ExecuteNumber: 500, StallAfter: time.Minute}
	old := compare(wanted)
	diff := cmp.Diff([]runs.Difference{
		{Name: "execute_number", Given: "500", Row: "10"},
		{Name: "rate_per_second", Given: "0", Row: "2.5"}, // a setting that the file omits has its default
		{Name: "stall_after", Given: "1m0s", Row: "5m0s"},
	}, old.Changes)
	if diff != "" || !old.Exists || old.Same() || old.Repartitions() {
		t.Fatalf("comparison %+v, want an existing task type with three changes (-want +got):\n%s", old, diff)
	}
	r.join("A")
	before, _ := r.heartbeat("A")
	r.must(ops.New(c).Tasks().Apply(t.Context(), old, "test"))
	if now := compare(wanted); !now.Same() {
		t.Fatalf("differences after Apply: %+v, want none", now)
	}
	after, _ := r.heartbeat("A")
	if after.SettingsVersion == before.SettingsVersion || after.MembershipVersion == before.MembershipVersion {
		t.Fatalf("versions in the heartbeat reply: settings %d, membership %d, want others than %d and %d",
			after.SettingsVersion, after.MembershipVersion, before.SettingsVersion, before.MembershipVersion)
	}
	if kinds := r.eventKinds(""); kinds[len(kinds)-1] != ops.EventSettings {
		t.Fatalf("events %v, want SETTINGS as the last", kinds)
	}
	events, err := ops.New(other).Events().List(t.Context(), ops.EventFilter{TaskType: r.task, Kind: ops.EventSettings}, 10)
	if r.must(err); len(events) != 1 || events[0].Actor != "test" {
		t.Fatalf("events of another environment, which shares the settings: %+v, want the change", events)
	}
	old.Settings = center.Settings{Queues: 4}
	if err := ops.New(c).Tasks().Apply(t.Context(), old, "test"); !errors.Is(err, ops.ErrChanged) {
		t.Fatalf("apply over a concurrent change: error %v, want ErrChanged", err)
	}
	if _, err := ops.New(c).Tasks().Compare(t.Context(), r.task, center.Settings{Queues: 4, FetchNumber: -1}); err == nil || !strings.Contains(err.Error(), "fetch_number (-1) must be between 1 and 1000000") {
		t.Fatalf("compare with a bad setting: error %v, want its name and bounds", err)
	}
	if a := compare(center.Settings{Queues: 6, ExecuteNumber: 500, StallAfter: time.Minute}); !a.Repartitions() || a.Total != 4 || a.Wanted != 6 || len(a.Changes) > 0 {
		t.Fatalf("comparison with 6 queues: %+v, want a repartition from 4 to 6 and no other change", a)
	}
	overtaken := compare(center.Settings{Queues: 5, ExecuteNumber: 500, StallAfter: time.Minute})
	r.must(c.Roster().Operator("test").Repartition(t.Context(), r.task, 6, 0))
	if err := ops.New(c).Tasks().Apply(t.Context(), overtaken, "test"); !errors.Is(err, ops.ErrChanged) {
		t.Fatalf("apply a number of queues over a concurrent request: error %v, want ErrChanged", err)
	}
	if a := compare(center.Settings{Queues: 6}); a.Repartitions() || a.Waiting != 6 {
		t.Fatalf("comparison after the request for 6 queues: %+v, want the repartition to wait", a)
	}
	if a := compare(center.Settings{Queues: 4}); !a.Repartitions() {
		t.Fatalf("comparison with 4 queues: %+v, want the requested repartition to be withdrawn", a)
	}
	if _, err := ops.New(c).Tasks().Compare(t.Context(), r.task, center.Settings{QueueNames: []string{"x"}}); err == nil {
		t.Fatal("compare numbered queues with names: no error, want a refusal")
	}
}

// testApplyNew checks that Apply creates a task type, and adds and removes its named queues.
func testApplyNew(t *testing.T, c *center.Center) {
	s := center.Settings{QueueNames: []string{"north", "south"}, ThreadNumber: 2}
	task := strings.ReplaceAll(t.Name(), "/", ".")
	a, err := ops.New(c).Tasks().Compare(t.Context(), task, s)
	if err != nil || a.Exists || a.Same() || len(a.Add) != 2 {
		t.Fatalf("comparison of a new task type: %+v, want 2 queues to add: %v", a, err)
	}
	overtaken := a
	if err := ops.New(c).Tasks().Apply(t.Context(), a, "test"); err != nil {
		t.Fatalf("apply a new task type: %v", err)
	}
	for _, other := range []center.Settings{{QueueNames: s.QueueNames}, {QueueNames: []string{"west"}, ThreadNumber: 2}} {
		overtaken.Settings = other
		if err := ops.New(c).Tasks().Apply(t.Context(), overtaken, "test"); !errors.Is(err, ops.ErrChanged) {
			t.Fatalf("apply a new task type that another worker has created meanwhile: error %v, want ErrChanged", err)
		}
	}
	if a, err = ops.New(c).Tasks().Compare(t.Context(), task, s); err != nil || !a.Same() {
		t.Fatalf("comparison after Apply: %+v, want no difference: %v", a, err)
	}
	s.QueueNames = []string{"north", "west"}
	a, err = ops.New(c).Tasks().Compare(t.Context(), task, s)
	if err != nil || !slices.Equal(a.Add, []string{"west"}) || !slices.Equal(a.Remove, []string{"south"}) {
		t.Fatalf("comparison of other names: %+v, want west to add and south to remove: %v", a, err)
	}
	if err := ops.New(c).Tasks().Apply(t.Context(), a, "test"); err != nil {
		t.Fatal(err)
	}
	if a, err = ops.New(c).Tasks().Compare(t.Context(), task, s); err != nil || !a.Same() {
		t.Fatal(a, err)
	}
}

// testDeleteTask checks that Delete keeps only the events and the highest epoch (H6), and refuses while a server is live.
func testDeleteTask(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A")
	r.must(failures.Of(c.Roster()).Save(t.Context(), r.task, []failures.Item{{Key: "a", QueueID: "0", State: ops.ItemDead}}))
	if err := ops.New(c).Tasks().Delete(t.Context(), r.task, "test"); err == nil || !strings.Contains(err.Error(), "1 live worker still serves it in "+c.OwnSign()+": stop all workers first") {
		t.Fatalf("delete a task type with a live server: error %v, want a refusal", err)
	}
	r.wantOwners("A", "A")
	r.must(c.Roster().Operator("test").Pause(t.Context(), r.task, true))
	r.makeSilent("A")
	high := r.epoch("0")
	r.must(ops.New(c).Tasks().Delete(t.Context(), r.task, "test"))
	for _, table := range []string{"task_type", "queue", "server", "failed_item"} {
		if n := r.readInt("SELECT COUNT(*) FROM schedule_%s WHERE task_type = '%s'", table, r.task); n != 0 {
			t.Errorf("schedule_%s has %d rows of the deleted task type, want 0", table, n)
		}
	}
	for _, f := range []func() error{
		func() error { return ops.New(c).Tasks().Delete(t.Context(), r.task, "test") },
		func() error { _, err := ops.New(c).Tasks().List(t.Context(), r.task); return err },
	} {
		if err := f(); !errors.Is(err, center.ErrUnknownTask) {
			t.Fatalf("delete or list a deleted task type: error %v, want ErrUnknownTask", err)
		}
	}
	r.define(center.Settings{Queues: 2})
	if r.epoch("0") <= high {
		t.Errorf("queue 0 has epoch %d, want one above %d, which was used before", r.epoch("0"), high)
	}
	if r.taskRecord().Paused {
		t.Error("the new task type is paused because the deleted one was")
	}
}
