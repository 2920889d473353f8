package centertest

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/ops/verbs"
)

// historySteps are what the processes of a task type remember, and what they do when rows contradict it.
type historySteps struct {
	*fixture
	memories map[string]*roster.Memory // by short name
	beats    map[string]*roster.Beats
}

// newHistory defines a task type in an environment of its own, because a loss is one of a whole environment. It has two
// queues, of A, and B stands by.
func newHistory(t *testing.T, c *center.Center, ownSign string) historySteps {
	t.Helper()
	in, err := c.In(ownSign)
	if err != nil {
		t.Fatal(err)
	}
	h := historySteps{
		fixture: newFixture(t, in, center.Settings{Queues: 2, MaxServers: 1}), memories: map[string]*roster.Memory{},
		beats: map[string]*roster.Beats{},
	}
	for _, name := range []string{"A", "B"} {
		h.memories[name] = roster.NewMemory()
		reg := h.register(name)
		h.rebalance(name)
		h.beats[name] = &roster.Beats{UUID: h.uuid(name)}
		h.beats[name].Add(h.tokens[name], reg.At, reg.EpochFloor)
	}
	h.beat("A")
	h.note("A")
	h.beat("B")
	h.wantOwners("A", "A")
	return h
}

// beat sends a heartbeat, whose reply arrives.
func (h historySteps) beat(name string) {
	h.Helper()
	p, there := h.heartbeat(name)
	if !there {
		h.Fatalf("%s got no reply to its heartbeat", name)
	}
	h.beats[name].Add(h.tokens[name], p.Now, p.History.EpochFloor)
}

// note makes a server read its queues and remember them.
func (h historySteps) note(name string) {
	h.Helper()
	v, err := h.c.Roster().Server(h.task, h.uuid(name)).View(h.Context())
	h.must(err)
	h.memories[name].Note(v, h.uuid(name))
}

// expireLongAgo expires a server whose last heartbeat, and whose expiry, are of the year 2020.
func (h historySteps) expireLongAgo(name string) {
	h.Helper()
	h.makeSilent(name)
	h.rebalanceExpiring("A")
	h.exec("UPDATE schedule_server_history SET left_time = '2020-01-01 00:00:00.000000', heartbeat_time = '2020-01-01 00:00:00.000000'"+
		" WHERE uuid = '%s'", h.uuid(name))
	h.beats[name].Last = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
}

// gone makes a process remember the heartbeats of a session whose row is gone.
func (h historySteps) gone(name string) { h.memories[name].EndSession(*h.beats[name]) }

// check compares what the process remembers with the rows, and settles it.
func (h historySteps) check(name string) roster.HistoryCheck {
	h.Helper()
	known := h.memories[name].Snapshot()
	found, err := h.c.Roster().Planner(h.task, h.uuid(name)).CheckHistory(h.Context(), known)
	h.must(err)
	h.memories[name].Settle(known, found)
	return found
}

// want checks a part of the result of check.
func (h historySteps) want(got roster.HistoryCheck, lost, raised, waiting bool) {
	h.Helper()
	if got.Lost != lost || got.Raised != raised || got.Waiting != waiting {
		h.Fatalf("the check is %+v, want lost %t, raised %t, waiting %t", got, lost, raised, waiting)
	}
}

// wantLeft checks that a server has left, once.
func (h historySteps) wantLeft(name string) {
	h.Helper()
	for _, rows := range []string{"schedule_server_history WHERE uuid", "schedule_event WHERE kind = 'LEFT' AND from_server"} {
		if n := h.readInt("SELECT COUNT(*) FROM %s = '%s'", rows, h.uuid(name)); n != 1 {
			h.Fatalf("%d rows of %s, want 1", n, rows)
		}
	}
}

// floor reads the epoch_floor of the environment.
func (h historySteps) floor() int64 {
	h.Helper()
	return h.readInt("SELECT COALESCE(MAX(epoch_floor), 0) FROM schedule_environment WHERE own_sign = '%s'", h.c.OwnSign())
}

// setEpochs is the restored backup: it writes an epoch into all rows of the queues.
func (h historySteps) setEpochs(epoch int64) {
	h.Helper()
	h.exec("UPDATE schedule_queue SET epoch = %d WHERE task_type = '%s'", epoch, h.task)
}

// nothing is a transaction that only fences.
func nothing(*sql.Tx) error { return nil }

// testHistoryWitnesses checks which rows prove that the database has lost history.
func testHistoryWitnesses(t *testing.T, c *center.Center) {
	t.Run("H7 a queue below the epoch that its owner had", func(t *testing.T) {
		h := newHistory(t, c, "lost-epoch")
		h.want(h.check("A"), false, false, false)
		h.setEpochs(h.epoch("0") - 1)
		h.want(h.check("A"), true, true, false)
		events := h.readColumn("SELECT reason FROM schedule_event WHERE task_type = '%s' AND kind = 'HISTORY'", h.task)
		if len(events) != 1 || !strings.Contains(events[0], "queue 0 of "+h.task+" is at epoch") {
			t.Fatalf("events %q, want one that names queue 0", events)
		}
	})
	t.Run("H7 a queue below the epoch under which its owner released it", func(t *testing.T) {
		h := newHistory(t, c, "lost-release")
		before := h.epoch("1")
		h.exec("UPDATE schedule_queue SET req_server = '%s' WHERE task_type = '%s' AND queue_id = '1'", h.uuid("B"), h.task)
		handover := h.handover("1", "B")
		if released := h.release("A", handover); !slices.Equal(released, []string{"1"}) {
			t.Fatalf("released %v, want queue 1", released)
		}
		h.memories["A"].Released(handover)
		h.want(h.check("A"), false, false, false)
		h.exec("UPDATE schedule_queue SET epoch = %d, cur_server = 'X' WHERE task_type = '%s' AND queue_id = '1'", before, h.task)
		h.want(h.check("A"), true, true, false)
	})
	t.Run("H7 a queue of another owner at the epoch of its owner", func(t *testing.T) {
		h := newHistory(t, c, "lost-owner")
		h.exec("UPDATE schedule_queue SET cur_server = '%s' WHERE task_type = '%s' AND queue_id = '1'", h.uuid("B"), h.task)
		h.want(h.check("A"), true, true, false)
	})
	t.Run("H7 a queue that another server has taken over proves nothing", func(t *testing.T) {
		h := newHistory(t, c, "lost-nothing")
		h.moveQueue("1", "B")
		h.want(h.check("A"), false, false, false)
		if floor := h.floor(); floor != 0 {
			t.Fatalf("the epoch_floor is %d, want 0", floor)
		}
	})
	t.Run("H7 an older token in the row of a server, which leaves", func(t *testing.T) {
		h := newHistory(t, c, "lost-token")
		old := h.tokens["A"]
		h.beat("A")
		h.exec("UPDATE schedule_server SET beat_token = '%s' WHERE uuid = '%s'", old, h.uuid("A"))
		if _, there := h.heartbeat("A"); there {
			t.Fatal("the heartbeat of A succeeded, and its token is lost")
		}
		h.gone("A")
		h.want(h.check("A"), true, true, false)
		h.wantLeft("A")
		h.wantOwners("A", "A") // until the next plan
		h.gone("A")            // the process finds the loss again, by what the history of servers has
		h.check("A")
		h.wantLeft("A")
		h.rebalance("B")
		h.wantOwners("B", "B")
	})
	t.Run("H7 an older token in the history of servers", func(t *testing.T) {
		h := newHistory(t, c, "lost-history")
		old := h.tokens["B"]
		h.beat("B")
		h.exec("UPDATE schedule_server SET beat_token = '%s' WHERE uuid = '%s'", old, h.uuid("B"))
		h.makeSilent("B")
		h.rebalanceExpiring("A")
		h.gone("B")
		h.want(h.check("B"), true, true, false)
	})
	t.Run("H7 the token of another process proves nothing", func(t *testing.T) {
		h := newHistory(t, c, "lost-clone")
		h.exec("UPDATE schedule_server SET beat_token = 'clone' WHERE uuid = '%s'", h.uuid("B"))
		h.gone("B")
		h.want(h.check("B"), false, false, false)
	})
	t.Run("H7 a server without a row and without history", func(t *testing.T) {
		h := newHistory(t, c, "lost-server")
		h.exec("DELETE FROM schedule_server WHERE uuid = '%s'", h.uuid("B"))
		h.gone("B")
		h.want(h.check("B"), true, true, false)
	})
	t.Run("H7 a server that was expired proves nothing", func(t *testing.T) {
		h := newHistory(t, c, "lost-expired")
		h.makeSilent("B")
		h.rebalanceExpiring("A")
		h.gone("B")
		h.want(h.check("B"), false, false, false)
	})
	t.Run("H7 a server that the retention has deleted from the history proves nothing", func(t *testing.T) {
		h := newHistory(t, c, "lost-retention")
		h.expireLongAgo("B")
		other, err := c.In("lost-retention-other") // whose workers keep the history for a shorter time
		h.must(err)
		_, err = ops.New(other).Clean(t.Context(), time.Hour)
		h.must(err)
		if n := h.readInt("SELECT COUNT(*) FROM schedule_server_history WHERE uuid = '%s'", h.uuid("B")); n != 0 {
			t.Fatalf("the history has %d rows of B, want none", n)
		}
		h.gone("B")
		h.want(h.check("B"), false, false, false)
		h.exec("DELETE FROM schedule_server WHERE uuid = '%s'", h.uuid("A"))
		h.gone("A") // its heartbeats are later than all that the retention has deleted
		h.want(h.check("A"), true, true, false)
	})
	t.Run("H7 a heartbeat in the future keeps a server in the history", func(t *testing.T) {
		h := newHistory(t, c, "lost-ahead")
		h.expireLongAgo("B")
		h.exec("UPDATE schedule_server_history SET heartbeat_time = '%s' WHERE uuid = '%s'",
			time.Now().UTC().Add(24*time.Hour).Format("2006-01-02 15:04:05.000000"), h.uuid("B"))
		_, err := ops.New(h.c).Clean(t.Context(), time.Hour)
		h.must(err)
		if n := h.readInt("SELECT COUNT(*) FROM schedule_server_history WHERE uuid = '%s'", h.uuid("B")); n != 1 {
			t.Fatalf("the history has %d rows of B, want 1", n)
		}
	})
}

// testRaisedEpochs checks how epochs rise after a loss.
func testRaisedEpochs(t *testing.T, c *center.Center) {
	t.Run("H8 the epochs rise above all that lost history may have used", func(t *testing.T) {
		h := newHistory(t, c, "raise-epochs")
		other := h.sibling("other")
		other.define(center.Settings{Queues: 1})
		other.join("C")
		high := h.epoch("0")
		h.exec("UPDATE schedule_task_running SET epoch_high = 70 WHERE task_type = '%s'", other.task)
		h.setEpochs(0)
		batch := h.batch("A", "0")
		h.want(h.check("A"), true, true, false)
		floor := h.floor()
		if floor < 70+1_000_000 || floor >= 70+2_000_000 {
			t.Fatalf("the epoch_floor is %d, want 70 and between one and two millions more", floor)
		}
		versions := func() []int64 {
			var list []int64
			for _, column := range []string{"plan_version", "membership_version", "partition_version", "item_version"} {
				list = append(list, h.readInt("SELECT %s FROM schedule_task_running WHERE task_type = '%s'", column, h.task))
			}
			return list
		}
		unchanged := func() int64 {
			return h.readInt("SELECT max_in_flight_version FROM schedule_server WHERE uuid = '%s'", h.uuid("A"))
		}
		before, rest := versions(), unchanged()
		known := h.read("A").Version
		h.rebalance("B")
		other.rebalance("C")
		h.wantOwners("A", "A")
		other.wantOwners("C")
		for _, epoch := range []int64{h.epoch("0"), h.epoch("1"), other.epoch("0")} {
			if epoch != floor+1 {
				t.Fatalf("an epoch is %d after %d, want %d", epoch, high, floor+1)
			}
		}
		for i, version := range versions() {
			if version < before[i]+1_000_000 {
				t.Errorf("version %d rose from %d to %d, want a million more", i, before[i], version)
			}
		}
		if got := unchanged(); got != rest {
			t.Errorf("the version of the shares of calls is %d, want %d as before", got, rest)
		}
		n := h.readInt("SELECT COUNT(*) FROM schedule_event WHERE task_type = '%s' AND epoch = %d", h.task, floor+1)
		if n != 1 {
			t.Errorf("%d events have the new epoch, want 1", n)
		}
		if p, _ := h.heartbeat("A"); p.QueueVersion < known+1_000_000 || p.History.EpochFloor != floor || p.PlanDue {
			t.Fatalf("the reply is %+v, want the new epochs, and no plan due", p)
		}
		if err := center.InTx(batch, h.c.DB(), nothing); !errors.Is(err, center.ErrFenced) {
			t.Fatalf("a batch of the old epoch: error %v, want ErrFenced", err)
		}
		h.must(center.InTx(h.batch("A", "0"), h.c.DB(), nothing))
		h.want(h.check("A"), false, false, false)
	})
	t.Run("H8 two servers that find one loss raise the epochs once", func(t *testing.T) {
		h := newHistory(t, c, "raise-once")
		h.setEpochs(0)
		h.exec("DELETE FROM schedule_server WHERE uuid = '%s'", h.uuid("B"))
		h.gone("B")
		h.want(h.check("A"), true, true, false)
		floor := h.floor()
		h.want(h.check("B"), true, false, false)
		if after := h.floor(); after != floor {
			t.Fatalf("the second server raised the epoch_floor from %d to %d", floor, after)
		}
		loss, found, err := h.c.Roster().Loss(t.Context())
		h.must(err)
		if !found || !strings.Contains(loss.Report, "found by "+roster.ServerName(h.uuid("A"))) ||
			!strings.Contains(loss.Report, "found by "+roster.ServerName(h.uuid("B"))+", too") {
			t.Fatalf("the report is %q, want both servers in it", loss.Report)
		}
		h.want(h.check("B"), false, false, false) // it has settled that
	})
	t.Run("H8 a second loss within ten minutes waits for an operator", func(t *testing.T) {
		h := newHistory(t, c, "raise-again")
		h.setEpochs(0)
		h.want(h.check("A"), true, true, false)
		h.rebalance("A")
		h.note("A")
		floor := h.floor()
		h.setEpochs(floor) // the owner had one more
		h.want(h.check("A"), true, false, true)
		h.want(h.check("A"), true, false, true)
		if loss, _, err := h.c.Roster().Loss(t.Context()); err != nil || strings.Count(loss.Report, "lost again") != 1 {
			t.Fatalf("the report is %q, want that history was lost again: %v", loss.Report, err)
		}
		h.must(h.c.Roster().Operator("alice").AcknowledgeLoss(t.Context()))
		h.want(h.check("A"), true, true, false)
		if after := h.floor(); after < floor+1_000_000 {
			t.Fatalf("the epoch_floor went from %d to %d, want a million more", floor, after)
		}
		h.exec("UPDATE schedule_environment SET lost_at = '2020-01-01 00:00:00.000000' WHERE own_sign = '%s'", h.c.OwnSign())
		h.rebalance("A")
		h.note("A")
		h.setEpochs(0)
		h.want(h.check("A"), true, true, false) // the ten minutes are over
	})
	t.Run("H8 no epoch is left", func(t *testing.T) {
		h := newHistory(t, c, "raise-too-high")
		h.exec("UPDATE schedule_task_running SET epoch_high = 999999999990 WHERE task_type = '%s'", h.task)
		h.setEpochs(0)
		_, err := h.c.Roster().Planner(h.task, h.uuid("A")).CheckHistory(t.Context(), h.memories["A"].Snapshot())
		wantErrors(t, map[string]error{"no epoch is left below 1000000000000": err})
	})
	t.Run("H8 the doctor reports a loss until an operator acknowledges it", func(t *testing.T) {
		h := newHistory(t, c, "raise-doctor")
		reported := func() int {
			list, err := doctor.Diagnose(t.Context(), ops.New(h.c), h.task)
			h.must(err)
			return len(slices.DeleteFunc(list, func(c condition.Condition) bool {
				return c.Kind != condition.HistoryLost.Name || c.Status != condition.Problem
			}))
		}
		acknowledge := func() error {
			change, err := verbs.AckLoss{}.Prepare(t.Context(), ops.New(h.c))
			if err == nil {
				_, err = change.Do(t.Context(), "alice")
			}
			return err
		}
		if n := reported(); n != 0 {
			t.Fatalf("%d findings before the loss", n)
		}
		h.setEpochs(0)
		h.want(h.check("A"), true, true, false)
		if n := reported(); n != 1 {
			t.Fatalf("%d findings, want 1", n)
		}
		h.must(acknowledge())
		if n := reported(); n != 0 {
			t.Fatalf("%d findings after the acknowledgement", n)
		}
		if err := acknowledge(); !errors.Is(err, roster.ErrNoLoss) {
			t.Fatalf("acknowledge again: error %v, want ErrNoLoss", err)
		}
	})
}

// testQueuesBelowTheFloor checks what raises a queue that is not above the epoch_floor, and what waits for that.
func testQueuesBelowTheFloor(t *testing.T, c *center.Center) {
	t.Run("H8 a paused task type raises its epochs", func(t *testing.T) {
		h := newHistory(t, c, "raise-paused")
		h.must(h.c.Roster().Operator("alice").Pause(t.Context(), h.task, true))
		h.setEpochs(0)
		h.want(h.check("A"), true, true, false)
		h.rebalance("A")
		if epoch := h.epoch("0"); epoch != h.floor()+1 {
			t.Fatalf("the epoch is %d, want one above %d", epoch, h.floor())
		}
	})
	t.Run("H8 another number of queues starts above the floor", func(t *testing.T) {
		h := newHistory(t, c, "raise-repartition")
		h.setEpochs(0)
		h.want(h.check("A"), true, true, false)
		h.rebalance("A")
		floor := h.floor()
		h.setEpochs(floor - 5) // rows that no plan could raise yet
		h.must(h.c.Roster().Operator("alice").Repartition(t.Context(), h.task, 4, 0))
		h.drainAll("A")
		h.drainAll("B")
		h.wantChanges(`{"all":4}`) // a plan raises the epochs first
		h.rebalance("A")
		h.drainAll("A")
		h.drainAll("B")
		h.wantChanges("")
		for _, queue := range []string{"0", "1", "2", "3"} {
			if epoch := h.epoch(queue); epoch <= floor {
				t.Errorf("queue %s has epoch %d, want more than %d", queue, epoch, floor)
			}
		}
	})
	t.Run("H8 L5 a row that a transaction holds is raised later", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		h := newHistory(t, c, "raise-held")
		h.setEpochs(0)
		h.exec("UPDATE schedule_queue SET req_server = '%s' WHERE task_type = '%s' AND queue_id = '0'", h.uuid("B"), h.task)
		tx, err := h.c.DB().BeginTx(t.Context(), nil)
		h.must(err)
		defer tx.Rollback()
		h.must(center.Fence(h.batch("A", "0"), tx))
		h.want(h.check("A"), true, true, false)
		h.rebalance("B")
		floor := h.floor()
		if low, raised := h.epoch("0"), h.epoch("1"); low != 0 || raised != floor+1 {
			t.Fatalf("the epochs are %d and %d, want 0 of the held row and %d", low, raised, floor+1)
		}
		if p, _ := h.heartbeat("A"); !slices.Equal(p.Skipped, []string{"0"}) {
			t.Fatalf("the reply names %v, want queue 0, which its owner drains", p.Skipped)
		}
		h.must(tx.Commit())
		if left := h.rebalanceSkipped("A"); len(left) > 0 {
			t.Fatalf("the plan skipped %v, want nothing", left)
		}
		if epoch := h.epoch("0"); epoch != floor+1 {
			t.Fatalf("the epoch is %d, want %d", epoch, floor+1)
		}
	})
	t.Run("H8 no server releases or retakes a queue that is not above the floor", func(t *testing.T) {
		h := newHistory(t, c, "raise-release")
		h.setEpochs(0)
		h.want(h.check("A"), true, true, false)
		h.rebalance("A")
		h.exec("UPDATE schedule_queue SET epoch = %d, req_server = '%s' WHERE task_type = '%s'", h.floor(), h.uuid("B"), h.task)
		if released := h.release("A", h.handover("0", "B")); len(released) > 0 {
			t.Fatalf("released %v", released)
		}
		kept, err := h.c.Roster().Server(h.task, h.uuid("A")).Retake(t.Context(), "0", h.floor())
		h.must(err)
		if kept {
			t.Fatal("A has retaken queue 0")
		}
		h.rebalanceAlways("B")
		if epoch := h.epoch("0"); epoch != h.floor()+1 {
			t.Fatalf("the epoch is %d, want %d", epoch, h.floor()+1)
		}
	})
	t.Run("H8 no queue is released or retaken before a plan adopts the floor", func(t *testing.T) {
		h := newHistory(t, c, "raise-due")
		h.setEpochs(70)
		h.note("A")
		h.setEpochs(60)
		h.want(h.check("A"), true, true, false)
		h.exec("UPDATE schedule_queue SET req_server = '%s' WHERE task_type = '%s'", h.uuid("B"), h.task)
		if released := h.release("A", h.handover("0", "B")); len(released) > 0 {
			t.Errorf("released %v under epoch %d", released, h.epoch("0"))
		}
		kept, err := h.c.Roster().Server(h.task, h.uuid("A")).Retake(t.Context(), "1", 60)
		h.must(err)
		if kept {
			t.Errorf("A has retaken queue 1 under epoch %d", h.epoch("1"))
		}
	})
	t.Run("H8 servers of two task types raise the epochs once", func(t *testing.T) {
		h := newHistory(t, c, "raise-race")
		other := h.sibling("other")
		other.define(center.Settings{Queues: 1})
		other.join("C")
		memory := roster.NewMemory()
		view, err := h.c.Roster().Server(other.task, other.uuid("C")).View(t.Context())
		h.must(err)
		memory.Note(view, other.uuid("C"))
		h.setEpochs(0)
		other.exec("UPDATE schedule_queue SET epoch = 0 WHERE task_type = '%s'", other.task)
		var checks [2]roster.HistoryCheck
		var errs [2]error
		var both sync.WaitGroup
		both.Go(func() {
			known := h.memories["A"].Snapshot()
			checks[0], errs[0] = h.c.Roster().Planner(h.task, h.uuid("A")).CheckHistory(t.Context(), known)
		})
		both.Go(func() {
			checks[1], errs[1] = h.c.Roster().Planner(other.task, other.uuid("C")).CheckHistory(t.Context(), memory.Snapshot())
		})
		both.Wait()
		h.must(errors.Join(errs[:]...))
		if checks[0].Raised == checks[1].Raised || !checks[0].Lost || !checks[1].Lost {
			t.Fatalf("the checks are %+v, want that one of them has raised the epochs", checks)
		}
	})
}
