package manager_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// S11: a session works nothing before a heartbeat's reply has told it that it may. A worker that joins while the task type
// is paused executes nothing.
func TestWorkerThatJoinsWhilePaused(t *testing.T) {
	for name, s := range map[string]manager.Settings{"continuous": fast, "in runs": inRuns} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(cl *cluster) {
				if _, err := cl.c.Tasks().Define(cl.Context(), "settle", s); err != nil {
					cl.Fatal(err)
				}
				if err := cl.c.Tasks().Pause(cl.Context(), "settle", "test"); err != nil {
					cl.Fatal(err)
				}
				if s.Mode == center.ModeRun {
					cl.submit("")
				}
				a := cl.start("a", &work{takes: time.Millisecond}, s)
				time.Sleep(time.Minute)
				cl.wantOwners(s.Queues)
				if n := cl.executed("a"); n > 0 {
					cl.Fatalf("%d batches were executed while the task type was paused", n)
				}
				if err := cl.c.Tasks().Resume(cl.Context(), "settle", "test"); err != nil {
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

// S11: a worker whose lease has expired while the database was away, and while the task type was paused, executes nothing
// when the database is back.
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
		late := manager.Settings{Queues: 1, Mode: center.ModeRun, After: []center.After{{Upstream: "up"}}} // joins when up is defined
		m, err := manager.New(cl.c, manager.Config{Grace: time.Second},
			manager.Serve("slow", &work{cl: cl, name: "slow", takes: time.Second}, slow),
			manager.Serve("late", &work{cl: cl, name: "late"}, late))
		if err != nil {
			cl.Fatal(err)
		}
		w := cl.run(m)
		time.Sleep(5 * time.Second)
		if _, err := cl.c.Tasks().Define(cl.Context(), "up", manager.Settings{Queues: 1, Mode: center.ModeRun}); err != nil {
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

// stopsWithin waits until nothing of the queue is executed for three heartbeats, and fails if that takes more heartbeats than
// allowed. Heartbeats are counted, because a slow machine slows them, too.
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

// S10: a stray session holds the lock row while a plan and an audit are due, and everything that needs the lock row waits for
// it, for many heartbeats. The pause of the task type and the loss of a queue take effect all the same.
func TestLockRowIsStuck(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		dealer := &counting{}
		p := startProcess(t, url, func(*center.Center) processor.TaskDealer[int] { return dealer }, quick)
		until(t, "the worker works", func() bool { return dealer.executed[0].Load() > 0 && dealer.executed[1].Load() > 0 })
		var stray *sql.Tx
		exec := func(query string) {
			t.Helper()
			if _, err := stray.ExecContext(t.Context(), query); err != nil {
				t.Fatal(err)
			}
		}
		hold := func() {
			t.Helper()
			var err error
			if stray, err = p.c.DB().BeginTx(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			exec("UPDATE schedule_task_running SET audited_at = NULL")
		}
		hold()
		if err := stray.Commit(); err != nil {
			t.Fatal(err)
		}
		hold()
		for queue := range 2 {
			begin := p.count(t, "SELECT SUM(beat_count) FROM schedule_server")
			until(t, "the worker waits for the lock row", func() bool { return p.count(t, "SELECT SUM(beat_count) FROM schedule_server") > begin+5 })
			if _, err := p.c.DB().ExecContext(t.Context(), fmt.Sprintf("UPDATE schedule_queue SET cur_server = 'nobody', epoch = epoch + 1 WHERE queue_index = %d", queue)); err != nil {
				t.Fatal(err)
			}
			dealer.stopsWithin(t, p, queue, 10)
		}
		exec("UPDATE schedule_queue SET cur_server = (SELECT uuid FROM schedule_server), epoch = epoch + 1")
		exec("UPDATE schedule_task_running SET paused = TRUE")
		if err := stray.Commit(); err != nil {
			t.Fatal(err)
		}
		hold()
		dealer.stopsWithin(t, p, 0, 10)
		if err := stray.Rollback(); err != nil {
			t.Fatal(err)
		}
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
	})
}
