package manager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/racetest"
)

// S7: a dead server is expired and its queues are taken over, by a server that has watched for judge_dead_interval.
func TestTakeOver(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(time.Second)
		cl.exec(`INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time) VALUES ('dead', 'settle', 'SERVING', rota_now(), rota_now())`)
		cl.exec("UPDATE schedule_queue SET cur_server = 'dead', epoch = epoch + 1")
		cl.noteEdits()
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

// S7: a process that is started again and again, each time for less than judge_dead_interval, still expires dead
// servers.
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

// A batch that is cancelled learns whether its queue is lost. A server whose lease has expired may still be the owner.
func TestCancelledBatchLearnsOfTheLoss(t *testing.T) {
	cases := map[string]struct {
		happens func(cl *cluster)
		want    error
	}{
		"the queues have another owner": {func(cl *cluster) {
			cl.exec("UPDATE schedule_queue SET cur_server = 'other', epoch = epoch + 1")
			cl.noteEdits()
		}, center.ErrFenced},
		"the row of the server is gone": {func(cl *cluster) { cl.exec("DELETE FROM schedule_server") }, center.ErrFenced},
		"the lease expires": {func(cl *cluster) {
			block, err := cl.c.DB().BeginTx(cl.Context(), nil) // the only connection: no statement gets an answer
			if err != nil {
				cl.Fatal(err)
			}
			cl.Cleanup(func() { _ = block.Rollback() })
			time.AfterFunc(20*time.Second, func() { _ = block.Rollback() })
		}, context.Canceled},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(cl *cluster) {
				causes := make(chan error, 100)
				cl.start("a", &work{takes: time.Minute, ended: func(cause error) { causes <- cause }}, fast)
				time.Sleep(5 * time.Second)
				c.happens(cl)
				time.Sleep(15 * time.Second)
				if len(causes) == 0 {
					cl.Fatal("no batch was cancelled")
				}
				for len(causes) > 0 {
					if cause := <-causes; !errors.Is(cause, c.want) {
						cl.Errorf("a batch was cancelled because of %q, want %q", cause, c.want)
					}
				}
			})
		})
	}
}

// A server without heartbeats stops before other servers may take its queues, and resumes under the same epochs when
// the database is back (S5, S6).
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
		if err := a.Ready(); !errors.Is(err, center.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			cl.Fatalf("no heartbeat has succeeded for 9 s: %v, want that the database is unreachable, and the cause", err)
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

// S6: an outage that ends at about the time when the lease does, while the server waits for a statement, must not leave
// the executors asleep.
func TestOutageAboutAsLongAsTheLease(t *testing.T) {
	racetest.Defer(t)
	for ms := 7000; ms <= 8600; ms += 100 {
		t.Run(fmt.Sprint(ms, " ms"), func(t *testing.T) {
			inBubble(t, func(cl *cluster) {
				s := fast
				s.Queues = 2
				a := cl.start("a", &work{takes: 10 * time.Millisecond}, s)
				time.Sleep(3 * time.Second)
				// Another server owns a queue that a requests, so that a polls.
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
					cl.Fatal("after the outage nothing is executed any more")
				}
				cl.exec("DELETE FROM schedule_server WHERE uuid = 'other'")
				if err := cl.leave(a); err != nil {
					cl.Fatal(err)
				}
			})
		})
	}
}
