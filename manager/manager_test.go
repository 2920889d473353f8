package manager_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestOneWorkerServesAndLeaves(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(300 * time.Millisecond) // before the first heartbeat: the first plan is made at once
		cl.wantOwners(6)
		if err := a.Ready(); err != nil {
			cl.Fatal(err)
		}
		if cl.executed("a") == 0 {
			cl.Fatal("nothing was executed")
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		cl.wantOwners()
	})
}

func TestQueuesMoveToAWorkerThatJoinsAndBack(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		b := cl.start("b", nil, fast)
		time.Sleep(10 * time.Second)
		cl.wantOwners(3, 3)
		if cl.executed("b") == 0 {
			cl.Fatal("the new worker executes nothing")
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		cl.wantOwners(6)
		before := cl.executed("b")
		time.Sleep(5 * time.Second)
		if cl.executed("b") == before {
			cl.Fatal("no worker goes on")
		}
		if err := cl.leave(b); err != nil {
			cl.Fatal(err)
		}
	})
}

// A worker that waits for a queue logs the owner and since when it waits.
func TestWaitIsLogged(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		slow := fast
		slow.ThreadNumber = slow.Queues
		cl.start("a", &work{takes: 20 * time.Second}, slow)
		time.Sleep(5 * time.Second)
		cl.start("b", nil, slow)
		time.Sleep(30 * time.Second)
		if got := cl.logged.String(); strings.Count(got, "waiting: queue 1 and 2 more are held by ") != 2 || !strings.Contains(got, "requested 4s ago") || !strings.Contains(got, "requested 14s ago") {
			cl.Fatalf("the owner that b waits for was not logged twice, 4 s and 14 s after the request:\n%s", got)
		}
	})
}

// S8: a server that waits for a queue looks for it every 200 ms, and not only with its heartbeats.
func TestHandOverIsNoticedAtOnce(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		cl.start("b", nil, fast)
		time.Sleep(10 * time.Second)
		var released string
		if err := cl.c.DB().QueryRowContext(cl.Context(), "SELECT MIN(event_time) FROM schedule_event WHERE kind = 'RELEASED'").Scan(&released); err != nil {
			cl.Fatal(err)
		}
		at, err := time.Parse("2006-01-02 15:04:05.000000", released)
		if err != nil {
			cl.Fatal(err)
		}
		if gap := cl.first["b"].Sub(at); gap > 250*time.Millisecond {
			cl.Fatalf("the new owner started %s after the release, want at most 250 ms", gap)
		}
	})
}

// S8: a server that waits for a queue polls also while it hands over queues of its own, one after the other.
func TestServerThatHandsOverStillPolls(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		many := fast
		many.Queues, many.ThreadNumber = 60, 60
		a := cl.start("a", &work{takes: time.Second, more: 100 * time.Millisecond}, many)
		time.Sleep(5 * time.Second)
		cl.exec(`INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time) VALUES ('other', 'settle', 'SERVING', '2999-01-01 00:00:00.000000', '2999-01-01 00:00:00.000000')`)
		cl.exec("UPDATE schedule_queue SET cur_server = 'other', req_server = ?, epoch = epoch + 1 WHERE queue_index = 0", cl.uuidOf("register_time < '2900'"))
		cl.exec("UPDATE schedule_queue SET req_server = 'other', req_since = rota_now() WHERE queue_index > 0")
		cl.exec("UPDATE schedule_task_running SET plan_version = plan_version + 1")
		for cl.events("RELEASED") == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		cl.exec("UPDATE schedule_queue SET cur_server = req_server, req_server = NULL, epoch = epoch + 1 WHERE queue_index = 0")
		cl.exec("UPDATE schedule_task_running SET plan_version = plan_version + 1")
		time.Sleep(250 * time.Millisecond)
		if log := cl.logged.String(); !strings.Contains(log, `msg="queue granted" epoch=4 own_sign=BASE queue=0 `) {
			cl.Errorf("the queue is not granted 250 ms after it has arrived:\n%s", log)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// The loss of a queue is logged once, also if the dealer goes on with it.
func TestLossIsLoggedOnce(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.start("a", &work{takes: time.Minute, stub: true}, fast)
		time.Sleep(5 * time.Second)
		cl.exec("UPDATE schedule_queue SET cur_server = 'other', epoch = epoch + 1 WHERE queue_index = 0")
		cl.exec("UPDATE schedule_task_running SET plan_version = plan_version + 1")
		time.Sleep(30 * time.Second)
		if log := cl.logged.String(); strings.Count(log, "queue lost") != 1 {
			cl.Errorf("the loss of a queue is not logged once:\n%s", log)
		}
	})
}

// H1: a slow batch delays the hand-over of its queue, and the two workers never execute one queue at once. inBubble fails if
// they do.
func TestReleaseWaitsForTheDrain(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		slow := fast
		slow.ThreadNumber = slow.Queues
		a := cl.start("a", &work{takes: 20 * time.Second}, slow)
		time.Sleep(5 * time.Second)
		b := cl.start("b", nil, slow)
		time.Sleep(5 * time.Second)
		cl.wantOwners(6) // requested, not released: a's batches run until the 20th second
		time.Sleep(20 * time.Second)
		cl.wantOwners(3, 3)
		if err := errors.Join(cl.leave(b), cl.leave(a)); err != nil {
			cl.Fatal(err)
		}
	})
}

// H4 H5: a drain that takes too long is cancelled. A worker whose dealer obeys has left in order.
func TestLeaveCancelsAfterDrainTimeout(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", &work{takes: time.Hour}, fast)
		time.Sleep(5 * time.Second)
		started := time.Now()
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		if took := time.Since(started); took < fast.DrainTimeout || took > fast.DrainTimeout+time.Second {
			cl.Fatalf("left after %s, want drain_timeout (%s) and at most 1 s more", took, fast.DrainTimeout)
		}
		cl.wantOwners()
		if n := cl.events("FORCED"); n != 0 {
			cl.Fatalf("%d queues were recorded as FORCED, though nothing was in flight any more, want 0", n)
		}
	})
}

// A dealer that ignores its context does not keep the process from leaving: its queues are recorded as FORCED.
func TestLeaveWithAHungDealer(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", &work{takes: time.Minute, stub: true}, fast)
		time.Sleep(5 * time.Second)
		err := cl.leave(a)
		if err == nil || !strings.Contains(err.Error(), "stop task settle: a dealer still runs 1s after its context was cancelled") {
			cl.Fatalf("the error is %v, want \"stop task settle: a dealer still runs 1s after its context was cancelled\"", err)
		}
		cl.wantOwners()
		if n := cl.events("FORCED"); n != 5 { // one for each executor
			cl.Fatalf("%d queues were recorded as FORCED, want 5", n)
		}
	})
}

// A server that was expired forgets everything and joins under a new uuid (S6).
func TestExpiredServerJoinsAgain(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", &work{takes: 3 * time.Second}, fast)
		time.Sleep(5 * time.Second)
		old := cl.uuid()
		cl.exec("DELETE FROM schedule_server")
		cl.exec("UPDATE schedule_queue SET cur_server = 'thief', epoch = epoch + 1 WHERE queue_id = '2'")
		cl.exec("UPDATE schedule_task_running SET membership_version = membership_version + 1, plan_version = plan_version + 1")
		time.Sleep(15 * time.Second)
		if now := cl.uuid(); now == old {
			cl.Fatalf("the old uuid %s was used again", old)
		}
		cl.wantOwners(6)
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// A server without heartbeats stops before other servers may take its queues, and resumes under the same epochs when the
// database is back (S5, S6).
func TestOutage(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		uuid := cl.uuid()
		block, err := cl.c.DB().BeginTx(cl.Context(), nil) // the only connection: no statement gets an answer
		if err != nil {
			cl.Fatal(err)
		}
		time.Sleep(9 * time.Second) // the lease is 10 s less 2 s, from the last heartbeat
		if err := a.Ready(); err == nil {
			cl.Fatal("ready although no heartbeat succeeded")
		}
		before := cl.executed("a")
		time.Sleep(time.Minute)
		if after := cl.executed("a"); after != before {
			cl.Fatalf("%d batches were started after the lease had expired, want 0", after-before)
		}
		if err := block.Rollback(); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if cl.executed("a") == before || cl.uuid() != uuid {
			cl.Fatal("the work did not resume in the old session")
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// S7: a dead server is expired and its queues are taken over, by a server that has watched for judge_dead_interval.
func TestTakeOver(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(time.Second)
		cl.exec(`INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time) VALUES ('dead', 'settle', 'SERVING', rota_now(), rota_now())`)
		cl.exec("UPDATE schedule_queue SET cur_server = 'dead', epoch = epoch + 1")
		cl.exec("UPDATE schedule_task_running SET plan_version = plan_version + 1")
		time.Sleep(8 * time.Second)
		if n := cl.events("EXPIRED"); n != 0 {
			cl.Fatal("expired before its judge_dead_interval")
		}
		time.Sleep(8 * time.Second)
		cl.wantOwners(6)
		if n := cl.events("TAKEN_OVER"); n != 6 {
			cl.Fatalf("%d queues were recorded as taken over, want 6", n)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// Settings that are changed in the row take effect at once. Bad ones are rejected.
func TestSettingsTakeEffectWhileRunning(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", &work{takes: time.Millisecond}, manager.Settings{Queues: 1, SleepTimeInterval: time.Hour})
		time.Sleep(5 * time.Second)
		if n := cl.executed("a"); n != 1 {
			cl.Fatalf("%d executions, want 1", n)
		}
		cl.exec("UPDATE schedule_task_type SET sleep_time_interval_ms = -1, version = version + 1")
		time.Sleep(5 * time.Second)
		if n := cl.executed("a"); n != 1 {
			cl.Fatal("bad settings were applied")
		}
		cl.exec("UPDATE schedule_task_type SET sleep_time_interval_ms = 1000, version = version + 1")
		time.Sleep(10 * time.Second)
		if n := cl.executed("a"); n < 5 {
			cl.Fatalf("%d executions: the new settings are not in force, want at least 5", n)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// H4: an owner works on until its requester knows. The requester's next heartbeat changes nothing else. The owner reads its
// queues again with its own next heartbeat, and hands the queue over.
func TestOwnerNoticesThatTheRequesterKnows(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		_, err := cl.c.Roster().Register(cl.Context(), roster.ServerInfo{UUID: "b", TaskType: "settle", JudgeDeadInterval: time.Hour, HeartbeatToken: "x"})
		if err != nil {
			cl.Fatal(err)
		}
		time.Sleep(5 * time.Second) // it is named, and has sent no heartbeat
		if n := cl.events(center.EventReleased); n != 0 || cl.events(center.EventRequested) == 0 {
			cl.Fatalf("%d queues were released to a requester that does not know, want 0, and a request", n)
		}
		cl.exec("UPDATE schedule_server SET heartbeat_time = ? WHERE uuid = 'b'", time.Now().UTC().Format("2006-01-02 15:04:05.000000"))
		time.Sleep(5 * time.Second) // two heartbeats; without a fresh read the next audit would find it
		if n := cl.events(center.EventReleased); n != cl.events(center.EventRequested) {
			cl.Fatalf("%d queues were released, want all that were requested", n)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

func TestBadInput(t *testing.T) {
	dealer := &work{}
	runsAfter := func(upstream string) manager.Settings {
		return manager.Settings{Queues: 1, Mode: center.ModeRun, After: []center.After{{Upstream: upstream}}}
	}
	cases := map[string]struct {
		tasks []manager.Task
		want  string
	}{
		"none": {nil, "no task: a manager needs at least one"},
		"a cycle": {
			[]manager.Task{manager.Serve("x", dealer, runsAfter("y")), manager.Serve("y", dealer, runsAfter("x"))},
			"task x: after makes a cycle: x after y after x",
		},
		"after what has no runs": {
			[]manager.Task{manager.Serve("x", dealer, runsAfter("y")), manager.Serve("y", dealer, fast)},
			"task x: after y: mode is CONTINUOUS, and only task types of mode RUN have runs",
		},
		"twice": {[]manager.Task{manager.Serve("x", dealer, fast), manager.Serve("x", dealer, fast)}, "task x was given twice: a process serves a task type once"},
		"dead":  {[]manager.Task{manager.Serve("x", dealer, manager.Settings{Queues: 1, JudgeDeadInterval: 8 * time.Second})}, "task x: judge_dead_interval (8s) must be at least 5 x heartbeat_interval (2s)"},
		"zero":  {[]manager.Task{manager.Serve("x", dealer, manager.Settings{})}, "task x: queues (0) must be between 1 and 100000"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := manager.New(nil, manager.Config{}, c.tasks...); err == nil || err.Error() != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
		})
	}
}

// A pause, of a task type or of a server, drains and keeps the queues. Work goes on when it ends.
func TestPause(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		pauses := map[string]func(paused bool) error{
			"task": func(paused bool) error { return cl.c.Roster().Operator("test").Pause(cl.Context(), "settle", paused) },
			"server": func(paused bool) error {
				return cl.c.Roster().Operator("test").PauseServer(cl.Context(), cl.uuid(), paused)
			},
		}
		for name, pause := range pauses {
			if err := pause(true); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			before := cl.executed("a")
			time.Sleep(time.Minute)
			if cl.executed("a") != before {
				cl.Fatalf("%s: work goes on", name)
			}
			cl.wantOwners(6)
			if err := pause(false); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			if cl.executed("a") == before {
				cl.Fatalf("%s: work does not go on", name)
			}
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// shared is a dealer whose items are numbers, 0 to 11, dealt by mod(item, total) = index: an item's
// queue depends on the number of queues.
type shared struct {
	cl    *cluster
	name  string
	takes time.Duration
}

func (s *shared) Select(_ context.Context, sel processor.Selection) (items []int, err error) {
	for i := range 12 {
		if i%sel.Total == sel.Queue.Index {
			items = append(items, i)
		}
	}
	return items, nil
}

func (s *shared) Execute(_ context.Context, items []int) error {
	s.cl.enter(s.name, items[0])
	defer s.cl.exit(items[0])
	time.Sleep(s.takes)
	return nil
}

// N1: without the barrier an item would have two valid owners while the number of queues changes: that of the old queue and
// that of the new one. inBubble fails if two workers ever execute an item at once.
func TestRepartition(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := manager.Settings{Queues: 2, ThreadNumber: 12}
		var workers []*worker
		for _, name := range []string{"a", "b"} {
			m, err := manager.New(cl.c, manager.Config{}, manager.Serve("settle", &shared{cl, name, 3 * time.Second}, s))
			if err != nil {
				cl.Fatal(err)
			}
			workers = append(workers, cl.run(m))
			time.Sleep(7 * time.Second)
		}
		for _, total := range []int{3, 5, 2} {
			if err := cl.c.Queues().Repartition(cl.Context(), "settle", total, "test"); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			owners, ownerless := cl.owners()
			if sum := owners[0] + owners[1]; sum != total || ownerless > 0 || owners[0]-owners[1] > 1 {
				cl.Fatalf("%d queues: %v per owner, %d have none", total, owners, ownerless)
			}
			before := cl.executed("a") + cl.executed("b")
			time.Sleep(10 * time.Second)
			if cl.executed("a")+cl.executed("b") == before {
				cl.Fatalf("%d queues: no worker executes anything", total)
			}
		}
		for _, w := range workers {
			if err := cl.leave(w); err != nil {
				cl.Fatal(err)
			}
		}
	})
}

// N2: named queues come and go while everything runs. If the first owner did not drain a queue that is removed and added
// again at once, the queue would have two owners: inBubble fails if two workers ever execute a queue at once.
func TestNamedQueues(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := fast
		s.Queues, s.QueueNames = 0, []string{"north", "south", "west"}
		slow := func() *work { return &work{takes: 3 * time.Second} }
		a := cl.start("a", slow(), s)
		time.Sleep(time.Second)
		b := cl.start("b", slow(), s)
		time.Sleep(10 * time.Second)
		cl.wantOwners(2, 1)
		names := func(verb func(name string) error, list ...string) {
			cl.Helper()
			for _, name := range list {
				if err := verb(name); err != nil {
					cl.Fatal(err)
				}
			}
		}
		add := func(name string) error { return cl.c.Queues().Add(cl.Context(), "settle", name, "", "test") }
		remove := func(name string) error { return cl.c.Queues().Remove(cl.Context(), "settle", name, "test") }

		names(add, "east")
		time.Sleep(6 * time.Second)
		cl.wantOwners(2, 2)

		names(remove, "north", "west")
		time.Sleep(500 * time.Millisecond)
		names(add, "west") // kept after all, or added again
		time.Sleep(10 * time.Second)
		if n := cl.events("REMOVED"); n == 0 {
			cl.Fatal("north is not removed")
		}
		cl.wantOwners(2, 1)

		for range 5 { // at all stages of the removal
			names(remove, "west")
			time.Sleep(1300 * time.Millisecond)
			if err := add("west"); err != nil {
				cl.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		cl.wantOwners(2, 1)
		before := cl.executed("a") + cl.executed("b")
		time.Sleep(10 * time.Second)
		if n := cl.executed("a") + cl.executed("b") - before; n < 9 {
			cl.Fatalf("%d items in 10 s, by 3 queues whose items take 3 s each, want at least 9", n)
		}
		for _, w := range []*worker{a, b} {
			if err := cl.leave(w); err != nil {
				cl.Fatal(err)
			}
		}
	})
}

// N2: a queue is removed, and comes back for another server, while its owner executes an item of it.
func TestRemovalWaitsForTheDrain(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := fast
		s.Queues, s.QueueNames = 0, []string{"north", "south"}
		cl.start("a", &work{takes: 20 * time.Second, stub: true}, s)
		time.Sleep(time.Second)
		cl.start("b", &work{takes: 20 * time.Second, stub: true}, s)
		time.Sleep(30 * time.Second)
		cl.wantOwners(1, 1)
		owner := cl.uuidOf("uuid = (SELECT cur_server FROM schedule_queue WHERE queue_id = 'south')")
		before := cl.executed("a") + cl.executed("b")
		for cl.executed("a")+cl.executed("b") < before+2 { // both have just started an item
			time.Sleep(100 * time.Millisecond)
		}
		for _, verb := range []func() error{
			func() error { return cl.c.Queues().Remove(cl.Context(), "settle", "south", "test") },
			func() error { return cl.c.Servers().Pause(cl.Context(), owner, "test") },
			func() error { return cl.c.Queues().Add(cl.Context(), "settle", "south", "", "test") },
		} {
			if err := verb(); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		time.Sleep(30 * time.Second)
		cl.wantOwners(2)
	})
}

// S7: a process that is started again and again, each time for less than judge_dead_interval, still expires dead servers.
func TestShortSessionsStillRepair(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(time.Second)
		cl.exec(`INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time) VALUES ('dead', 'settle', 'SERVING', rota_now(), rota_now())`)
		cl.exec("UPDATE schedule_queue SET cur_server = 'dead', epoch = epoch + 1 WHERE queue_id = '0'")
		for range 5 {
			time.Sleep(4 * time.Second)
			next := cl.start("a", nil, fast) // the next session begins while the heartbeat of the last one is fresh
			time.Sleep(time.Second)
			if err := cl.leave(a); err != nil {
				cl.Fatal(err)
			}
			a = next
		}
		if n := cl.events("EXPIRED"); n != 1 {
			cl.Fatalf("%d servers were recorded as expired, want 1", n)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// S6: an outage that ends at about the time when the lease does, while the server waits for a statement, must not leave the
// executors asleep.
func TestOutageAboutAsLongAsTheLease(t *testing.T) {
	for ms := 7000; ms <= 8600; ms += 100 {
		inBubble(t, func(cl *cluster) {
			s := fast
			s.Queues = 2
			a := cl.start("a", &work{takes: 10 * time.Millisecond}, s)
			time.Sleep(3 * time.Second)
			// Another server has a queue that is to be a's, so that a polls.
			cl.exec(`INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time) VALUES ('other', 'settle', 'SERVING', '2999-01-01 00:00:00.000000', '2999-01-01 00:00:00.000000')`)
			cl.exec("UPDATE schedule_queue SET cur_server = 'other', req_server = ?, epoch = epoch + 1 WHERE queue_id = '1'", cl.uuidOf("register_time < '2900'"))
			cl.exec("UPDATE schedule_task_running SET plan_version = plan_version + 1")
			time.Sleep(3130 * time.Millisecond)
			block, err := cl.c.DB().BeginTx(cl.Context(), nil)
			if err != nil {
				cl.Fatal(err)
			}
			time.Sleep(time.Duration(ms) * time.Millisecond)
			if err := block.Rollback(); err != nil {
				cl.Fatal(err)
			}
			time.Sleep(20 * time.Second)
			before := cl.executed("a")
			time.Sleep(time.Minute)
			if cl.executed("a") == before {
				cl.Fatalf("after an outage of %d ms nothing is executed any more", ms)
			}
			cl.exec("DELETE FROM schedule_server WHERE uuid = 'other'")
			if err := cl.leave(a); err != nil {
				cl.Fatal(err)
			}
		})
	}
}

// A zero in the row is the default, as it is in code. A task type whose row was deleted goes on.
func TestSpoiledRows(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		if _, err := cl.c.Tasks().Define(cl.Context(), "settle", fast); err != nil {
			cl.Fatal(err)
		}
		cl.exec("UPDATE schedule_task_type SET heartbeat_interval_ms = 0, judge_dead_interval_ms = 0, drain_timeout_ms = 0")
		a := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		cl.wantOwners(6)
		cl.exec("DELETE FROM schedule_task_type")
		uuid := cl.uuid()
		time.Sleep(5 * time.Minute)
		if cl.uuid() != uuid {
			cl.Fatal("joined again")
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}
