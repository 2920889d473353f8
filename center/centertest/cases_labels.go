package centertest

import (
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
)

// label writes the labels of servers.
func (r serverSteps) label(labels string, names ...string) {
	r.Helper()
	for _, name := range names {
		r.exec("UPDATE schedule_server SET labels = '%s' WHERE uuid = '%s'", labels, r.uuid(name))
	}
}

// require sets which labels the servers of the task type need.
func (r *taskType) require(labels string) {
	r.Helper()
	settings, err := ops.New(r.c).Tasks().Settings(r.Context(), r.task)
	r.must(err)
	settings.Require = labels
	diff, err := ops.New(r.c).Tasks().Compare(r.Context(), r.task, settings)
	r.must(err)
	r.must(ops.New(r.c).Tasks().Apply(r.Context(), diff, "ann"))
}

// testLabels checks which servers get queues by the labels that require names.
func testLabels(t *testing.T, c *center.Center) {
	t.Run("P14 only servers with the labels get queues", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2, Require: "disk=ssd|nvme"})
		r.join("A")
		r.wantOwners("-", "-")
		if list := r.findings("labels"); len(list) != 1 || !strings.Contains(list[0], "no worker has the labels of require (disk=ssd|nvme): the queues wait") {
			t.Errorf("the doctor finds %v", list)
		}
		r.register("B")
		r.label("disk=nvme,zone=b", "B")
		r.rebalance("B")
		r.wantOwners("B", "B")
		r.register("C")
		r.label("disk=hdd", "C")
		r.rebalance("C")
		r.wantOwners("B", "B")
		if list := r.findings("labels"); len(list) != 0 {
			t.Errorf("the doctor finds %v", list)
		}
	})
	t.Run("P14 an owner without the labels keeps its queues", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.require("zone=b")
		r.rebalance("A")
		r.wantOwners("A", "A")
		if list := r.findings("labels"); len(list) != 1 || !strings.Contains(list[0], "A (2 queues)") {
			t.Errorf("the doctor finds %v", list)
		}
		r.register("B")
		r.label("zone=b", "B")
		r.rebalance("B")
		r.wantOwners("A>B", "A>B")
		if moves := r.preview(ops.Scenario{}); !slices.ContainsFunc(moves, func(m string) bool { return strings.Contains(m, "its owner lacks a label of require") }) {
			t.Errorf("the preview says %v", moves)
		}
	})
	t.Run("P14 the label host is the name of the host", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2, Require: "host=web1"})
		for name, host := range map[string]string{"A": "web1", "B": "web2"} {
			r.register(name)
			r.exec("UPDATE schedule_server SET host_name = '%s' WHERE uuid = '%s'", host, r.uuid(name))
		}
		r.rebalance("B")
		r.wantOwners("A", "A")
	})
	t.Run("P14 a queue without an owner names the rule", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2, MaxQueuesPerServer: 1})
		r.join("A")
		r.wantOwners("A", "-")
		waits := func() []string {
			return r.readColumn("SELECT waits_for FROM schedule_assignment WHERE task_type = '%s' AND cur_server IS NULL", r.task)
		}
		if got := waits(); !slices.Equal(got, []string{"max_queues_per_server: 1"}) {
			t.Errorf("it waits for %v", got)
		}
		r.require("zone=b")
		r.rebalance("A")
		if got := waits(); !slices.Equal(got, []string{"require: zone=b"}) {
			t.Errorf("it waits for %v", got)
		}
	})
	t.Run("P14 no server gets a queue by a rule that cannot be read", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.exec("UPDATE schedule_task_type SET require_labels = 'zone' WHERE task_type = '%s'", r.task)
		r.join("A")
		r.wantOwners("-", "-")
	})
}

// testSpread checks how spread and prefer place queues by labels.
func testSpread(t *testing.T, c *center.Center) {
	t.Run("P14 the zones share the queues", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2, Spread: "zone"})
		for _, name := range []string{"A", "B", "C", "D"} {
			r.register(name)
		}
		r.label("zone=a", "A", "B")
		r.label("zone=b", "C", "D")
		r.rebalance("A")
		if n := r.readInt("SELECT COUNT(DISTINCT s.labels) FROM schedule_queue q JOIN schedule_server s ON s.uuid = q.cur_server WHERE q.task_type = '%s'", r.task); n != 2 {
			t.Errorf("the queues are in %d zones, want 2", n)
		}
	})
	t.Run("P14 the others are a reserve for servers with the preferred labels", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2, Prefer: "zone=a"})
		r.register("A")
		r.register("B")
		r.label("zone=a", "B")
		r.rebalance("A")
		r.wantOwners("B", "B")
		r.makeSilent("B")
		r.rebalanceExpiring("A")
		r.wantOwners("A", "A")
	})
}

// testPinnedByLabels checks pins to labels.
func testPinnedByLabels(t *testing.T, c *center.Center) {
	t.Run("P14 a pinned queue goes to a server with the labels only", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.register("A")
		r.register("B")
		r.label("zone=b", "B")
		r.must(c.Roster().Operator("ann").PinQueue(t.Context(), r.task, "0", "zone=b"))
		r.rebalance("A")
		r.wantOwners("B", "A")
		r.must(c.Roster().Operator("ann").PinQueue(t.Context(), r.task, "1", "zone=c"))
		r.rebalance("A")
		r.wantOwners("B", "A") // nobody else may have it (P7)
		if list := r.findings("pins"); len(list) != 1 || !strings.Contains(list[0], "their owners keep them: 1 (zone=c)") {
			t.Errorf("the doctor finds %v", list)
		}
		r.makeSilent("A")
		r.rebalanceExpiring("B")
		r.wantOwners("B", "-")
		wantWaiting := func(want ...string) {
			t.Helper()
			if got := r.readColumn("SELECT waits_for FROM schedule_assignment WHERE task_type = '%s' ORDER BY queue_index", r.task); !slices.Equal(got, want) {
				t.Errorf("the queues wait for %v, want %v", got, want)
			}
		}
		wantWaiting("-", "pin: zone=c")
		if list := r.findings("queues"); len(list) != 1 || !strings.Contains(list[0], "queues without an owner (pin: zone=c): 1") {
			t.Errorf("the doctor finds %v", list)
		}
		events, err := ops.New(c).Events().List(t.Context(), ops.EventFilter{TaskType: r.task, Kind: ops.EventPinned}, 10)
		r.must(err)
		if len(events) != 2 || events[0].Actor != "ann" {
			t.Errorf("events %+v", events)
		}
		r.must(c.Roster().Operator("ann").PinQueue(t.Context(), r.task, "1", ""))
		r.rebalance("B")
		r.wantOwners("B", "B")
		wantWaiting("-", "-")
	})
	t.Run("P14 require excludes the only server of a pin", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1, Require: "host=host-A"})
		r.register("A")
		r.register("B")
		r.must(c.Roster().Operator("ann").PinQueue(t.Context(), r.task, "0", "host=host-A"))
		r.rebalance("A")
		r.wantOwners("A")
		r.must(c.Roster().Operator("ann").PinQueue(t.Context(), r.task, "0", "host=host-B"))
		if list := r.findings("pins"); len(list) != 1 || !strings.Contains(list[0], "their owners keep them: 0 (host=host-B)") {
			t.Errorf("the doctor finds %v", list)
		}
	})
}

// testLabelsAtRelease checks that a hand-over follows pins and require as they are when the owner releases.
func testLabelsAtRelease(t *testing.T, c *center.Center) {
	t.Run("H2 a release gives no queue to a server that does not meet the pin any more", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.wantOwners("A", "A>B")
		r.must(c.Roster().Operator("ann").PinQueue(t.Context(), r.task, "1", "host=host-A"))
		if released := r.release("A", r.handover("1", "B")); len(released) > 0 {
			t.Errorf("released %v against the pin", released)
		}
		r.rebalance("A")
		r.wantOwners("A>B", "A") // the other queue evens the servers
	})
	t.Run("H2 a release gives no queue to a server that lacks a label of require now", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.wantOwners("A", "A>B")
		r.require("host=host-A")
		if released := r.release("A", r.handover("1", "B")); len(released) > 0 {
			t.Errorf("released %v against require", released)
		}
		r.rebalance("A")
		r.wantOwners("A", "A")
	})
}
