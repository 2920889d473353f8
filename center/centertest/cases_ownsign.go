package centertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
)

// testOwnSignExpiry checks that only environments expire that have had no live server for long and hold no cursors.
func testOwnSignExpiry(t *testing.T, _ *center.Center, url string) {
	base, signs := newOwnSigns(t, url)
	p, _ := base.heartbeat("A")
	expire := func(seen time.Time) []string {
		expired, err := ops.New(base.c).ExpireOwnSigns(t.Context(), base.task, base.uuid("A"), seen, time.Minute)
		base.must(err)
		return expired
	}
	if expired := expire(p.Now.Add(-time.Hour)); len(expired) > 0 {
		t.Fatalf("own_signs %v expired under a clock that was set, want none (S7)", expired)
	}
	setInterval := func(ms int) {
		base.exec("UPDATE schedule_task_type SET expire_own_sign_interval_ms = %d WHERE task_type = '%s'", ms, base.task)
	}
	setInterval(1) // by hand, less than judge_dead_interval: a day was meant
	if expired := expire(p.Now); len(expired) > 0 {
		t.Fatalf("own_signs %v expired by an interval that workers refuse, want none (S13)", expired)
	}
	setInterval(0) // by hand: the default, as in code
	if diff := cmp.Diff([]string{"DIED", "OLD"}, expire(p.Now)); diff != "" {
		t.Fatalf("expired own_signs (-want +got):\n%s", diff)
	}
	for sign, r := range signs {
		left := 2
		if slices.Contains([]string{"DIED", "OLD"}, sign) {
			left = 0
		}
		if got := len(r.owners()); got != left {
			t.Errorf("own_sign %s has %d queues, want %d", sign, got, left)
		}
	}
	if n := base.readInt("SELECT COUNT(*) FROM schedule_failed_item WHERE task_type = '%s'", base.task); n > 0 {
		t.Errorf("%d failed items of an expired own_sign are left, want 0", n)
	}
	if n := base.readInt("SELECT COUNT(*) FROM schedule_server_history WHERE uuid = '%s'", signs["DIED"].uuid("DIED")); n != 1 {
		t.Errorf("the history has %d rows of the dead server, want 1", n)
	}
	old := signs["OLD"]
	old.define(center.Settings{Queues: 5})
	old.join("B")
	old.wantOwners("B", "B")
	if e := old.epoch("0"); e <= 7 {
		t.Errorf("queue 0 has epoch %d, want one above 7, which was used before (H6)", e)
	}
	base.wantOwners("A", "A")
	base.exec("UPDATE schedule_task_type SET judge_dead_interval_ms = 1 WHERE task_type = '%s'", base.task)
	setInterval(1)
	if expired := expire(p.Now); slices.Contains(expired, "LIVES") {
		t.Errorf("own_signs %v expired, want LIVES to stay: its server is alive by the interval that it goes by (S13)", expired)
	}
}

// newOwnSigns defines the task type in BASE and in environments with names that say what became of them.
func newOwnSigns(t *testing.T, url string) (base *fixture, signs map[string]*fixture) {
	t.Helper()
	open := func(sign string) *fixture {
		return newFixture(t, Open(t, url, center.Options{OwnSign: sign}), center.Settings{Queues: 2})
	}
	base = open("")
	base.join("A")
	signs = map[string]*fixture{}
	for _, sign := range []string{"OLD", "DIED", "LIVES", "CURSOR", "YOUNG"} {
		r := open(sign)
		signs[sign] = r
		if sign != "OLD" {
			r.join(sign)
		}
		r.exec("UPDATE schedule_queue SET epoch = 7 WHERE task_type = '%s' AND own_sign = '%s'", r.task, sign)
		if sign != "YOUNG" {
			r.exec("UPDATE schedule_queue SET gmt_modified = '2020-01-01 00:00:00.000000' WHERE task_type = '%s' AND own_sign = '%s'", r.task, sign)
		}
	}
	for _, sign := range []string{"DIED", "CURSOR", "YOUNG"} {
		signs[sign].makeSilent(sign)
	}
	base.exec("UPDATE schedule_queue SET cursor_value = '17' WHERE task_type = '%s' AND own_sign = 'CURSOR'", base.task)
	base.exec("INSERT INTO schedule_failed_item (task_type, own_sign, item_hash, item_key, queue_id, last_error, order_key, first_failed_at) VALUES ('%s', 'OLD', 'h', 'k', '0', '', '', '2020-01-01 00:00:00.000000')", base.task)
	return base, signs
}

// drainServer drains a server as an operator. It returns the queues that transactions of the server hold.
func (r serverSteps) drainServer(name string, force bool) []string {
	r.Helper()
	held, err := r.c.Roster().Operator("test").DrainServer(r.Context(), r.uuid(name), force)
	r.must(err)
	return held
}

// testDrainServer checks that the others own all queues after an operator has drained a server.
func testDrainServer(t *testing.T, c *center.Center) {
	t.Run("P5 the plan requests the queues of a draining server", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.drainServer("A", false)
		r.rebalance("B")
		r.wantOwners("A>B", "A>B")
		r.must(c.Roster().Operator("test").PauseServer(t.Context(), r.uuid("A"), false))
		r.rebalance("B")
		r.wantOwners("A", "A>B")
	})
	t.Run("P7 the only server keeps its queues while it is draining", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		r.drainServer("A", false)
		r.rebalance("A")
		r.wantOwners("A")
	})
	t.Run("an error of a drain names the cause", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.drainServer("A", false)
		if err := c.Roster().Operator("test").PauseServer(t.Context(), r.uuid("A"), true); err == nil || !strings.Contains(err.Error(), "it is draining") {
			t.Errorf("pause a draining server: error %v, want a refusal", err)
		}
		if _, err := c.Roster().Operator("test").DrainServer(t.Context(), "nobody", true); !errors.Is(err, center.ErrGone) {
			t.Errorf("drain an unknown server: error %v, want ErrGone", err)
		}
	})
}

// testForce checks what a forced drain does with the queues of a server.
func testForce(t *testing.T, c *center.Center) {
	t.Run("H5 a forced drain moves the queues at once, under new epochs", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		before := r.epoch("0")
		batch := r.batch("A", "0")
		if held := r.drainServer("A", true); len(held) > 0 {
			t.Fatalf("the forced drain left queues %v, want none", held)
		}
		r.wantOwners("B", "B")
		if now := r.epoch("0"); now != before+1 {
			t.Fatalf("queue 0 has epoch %d, want %d", now, before+1)
		}
		if kinds := r.eventKinds("0"); kinds[len(kinds)-1] != ops.EventForced {
			t.Fatalf("events of queue 0 are %v, want FORCED as the last", kinds)
		}
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		if err := center.Fence(batch, tx); !center.IsFenced(err) {
			t.Fatalf("fence of the old owner: error %v, want ErrFenced", err)
		}
		r.must(tx.Rollback())
		if p, ok := r.heartbeat("A"); !ok || len(r.read("A").Queues) != 0 {
			t.Fatalf("heartbeat reply %+v, want a registered server without queues; registered: %t", p, ok)
		}
	})
	t.Run("H5 a forced drain of the only server leaves the queues without an owner", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		r.drainServer("A", true)
		r.wantOwners("-")
		r.rebalance("A")
		r.wantOwners("-")
		r.must(c.Roster().Operator("test").PauseServer(t.Context(), r.uuid("A"), false))
		r.rebalance("A")
		r.wantOwners("A")
	})
}

// testForceHeld checks forced drains while a fenced transaction is in flight.
func testForceHeld(t *testing.T, c *center.Center) {
	if !needsRowLocks(t, c) {
		return
	}
	t.Run("H5 a forced drain leaves the queue that a transaction holds", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		r.must(center.Fence(r.batch("A", "0"), tx))
		if diff := cmp.Diff([]string{"0"}, r.drainServer("A", true)); diff != "" {
			t.Fatalf("queues that the transaction holds (-want +got):\n%s", diff)
		}
		r.wantOwners("A", "B")
	})
	t.Run("H5 a forced drain waits for the transaction that holds a queue", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		r.must(center.Fence(r.batch("A", "0"), tx))
		held, err := c.Roster().Operator("test").ForceDrainServer(t.Context(), r.uuid("A"), time.Millisecond)
		r.must(err)
		if diff := cmp.Diff([]string{"0"}, held); diff != "" {
			t.Fatalf("queues that are held when the wait is over (-want +got):\n%s", diff)
		}
		ended := make(chan error, 1)
		go func() {
			held, err := c.Roster().Operator("test").ForceDrainServer(t.Context(), r.uuid("A"), time.Minute)
			if err == nil && len(held) > 0 {
				err = fmt.Errorf("queues %v are held, want none", held)
			}
			ended <- err
		}()
		time.Sleep(200 * time.Millisecond) // on a slow machine the drain may begin later: then the case proves less, and passes
		r.must(tx.Commit())
		r.must(<-ended)
		r.wantOwners("B", "B")
	})
}
