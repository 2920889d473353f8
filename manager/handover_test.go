package manager_test

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

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

// S8: a server that waits for a queue looks for it every 100 ms, and not only with its heartbeats.
func TestHandOverIsNoticedAtOnce(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		cl.start("b", nil, fast)
		time.Sleep(10 * time.Second)
		if gap := cl.firstBegan("b").Sub(cl.firstRelease()); gap > 150*time.Millisecond {
			cl.Fatalf("the new owner started %s after the release, want at most 150 ms", gap)
		}
	})
}

// firstRelease returns when a queue was released for the first time.
func (cl *cluster) firstRelease() time.Time {
	cl.Helper()
	var released string
	query := "SELECT MIN(event_time) FROM schedule_event WHERE kind = 'RELEASED'"
	if err := cl.c.DB().QueryRowContext(cl.Context(), query).Scan(&released); err != nil {
		cl.Fatal(err)
	}
	at, err := time.Parse("2006-01-02 15:04:05.000000", released)
	if err != nil {
		cl.Fatal(err)
	}
	return at
}

// S8: a server that waits for a queue polls also while it hands over queues of its own, one after the other.
func TestServerThatHandsOverStillPolls(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		many := fast
		many.Queues, many.ThreadNumber = 60, 60
		a := cl.start("a", &work{takes: time.Second, more: 100 * time.Millisecond}, many)
		time.Sleep(5 * time.Second)
		cl.exec(`INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time, read_plan_version) VALUES ('other', 'settle', 'SERVING', '2999-01-01 00:00:00.000000', '2999-01-01 00:00:00.000000', 1000)`)
		cl.exec("UPDATE schedule_queue SET cur_server = 'other', req_server = ?, epoch = epoch + 1 WHERE queue_index = 0", cl.uuidOf("register_time < '2900'"))
		cl.exec("UPDATE schedule_queue SET req_server = 'other', req_since = rota_now() WHERE queue_index > 0")
		cl.noteChanges()
		for cl.events("RELEASED") == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		cl.exec("UPDATE schedule_queue SET cur_server = req_server, req_server = NULL, epoch = epoch + 1 WHERE queue_index = 0")
		cl.noteChanges()
		time.Sleep(250 * time.Millisecond)
		if log := cl.logged.String(); !regexp.MustCompile(`msg="queue granted" .* queue=0 epoch=4\n`).MatchString(log) {
			cl.Errorf("the queue is not granted 250 ms after it has arrived:\n%s", log)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// H1: a slow batch delays the hand-over of its queue, and the two workers never execute one queue at once. inBubble
// fails if they do.
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

// H4: an owner works on until its requester knows. The requester tells that with a heartbeat that changes nothing else.
// The owner reads its queues again with its own next heartbeat, and hands the queue over.
func TestOwnerNoticesThatTheRequesterKnows(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		_, err := cl.c.Roster().Register(cl.Context(), roster.ServerInfo{UUID: "b", TaskType: "settle", JudgeDeadInterval: time.Hour, HeartbeatToken: "x"})
		if err != nil {
			cl.Fatal(err)
		}
		cl.exec("UPDATE schedule_server SET heartbeat_time = ? WHERE uuid = 'b'", "2099-01-01 00:00:00.000000")
		time.Sleep(5 * time.Second) // it is named, and has not read that, whatever it has sent
		if n := cl.events(ops.EventReleased); n != 0 || cl.events(ops.EventRequested) == 0 {
			cl.Fatalf("%d queues were released to a requester that does not know, want 0, and a request", n)
		}
		cl.exec("UPDATE schedule_server SET read_plan_version = (SELECT MAX(plan_version) FROM schedule_queue) WHERE uuid = 'b'")
		time.Sleep(5 * time.Second) // two heartbeats; without a fresh read the next audit would find it
		if n := cl.events(ops.EventReleased); n != cl.events(ops.EventRequested) {
			cl.Fatalf("%d queues were released, want all that were requested", n)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// H4: a server reports a new request at once, also if it has found it with a poll for another queue, in the middle
// between two heartbeats. Its owner waits for that.
func TestRequestFoundByPollIsReported(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		uuid := cl.uuidOf("register_time < '2900'")
		cl.exec(`INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time) VALUES ('other', 'settle', 'SERVING', '2999-01-01 00:00:00.000000', '2999-01-01 00:00:00.000000')`)
		cl.exec("UPDATE schedule_queue SET cur_server = 'other', epoch = epoch + 1 WHERE queue_index < 2")
		request := func(queue int) {
			cl.noteChanges()
			cl.exec("UPDATE schedule_queue SET req_server = ?, req_since = rota_now(), plan_version = (SELECT plan_version FROM schedule_task_running) WHERE queue_index = ?", uuid, queue)
		}
		request(0)
		time.Sleep(5 * time.Second) // it waits for the first queue, and polls
		beats := func() (n int64) {
			if err := cl.c.DB().QueryRowContext(cl.Context(), "SELECT beat_count FROM schedule_server WHERE uuid = ?", uuid).Scan(&n); err != nil {
				cl.Fatal(err)
			}
			return n
		}
		for n := beats(); beats() == n; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond) // the reply has come
		request(1)
		time.Sleep(fast.WithDefaults().HeartbeatInterval / 2)
		var knows bool
		err := cl.c.DB().QueryRowContext(cl.Context(), `SELECT s.read_plan_version >= q.plan_version
			FROM schedule_server s, schedule_queue q WHERE s.uuid = ? AND q.queue_index = 1`, uuid).Scan(&knows)
		if err != nil || !knows {
			cl.Errorf("the server has not reported the request within half a heartbeat: %v", err)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// H4: a server that leaves works on until the requesters know of their requests, although nothing is in flight when it
// begins to leave. b sends a heartbeat 1.5 s later.
func TestLeavingServerWaitsForRequesters(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		rare := fast
		rare.SleepTimeInterval = time.Second
		a := cl.start("a", &work{takes: time.Millisecond}, rare)
		time.Sleep(5 * time.Second)
		cl.start("b", nil, fast)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		cl.wantOwners(3, 3)
		leaving := time.Now()
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		cl.wantOwners(6)
		if took := time.Since(leaving); took < time.Second {
			cl.Errorf("the server left after %s, before the requester knew of its requests", took)
		}
	})
}

// A worker that waits for a queue logs the owner and since when it waits.
func TestWaitIsLogged(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		slow := fast
		slow.ThreadNumber = slow.Queues
		cl.start("a", &work{takes: 25 * time.Second}, slow)
		time.Sleep(5 * time.Second)
		cl.start("b", nil, slow)
		time.Sleep(30 * time.Second)
		var ages []int
		for _, line := range regexp.MustCompile(`waiting: queue 1 and 2 more are held by .*; requested (\d+)s ago`).FindAllStringSubmatch(cl.logged.String(), -1) {
			age, err := strconv.Atoi(line[1])
			if err != nil {
				cl.Fatal(err)
			}
			ages = append(ages, age)
		}
		if len(ages) != 2 || ages[0] < 4 || ages[1] != ages[0]+10 {
			cl.Fatalf("the owner that b waits for was logged %v s after the request, want twice, from 4 s on, with 10 s between:\n%s", ages, cl.logged)
		}
	})
}

// H4 H5: a drain that takes too long is cancelled. A worker whose dealer returns then leaves in order.
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
