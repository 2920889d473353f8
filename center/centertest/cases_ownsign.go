package centertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/schema"
)

// testOwnSignExpiry checks that only environments without a live server for long expire.
func testOwnSignExpiry(t *testing.T, url string) {
	open := func(sign string) *fixture {
		r := newFixture(t, Open(t, url, center.Options{OwnSign: sign}), center.Settings{Queues: 2})
		r.tokens = map[string]string{}
		return r
	}
	base := open("")
	base.join("A")
	signs := map[string]*fixture{}
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
	base.exec("INSERT INTO schedule_failed_item (task_type, own_sign, item_key, queue_id) VALUES ('%s', 'OLD', 'k', '0')", base.task)

	p, _ := base.heartbeat("A")
	expire := func(seen time.Time) []string {
		expired, err := base.c.ExpireOwnSigns(t.Context(), base.task, base.uuid("A"), seen, time.Minute)
		base.must(err)
		return expired
	}
	if expired := expire(p.Now.Add(-time.Hour)); len(expired) > 0 {
		t.Fatalf("S7 expired by a clock that was set: %v", expired)
	}
	if diff := cmp.Diff([]string{"DIED", "OLD"}, expire(p.Now)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for sign, r := range signs {
		left := 2
		if slices.Contains([]string{"DIED", "OLD"}, sign) {
			left = 0
		}
		if got := len(r.owners()); got != left {
			t.Errorf("%s has %d queues, want %d", sign, got, left)
		}
	}
	if n := base.readInt("SELECT COUNT(*) FROM schedule_failed_item WHERE task_type = '%s'", base.task); n > 0 {
		t.Error("failed items are left")
	}
	if n := base.readInt("SELECT COUNT(*) FROM schedule_server_history WHERE uuid = '%s'", signs["DIED"].uuid("DIED")); n != 1 {
		t.Error("the dead server is not in the history")
	}
	old := signs["OLD"]
	old.define(center.Settings{Queues: 5})
	old.join("B")
	old.wantOwners("B", "B")
	if e := old.epoch("0"); e <= 7 {
		t.Errorf("H6 epoch %d was used before", e)
	}
	base.wantOwners("A", "A")
}

// testAlert checks that one of many servers raises an alert.
func testAlert(t *testing.T, c *center.Center) {
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A")
	raise := func(a center.Alert, every time.Duration) bool {
		raised, err := c.Roster().Alert(t.Context(), r.task, a, every)
		r.must(err)
		return raised
	}
	standby := center.Alert{Kind: center.AlertStandby, Text: "1 of 3 servers"}
	stalled := center.Alert{Kind: center.AlertStalled, Server: r.uuid("A"), QueueID: "1", Text: "for 5m"}
	fetch := center.Alert{Kind: "NO_FETCH", Text: "x"}
	for i, want := range []bool{true, false} {
		for _, a := range []center.Alert{standby, stalled, fetch} {
			if raise(a, time.Hour) != want {
				t.Fatalf("%s, time %d: raised is not %t", a.Kind, i+1, want)
			}
		}
	}
	other := stalled
	other.QueueID = "0"
	if !raise(other, time.Hour) || !raise(center.Alert{Kind: "NOXFETCH", Text: "x"}, time.Hour) {
		t.Fatal("another alert is taken for the same")
	}
	r.exec("UPDATE schedule_event SET event_time = '2020-01-01 00:00:00.000000' WHERE task_type = '%s'", r.task)
	if !raise(standby, time.Hour) {
		t.Fatal("not repeated")
	}
	if servers, queues, err := c.Roster().Standby(t.Context(), r.task); err != nil || servers != 1 || queues != 2 {
		t.Fatal(servers, queues, err)
	}
}

// testDrainServer: an operator takes everything from a server, in order or by force.
func testDrainServer(t *testing.T, c *center.Center) {
	drain := func(r *fixture, name string, force bool) []string {
		r.Helper()
		held, err := c.Roster().DrainServer(r.Context(), r.uuid(name), force, "test")
		r.must(err)
		return held
	}
	t.Run("in order: the others ask", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		drain(r, "A", false)
		r.rebalance("B")
		r.wantOwners("A>B", "A>B")
		r.must(c.Roster().PauseServer(t.Context(), r.uuid("A"), false, "test"))
		r.rebalance("B")
		r.wantOwners("A", "A>B")
	})
	t.Run("P7 while there are no others, it works on", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		drain(r, "A", false)
		r.rebalance("A")
		r.wantOwners("A")
	})
	t.Run("H5 by force: at once, under new epochs", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		before := r.epoch("0")
		batch := r.batch("A", "0")
		if held := drain(r, "A", true); len(held) > 0 {
			t.Fatal(held)
		}
		r.wantOwners("B", "B")
		if now := r.epoch("0"); now != before+1 {
			t.Fatalf("epoch %d, want %d", now, before+1)
		}
		if kinds := r.eventKinds("0"); kinds[len(kinds)-1] != center.EventForced {
			t.Fatalf("events: %v", kinds)
		}
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		if err := center.Fence(batch, tx); !center.IsFenced(err) {
			t.Fatalf("the fence lets the old owner write: %v", err)
		}
		r.must(tx.Rollback())
		if p, ok := r.heartbeat("A"); !ok || p.Owned != 0 {
			t.Fatalf("the server is not registered, or owns queues: %t, %+v", ok, p)
		}
	})
	t.Run("H5 by force, without another server", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 1})
		r.join("A")
		drain(r, "A", true)
		r.wantOwners("-")
		r.rebalance("A")
		r.wantOwners("-")
		r.must(c.Roster().PauseServer(t.Context(), r.uuid("A"), false, "test"))
		r.rebalance("A")
		r.wantOwners("A")
	})
	t.Run("H5 a transaction of the server holds a queue", func(t *testing.T) {
		if c.Dialect() == schema.SQLite {
			t.Skip("SQLite has one lock for all writers")
		}
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		tx, err := c.DB().BeginTx(t.Context(), nil)
		r.must(err)
		defer tx.Rollback()
		r.must(center.Fence(r.batch("A", "0"), tx))
		if diff := cmp.Diff([]string{"0"}, drain(r, "A", true)); diff != "" {
			t.Fatalf("held (-want +got):\n%s", diff)
		}
		r.wantOwners("A", "B")
	})
	t.Run("bad input", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.join("A")
		drain(r, "A", false)
		if err := c.Roster().PauseServer(t.Context(), r.uuid("A"), true, "test"); err == nil || !strings.Contains(err.Error(), "it is draining") {
			t.Error(err)
		}
		if _, err := c.Roster().DrainServer(t.Context(), "nobody", true, "test"); !errors.Is(err, center.ErrGone) {
			t.Error(err)
		}
	})
}
