package manager_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// fencedWork has an item for each queue, always, and executes it in a fenced transaction.
type fencedWork struct {
	c        *center.Center
	executed *atomic.Int64
}

func (f fencedWork) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return []int{s.Queue.Index}, nil
}

func (f fencedWork) Execute(ctx context.Context, _ []int) error {
	err := center.InTx(ctx, f.c.DB(), func(*sql.Tx) error { return nil })
	if err == nil {
		f.executed.Add(1)
	}
	return err
}

func fenced(executed *atomic.Int64) func(*center.Center) processor.TaskDealer[int] {
	return func(c *center.Center) processor.TaskDealer[int] { return fencedWork{c, executed} }
}

// S12: with round trips of 100 to 600 ms a worker joins, works, survives the loss of its connections, takes a queue
// over from another worker and hands it back.
func TestWorkOverASlowLink(t *testing.T) {
	t.Parallel()
	settings := manager.Settings{Queues: 4, HeartbeatInterval: time.Second, JudgeDeadInterval: 10 * time.Second}
	delays := []time.Duration{100 * time.Millisecond}
	if os.Getenv("ROTA_FAULTS") != "" { // these take minutes, nearly all of it waiting
		delays = []time.Duration{50 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond}
	}
	for _, delay := range delays {
		t.Run(fmt.Sprintf("%s each way", delay), func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, url string) {
				var near, far atomic.Int64
				a := startProcess(t, url, fenced(&near), settings)
				until(t, "the near worker works", func() bool { return near.Load() > 0 })
				slow, proxy := testdb.Through(t, url)
				proxy.Delay(delay)
				begin := time.Now()
				b := startProcess(t, slow, fenced(&far), settings)
				until(t, "the far worker works", func() bool { return far.Load() > 10 })
				t.Logf("from the start to ten transactions: %s", time.Since(begin).Round(100*time.Millisecond))
				proxy.Reset()
				before := far.Load()
				begin = time.Now()
				until(t, "the far worker works on new connections", func() bool { return far.Load() > before+10 })
				t.Logf("after the loss of all connections: %s", time.Since(begin).Round(100*time.Millisecond))
				a.stop()
				if err := <-a.ended; err != nil {
					t.Fatal(err)
				}
				until(t, "the far worker owns all queues", func() bool {
					return a.count(t, "SELECT COUNT(*) FROM schedule_queue WHERE cur_server = (SELECT MIN(uuid) FROM schedule_server)") == settings.Queues
				})
				if n := a.count(t, "SELECT COUNT(*) FROM schedule_event WHERE kind = 'EXPIRED'"); n > 0 {
					t.Errorf("%d servers were expired, want none", n)
				}
				b.stop()
				if err := <-b.ended; err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// S12: the heartbeats of a worker arrive, and their replies do not. The other worker cannot see that. The worker gives
// its queues away, says so in an alert, and joins again later.
func TestWorkerWhoseRepliesComeLate(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		var near, far atomic.Int64
		a := startProcess(t, url, fenced(&near), quick)
		uuid := a.text(t, "SELECT uuid FROM schedule_server")
		through, proxy := testdb.Through(t, url)
		b := startProcess(t, through, fenced(&far), quick)
		until(t, "both work", func() bool { return near.Load() > 0 && far.Load() > 0 })
		var over atomic.Bool
		atReply := testdb.Breakpoint{Text: "WHERE d.uuid = ", Moment: testdb.BeforeStatement} // the heartbeat's SELECT, after its UPDATE
		atReply.Reached = func() (pass bool) {
			if over.Load() {
				return true
			}
			proxy.Break(atReply)
			return false
		}
		proxy.Break(atReply)
		proxy.Reset() // on a new connection the statement is not prepared, and the proxy knows it
		until(t, "an alert", func() bool {
			return a.count(t, "SELECT COUNT(*) FROM schedule_event WHERE kind = 'ALERT' AND reason LIKE 'LATE_REPLIES: %'") > 0
		})
		until(t, "the far worker sees the condition", func() bool {
			return slices.ContainsFunc(b.m.Conditions(), func(c condition.Condition) bool { return c.Kind == condition.LateReplies.Name })
		})
		until(t, "the near worker owns all queues", func() bool {
			return a.count(t, "SELECT COUNT(*) FROM schedule_queue WHERE cur_server = '"+uuid+"'") == quick.Queues
		})
		if n := a.count(t, "SELECT COUNT(*) FROM schedule_event WHERE kind = 'EXPIRED'"); n > 0 {
			t.Errorf("%d servers were expired, want none: the far worker leaves", n)
		}
		over.Store(true)
		before := far.Load()
		until(t, "the far worker works again", func() bool { return far.Load() > before })
		for _, p := range []*process{a, b} {
			p.stop()
			if err := <-p.ended; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// single has one item per queue. Without the fence, nothing keeps Execute from doing it twice.
type single struct{ c *center.Center }

func (d single) Select(ctx context.Context, s processor.Selection) ([]int, error) {
	return center.Column[int](ctx, d.c.DB(), `SELECT queue_index FROM schedule_queue WHERE queue_id = '`+s.Queue.ID+`'
		AND queue_index NOT IN (SELECT id FROM effect)`)
}

func (d single) Execute(ctx context.Context, items []int) error {
	return center.InTx(ctx, d.c.DB(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO effect (id) VALUES (%d)`, items[0]))
		return err
	})
}

// F5: a queue whose COMMIT is under way waits for it, an alert tells so, and the other queues go on.
func TestQueueWaitsForACommitUnderWay(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.DB().ExecContext(t.Context(), `CREATE TABLE effect (id INT NOT NULL)`); err != nil {
			t.Fatal(err)
		}
		through, proxy := testdb.Through(t, url)
		arrives := make(chan struct{})
		proxy.Break(testdb.Breakpoint{Text: "INSERT INTO effect", Moment: testdb.CommitUnderWay, Reached: func() bool {
			<-arrives
			return true
		}})
		w := startProcess(t, through, func(c *center.Center) processor.TaskDealer[int] { return single{c} }, quick)
		until(t, "an alert", func() bool {
			return w.count(t, "SELECT COUNT(*) FROM schedule_event WHERE kind = 'ALERT' AND reason LIKE 'FENCE_WAIT: %'") > 0
		})
		until(t, "the other queues are done", func() bool {
			return w.count(t, "SELECT COUNT(*) FROM effect") == quick.Queues-1
		})
		close(arrives)
		until(t, "the queue is done", func() bool {
			return w.count(t, "SELECT COUNT(DISTINCT id) FROM effect") == quick.Queues
		})
		w.stop()
		if err := <-w.ended; err != nil {
			t.Fatal(err)
		}
		if n := w.count(t, "SELECT COUNT(*) FROM effect"); n != quick.Queues {
			t.Errorf("%d effects of %d items", n, quick.Queues)
		}
	})
}
