package manager_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// S11: a session executes nothing before a heartbeat's reply allows it. A worker that joins while the task type is
// paused executes nothing, although its first heartbeats fail.
func TestWorkerThatJoinsWhilePaused(t *testing.T) {
	for name, s := range map[string]manager.Settings{"continuous": fast, "in runs": inRuns} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(cl *cluster) {
				if _, err := ops.New(cl.c).Tasks().Define(cl.Context(), "settle", s); err != nil {
					cl.Fatal(err)
				}
				if err := cl.c.Roster().Operator("test").Pause(cl.Context(), "settle", true); err != nil {
					cl.Fatal(err)
				}
				if s.Mode == center.ModeRun {
					cl.submit("")
				}
				cl.exec("CREATE TRIGGER no_heartbeat BEFORE UPDATE OF beat_count ON schedule_server BEGIN SELECT RAISE(ABORT, 'no heartbeat'); END")
				a := cl.start("a", &work{takes: time.Millisecond}, s)
				time.Sleep(5 * time.Second)
				cl.exec("DROP TRIGGER no_heartbeat")
				time.Sleep(time.Minute)
				cl.wantOwners(s.Queues)
				if n := cl.executed("a"); n > 0 {
					cl.Fatalf("%d batches were executed while the task type was paused", n)
				}
				if err := cl.c.Roster().Operator("test").Pause(cl.Context(), "settle", false); err != nil {
					cl.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				if cl.executed("a") == 0 {
					cl.Fatal("nothing is executed after the end of the pause")
				}
				if err := cl.leave(a); err != nil {
					cl.Fatal(err)
				}
			})
		})
	}
}

// S11: a worker whose lease has expired while the database was away, and while the task type was paused, executes
// nothing when the database is back.
func TestPausedWhileTheDatabaseIsAway(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", &work{takes: time.Millisecond}, fast)
		time.Sleep(5 * time.Second)
		block, err := cl.c.DB().BeginTx(cl.Context(), nil) // the only connection: no statement gets an answer
		if err != nil {
			cl.Fatal(err)
		}
		if _, err := block.ExecContext(cl.Context(), "UPDATE schedule_task_running SET paused = 1"); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		before := cl.executed("a")
		if err := block.Commit(); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if err := a.Ready(); err != nil {
			cl.Fatal(err)
		}
		if n := cl.executed("a") - before; n > 0 {
			cl.Fatalf("%d batches were executed while the task type was paused", n)
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
	})
}

// S1: a server that joins a process whose other server has a long heartbeat interval does not wait for that interval.
func TestServerThatJoinsAProcessWithALongInterval(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		slow := manager.Settings{Queues: 1, HeartbeatInterval: 30 * time.Second, JudgeDeadInterval: 150 * time.Second}
		late := manager.Settings{Queues: 1, Mode: center.ModeRun, After: []runs.After{{Upstream: "up"}}} // joins when up is defined
		m, err := manager.New(cl.c, manager.Config{Grace: time.Second},
			manager.Serve("slow", &work{cl: cl, name: "slow", takes: time.Second}, slow),
			manager.Serve("late", &work{cl: cl, name: "late"}, late))
		if err != nil {
			cl.Fatal(err)
		}
		w := cl.run(m)
		time.Sleep(5 * time.Second)
		if _, err := ops.New(cl.c).Tasks().Define(cl.Context(), "up", manager.Settings{Queues: 1, Mode: center.ModeRun}); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		for range 60 {
			time.Sleep(time.Second)
			if err := m.Ready(); err != nil {
				cl.Fatal(err)
			}
		}
		if err := cl.leave(w); err != nil {
			cl.Fatal(err)
		}
	})
}

// counting has an item for each of two queues, always.
type counting struct{ executed [2]atomic.Int64 }

func (c *counting) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return []int{s.Queue.Index}, nil
}

func (c *counting) Execute(_ context.Context, items []int) error {
	c.executed[items[0]].Add(1)
	time.Sleep(time.Millisecond)
	return nil
}

// stopsWithin waits until nothing of the queue is executed for three heartbeats, and fails if that takes more
// heartbeats than allowed. Heartbeats are counted, because a slow machine slows them, too.
func (c *counting) stopsWithin(t *testing.T, p *process, queue, heartbeats int) {
	t.Helper()
	beats := func() int { return p.count(t, "SELECT SUM(beat_count) FROM schedule_server") }
	begin, last, lastAt := beats(), int64(-1), 0
	until(t, "nothing is executed for three heartbeats", func() bool {
		now := beats()
		if n := c.executed[queue].Load(); n != last {
			last, lastAt = n, now
		}
		return now >= lastAt+3
	})
	if took := lastAt - begin; took > heartbeats {
		t.Errorf("queue %d was worked for %d heartbeats more, want at most %d", queue, took, heartbeats)
	}
}

// S10: a stray session holds the lock row while a release and an audit are due, which wait for it, for many heartbeats.
// The loss of a queue and the pause of the task type take effect all the same.
func TestLockRowIsStuck(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		dealer := &counting{}
		p := startProcess(t, url, func(*center.Center) processor.TaskDealer[int] { return dealer }, quick)
		until(t, "the worker works", func() bool { return dealer.executed[0].Load() > 0 && dealer.executed[1].Load() > 0 })
		exec := func(db interface {
			ExecContext(context.Context, string, ...any) (sql.Result, error)
		}, query string,
		) {
			t.Helper()
			if _, err := db.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		stray, err := p.c.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		exec(stray, "UPDATE schedule_task_running SET audited_at = NULL")
		exec(p.c.DB(), `INSERT INTO schedule_server (uuid, task_type, own_sign, state, register_time, heartbeat_time, judge_dead_interval_ms)
			VALUES ('other', 'settle', 'BASE', 'SERVING', '2026-01-01 00:00:00', '2026-01-01 00:00:00', 300000000000)`)
		exec(p.c.DB(), "UPDATE schedule_queue SET req_server = 'other', req_since = '2019-01-01 00:00:00' WHERE queue_index = 1")
		dealer.stopsWithin(t, p, 1, 10) // it is drained, and its release waits for the lock row
		exec(p.c.DB(), "UPDATE schedule_queue SET cur_server = 'nobody', epoch = epoch + 1 WHERE queue_index = 0")
		dealer.stopsWithin(t, p, 0, 10)
		exec(p.c.DB(), "UPDATE schedule_queue SET cur_server = (SELECT uuid FROM schedule_server WHERE uuid <> 'other'), epoch = epoch + 1 WHERE queue_index = 0")
		executed := dealer.executed[0].Load()
		until(t, "the queue is worked again", func() bool { return dealer.executed[0].Load() > executed })
		exec(stray, "UPDATE schedule_task_running SET paused = TRUE")
		if err := stray.Commit(); err != nil {
			t.Fatal(err)
		}
		dealer.stopsWithin(t, p, 0, 10)
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
	})
}
