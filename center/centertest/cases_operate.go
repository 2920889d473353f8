package centertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// drained sends a heartbeat that says that the server has drained for the barrier that it sees.
func (r *fixture) drained(name string) roster.HeartbeatReply {
	r.Helper()
	p, ok := r.beat(name)
	if !ok {
		r.Fatalf("%s is gone", name)
	}
	b := roster.Heartbeat{OldTokens: []string{r.tokens[name]}, Token: r.tokens[name] + "+", Servers: []roster.ServerReport{
		{UUID: r.uuid(name), State: center.StateServing, DrainedPartition: p.PartitionVersion},
	}}
	pulses, err := r.c.Roster().SendHeartbeat(r.Context(), b)
	r.must(err)
	r.tokens[name] = b.Token
	return pulses[r.uuid(name)]
}

func (r *fixture) finish(name string) bool {
	r.Helper()
	done, err := r.c.Roster().FinishRepartition(r.Context(), r.task, r.uuid(name))
	r.must(err)
	return done
}

func testRepartition(t *testing.T, c *center.Center) {
	for name, total := range map[string]int{"more": 5, "fewer": 2} {
		t.Run("N1 "+name, func(t *testing.T) {
			r := newRoster(t, c, center.Settings{Queues: 3})
			r.join("A", "B")
			r.release("A", r.handover("1", "B"))
			before := r.epoch("1")
			r.must(c.Roster().Repartition(t.Context(), r.task, total, "test"))
			if r.finish("A") {
				t.Fatal("the number was changed before anybody had drained")
			}
			if p := r.drained("A"); p.RequestedTotal != total || p.AllDrained {
				t.Fatalf("%+v", p)
			}
			if r.finish("A") {
				t.Fatal("the number was changed while B had work in hand")
			}
			if p := r.drained("B"); !p.AllDrained {
				t.Fatalf("all have drained, and the pulse does not tell: %+v", p)
			}
			if !r.finish("B") || r.finish("A") {
				t.Fatal("not changed, or changed twice")
			}
			if got := len(r.owners()); got != total {
				t.Fatalf("%d queues, want %d", got, total)
			}
			if got := r.epoch("1"); got != before+1 {
				t.Fatalf("epoch %d, want %d: what was selected under the old number is not void", got, before+1)
			}
			p, _ := r.beat("A")
			if p.QueueTotal != total || p.RequestedTotal != 0 || p.MembershipVersion == p.PlannedVersion {
				t.Fatalf("%+v", p)
			}
			r.assign("A")
			for _, owner := range r.owners() {
				if owner == "-" {
					t.Fatalf("a queue has no owner: %v", r.owners())
				}
			}
		})
	}
	t.Run("N1 H6 a queue that comes back starts above its old epoch", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.join("A")
		for range 5 {
			r.exec("UPDATE schedule_queue SET epoch = epoch + 1 WHERE task_type = '%s' AND queue_id = '1'", r.task)
		}
		old := r.epoch("1")
		for _, total := range []int{1, 2} {
			r.must(c.Roster().Repartition(t.Context(), r.task, total, "test"))
			r.drained("A")
			if !r.finish("A") {
				t.Fatal("not changed")
			}
		}
		if now := r.epoch("1"); now <= old {
			t.Fatalf("epoch %d was used before, up to %d", now, old)
		}
	})
	t.Run("N1 what was drained for another request does not count", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.must(c.Roster().Repartition(t.Context(), r.task, 4, "test"))
		r.drained("A")
		r.must(c.Roster().Repartition(t.Context(), r.task, 2, "test")) // withdrawn: A goes on
		r.must(c.Roster().Repartition(t.Context(), r.task, 4, "test"))
		if r.finish("A") {
			t.Fatal("changed while A was at work")
		}
	})
	t.Run("N1 who joins meanwhile is waited for", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.must(c.Roster().Repartition(t.Context(), r.task, 4, "test"))
		r.drained("A")
		r.join("B")
		if r.finish("A") {
			t.Fatal("changed while B may be at work")
		}
	})
	t.Run("N1 cursors belong to a number", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.join("A")
		cursor := func(value string) {
			r.exec("UPDATE schedule_queue SET cursor_value = '%s' WHERE task_type = '%s' AND queue_id = '1'", value, r.task)
		}
		cursor("17")
		if err := c.Roster().Repartition(t.Context(), r.task, 4, "test"); err == nil || !strings.Contains(err.Error(), "the queues have cursors") {
			t.Fatal(err)
		}
		cursor("")
		r.must(c.Roster().Repartition(t.Context(), r.task, 4, "test"))
		r.drained("A")
		cursor("18")
		if r.finish("A") {
			t.Fatal("the number was changed under a cursor")
		}
		if p, _ := r.beat("A"); p.RequestedTotal != 0 {
			t.Fatalf("everybody waits for what cannot be: %+v", p)
		}
	})
	t.Run("N1 a window that one queue has not done is not done", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.join("A")
		since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		done := func() int64 {
			return r.one("SELECT COUNT(window_done_at) FROM schedule_queue WHERE task_type = '%s'", r.task)
		}
		if done() != 2 {
			t.Fatal("a new queue would make up for a window that is open already")
		}
		r.exec("UPDATE schedule_queue SET window_done_at = NULL WHERE task_type = '%s'", r.task)
		r.must(c.Roster().WindowDone(t.Context(), r.task, r.uuid("A"), center.QueueEpoch{ID: "1", Epoch: r.epoch("1")}, since))
		if err := c.Roster().WindowDone(t.Context(), r.task, r.uuid("A"), center.QueueEpoch{ID: "0", Epoch: r.epoch("0") - 1}, since); !center.IsFenced(err) {
			t.Fatal(err)
		}
		v, err := c.Roster().View(t.Context(), r.task, r.uuid("A"))
		r.must(err)
		if !v.Queues[1].WindowDone.Equal(since) || !v.Queues[0].WindowDone.IsZero() {
			t.Fatalf("%+v", v.Queues)
		}
		for i, want := range []int64{0, 5} {
			r.must(c.Roster().Repartition(t.Context(), r.task, 4+i, "test"))
			r.drained("A")
			r.finish("A")
			if done() != want {
				t.Fatalf("%d queues are done, want %d", done(), want)
			}
			r.exec("UPDATE schedule_queue SET window_done_at = '2026-01-02 03:04:05.000000' WHERE task_type = '%s'", r.task)
		}
	})
	t.Run("bad input", func(t *testing.T) {
		named := newRoster(t, c, center.Settings{QueueNames: []string{"n", "s"}})
		for want, err := range map[string]error{
			"the queues have names":            c.Roster().Repartition(t.Context(), named.task, 4, "test"),
			"queues (0) must be between 1 and": c.Roster().Repartition(t.Context(), named.task, 0, "test"),
			"unknown task type":                c.Roster().Repartition(t.Context(), "nobody", 3, "test"),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	})
}

func testPause(t *testing.T, c *center.Center) {
	t.Run("the task type", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.join("A")
		for _, paused := range []bool{true, false} {
			r.must(c.Roster().Pause(t.Context(), r.task, paused, "test"))
			if p, _ := r.beat("A"); p.Paused != paused {
				t.Fatalf("paused: %t, want %t", p.Paused, paused)
			}
		}
		r.wantOwners("A", "A")
	})
	t.Run("errors say what was tried", func(t *testing.T) {
		for verb, paused := range map[string]bool{"pause": true, "resume": false} {
			if err := c.Roster().PauseServer(t.Context(), "nobody", paused, "test"); !errors.Is(err, center.ErrGone) || !strings.HasPrefix(err.Error(), verb+" nobody: ") {
				t.Error(err)
			}
			if err := c.Roster().Pause(t.Context(), "nothing", paused, "test"); !errors.Is(err, center.ErrUnknownTask) || !strings.HasPrefix(err.Error(), verb+" nothing$") {
				t.Error(err)
			}
		}
	})
	t.Run("a server: others take its queues over, as it gives them", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.join("A", "B")
		r.release("A", r.handover("1", "B"))
		r.must(c.Roster().PauseServer(t.Context(), r.uuid("A"), true, "test"))
		r.assign("B")
		r.wantOwners("A>B", "B")
		if p, _ := r.beat("A"); p.State != center.StatePaused {
			t.Fatalf("state %s", p.State)
		}
		r.must(c.Roster().PauseServer(t.Context(), r.uuid("A"), false, "test"))
		r.assign("B")
		r.wantOwners("A", "B")
	})
	t.Run("P7 the only server keeps its queues", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 2})
		r.join("A")
		r.must(c.Roster().PauseServer(t.Context(), r.uuid("A"), true, "test"))
		r.assign("A")
		r.wantOwners("A", "A")
	})
	t.Run("no such server", func(t *testing.T) {
		if err := c.Roster().PauseServer(t.Context(), "nobody", true, "test"); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Fatal(err)
		}
	})
}

func testRetention(t *testing.T, c *center.Center) {
	r := newRoster(t, c, center.Settings{Queues: 1})
	r.join("A", "B")
	r.must(c.Roster().Leave(t.Context(), r.task, r.uuid("B"), nil))
	r.exec("UPDATE schedule_event SET event_time = '2020-01-01 00:00:00.000000' WHERE task_type = '%s' AND kind = 'JOINED'", r.task)
	r.exec("UPDATE schedule_server_history SET left_time = '2020-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid("B"))
	n, err := c.Clean(t.Context(), time.Hour)
	r.must(err)
	if n < 3 {
		t.Fatalf("%d rows went, want at least 3", n)
	}
	if diff := cmp.Diff([]string{center.EventLeft}, r.kinds("")); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
	if n := r.one("SELECT COUNT(*) FROM schedule_server_history WHERE uuid = '%s'", r.uuid("B")); n != 0 {
		t.Fatal("the history of B is still there")
	}
}

// testWatch: what a server inherits when it registers (S7).
func testWatch(t *testing.T, c *center.Center) {
	register := func(r *fixture, name string) roster.Registration {
		reg, err := c.Roster().Register(t.Context(), roster.Server{UUID: r.uuid(name), TaskType: r.task, JudgeDeadInterval: 10 * time.Second, HeartbeatToken: "first"})
		r.must(err)
		r.tokens[name] = "first"
		return reg
	}
	t.Run("the first begins to watch", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 1})
		if reg := register(r, "A"); !reg.WatchingSince.Equal(reg.At) {
			t.Fatalf("%+v", reg)
		}
	})
	t.Run("the next inherits", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 1})
		first := register(r, "A")
		if second := register(r, "B"); !second.WatchingSince.Equal(first.WatchingSince) {
			t.Fatalf("%+v after %+v", second, first)
		}
	})
	t.Run("nothing is inherited when the clock was set back", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 1})
		register(r, "A")
		register(r, "B")
		r.exec("UPDATE schedule_server SET heartbeat_time = '2999-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid("B"))
		if third := register(r, "C"); !third.WatchingSince.Equal(third.At) {
			t.Fatalf("%+v", third)
		}
	})
	t.Run("not from one whose heartbeat is old", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 1})
		register(r, "A")
		r.silence("A")
		if second := register(r, "B"); !second.WatchingSince.Equal(second.At) {
			t.Fatalf("%+v", second)
		}
	})
	t.Run("a heartbeat after a gap begins the watch anew", func(t *testing.T) {
		r := newRoster(t, c, center.Settings{Queues: 1})
		first := register(r, "A")
		old := first.WatchingSince.Add(-time.Hour)
		r.exec("UPDATE schedule_server SET watching_since = '2020-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid("A"))
		beat := func() {
			b := roster.Heartbeat{OldTokens: []string{r.tokens["A"]}, Token: r.tokens["A"] + "+", Servers: []roster.ServerReport{{UUID: r.uuid("A"), WatchingSince: old}}}
			_, err := c.Roster().SendHeartbeat(t.Context(), b)
			r.must(err)
			r.tokens["A"] = b.Token
		}
		beat()
		if second := register(r, "B"); !second.WatchingSince.Equal(old) {
			t.Fatalf("what the server told is not inherited: %+v", second)
		}
		r.exec("DELETE FROM schedule_server WHERE uuid = '%s'", r.uuid("B"))
		r.silence("A")
		beat() // the outage is over: A tells of its old watch, and the database knows better
		if third := register(r, "C"); third.WatchingSince.Before(first.At) {
			t.Fatalf("the gap was inherited as none: %+v", third)
		}
		beat() // the reply was lost, and the same is told again: the row knows better still
		if fourth := register(r, "D"); fourth.WatchingSince.Before(first.At) {
			t.Fatalf("a repeated heartbeat set the watch back: %+v", fourth)
		}
	})
}

// testWaits: for whom a server waits, in words.
func testWaits(t *testing.T, c *center.Center) {
	r := newRoster(t, c, center.Settings{Queues: 4})
	r.join("A", "B")
	waits, err := c.Roster().PendingHandovers(t.Context(), r.uuid("B"))
	r.must(err)
	if len(waits) != 1 || waits[0].Owner != r.uuid("A") || waits[0].Queues != 2 || waits[0].JudgeDeadInterval != 10*time.Second {
		t.Fatalf("%+v", waits)
	}
	if got, want := waits[0].String(), "queue 1 and 1 more are held by "+r.uuid("A")+", which finishes what it has in flight; requested 0s ago"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	dead := roster.PendingHandover{Owner: "web1:4711:ab", Queues: 1, FirstQueue: "3", SilentFor: 6 * time.Second, JudgeDeadInterval: 10 * time.Second}
	if got, want := dead.String(), "queue 3 is held by web1:4711:ab, last heartbeat 6s ago; taken over in 4s"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if waits, err := c.Roster().PendingHandovers(t.Context(), r.uuid("A")); err != nil || len(waits) > 0 {
		t.Errorf("A waits for nobody: %v, %v", waits, err)
	}
}
