package manager_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// quick has intervals that make a test on a real server short.
var quick = manager.Settings{
	Queues: 2, ThreadNumber: 5, HeartbeatInterval: 200 * time.Millisecond, JudgeDeadInterval: 2 * time.Second, DrainTimeout: time.Second,
}

// process is a worker process on a real server, in a goroutine.
type process struct {
	m     *manager.Manager
	c     *center.Center
	stop  context.CancelFunc
	ended chan error
}

func startProcess[T any](t *testing.T, url string, dealer func(*center.Center) processor.TaskDealer[T], s manager.Settings) *process {
	t.Helper()
	return startOpened(t, url, center.Options{}, dealer, s)
}

// startOpened does what startProcess does, with a Center that has the options.
func startOpened[T any](t *testing.T, url string, o center.Options, dealer func(*center.Center) processor.TaskDealer[T], s manager.Settings) *process {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(c, manager.Config{Grace: time.Second, Logger: o.Logger}, manager.Serve("settle", dealer(c), s))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{m, c, cancel, make(chan error, 1)}
	go func() {
		p.ended <- m.Run(ctx)
		close(p.ended)
	}()
	t.Cleanup(func() { c.Close() })
	t.Cleanup(cancel)
	return p
}

func (p *process) text(t *testing.T, query string) (s string) {
	t.Helper()
	until(t, "there is a row", func() bool { return p.c.DB().QueryRowContext(t.Context(), query).Scan(&s) == nil })
	return s
}

func nothing(*center.Center) processor.TaskDealer[int] { return idle{} }

// until polls for a condition that must come true. How soon depends on the machine.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for a minute until %s", what)
		}
	}
}

func (p *process) count(t *testing.T, query string) (n int) {
	t.Helper()
	if err := p.c.DB().QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// onServers runs f on PostgreSQL and MariaDB. SQLite has one lock for everything.
func onServers(t *testing.T, f func(t *testing.T, url string)) {
	t.Helper()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f(t, testdb.URL(t, kind))
		})
	}
}

// endless always has work, and is always in a fenced transaction: the rows of its queues are never free.
type endless struct {
	c       *center.Center
	batches *atomic.Int64
	both    *sync.WaitGroup // not nil: a select returns when the selects of all queues run, so that no queue is idle
}

func (e endless) Select(context.Context, processor.Selection) ([]int, error) {
	if e.both != nil {
		e.both.Done()
		e.both.Wait()
	}
	return make([]int, 1_000_000), nil // no page ever ends, and so there is no gap between two
}

func (e endless) Execute(ctx context.Context, _ []int) error {
	return center.InTx(ctx, e.c.DB(), func(*sql.Tx) error {
		n := e.batches.Add(1)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(40+n*7919%60) * time.Millisecond):
			return nil
		}
	})
}

// L5: the request for a queue cannot be written while its owner holds the row, and with one fenced transaction after the
// other it would never be written. So the owner, which plans too, drains the queue.
func TestQueuesMoveFromAnOwnerThatIsAlwaysBusy(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		var batches [2]atomic.Int64
		var both sync.WaitGroup
		both.Add(quick.Queues)
		busy := func(i int, both *sync.WaitGroup) func(*center.Center) processor.TaskDealer[int] {
			return func(c *center.Center) processor.TaskDealer[int] { return endless{c, &batches[i], both} }
		}
		crowded := quick
		crowded.ThreadNumber = 20 // ten transactions on each row: one is always open
		a := startProcess(t, url, busy(0, &both), crowded)
		until(t, "the first worker works", func() bool { return batches[0].Load() > 100 })
		b := startProcess(t, url, busy(1, nil), crowded)
		until(t, "the second worker works", func() bool { return batches[1].Load() > 10 })
		a.stop()
		b.stop()
		if err := errors.Join(<-a.ended, <-b.ended); err != nil {
			t.Fatal(err)
		}
	})
}

// hold locks the lock row, as a stray session would, until the function that it returns is called.
func hold(t *testing.T, url string) func() {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ops.New(c).Tasks().Define(t.Context(), "settle", quick); err != nil {
		t.Fatal(err)
	}
	tx, err := c.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE schedule_task_running SET version = version + 1"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), c.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A worker that starts waits for a busy database.
func TestJoinWaitsForABusyDatabase(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		release := hold(t, url)
		p := startProcess(t, url, nothing, quick)
		select {
		case err := <-p.ended:
			t.Errorf("gave up: %v", err)
		case <-time.After(3 * time.Second): // enough for some attempts
		}
		release()
		until(t, "it has joined", func() bool {
			return p.count(t, "SELECT COUNT(*) FROM schedule_queue WHERE cur_server IS NOT NULL") == 2
		})
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
	})
}

// H4: a worker that is to leave while the lock row is held tries until its lease expires, and says that it has not left.
func TestLeaveEndsThoughTheLockRowIsHeld(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		p := startProcess(t, url, nothing, quick)
		until(t, "it has joined", func() bool {
			return p.count(t, "SELECT COUNT(*) FROM schedule_queue WHERE cur_server IS NOT NULL") == 2
		})
		release := hold(t, url)
		defer release()
		p.stop()
		select {
		case err := <-p.ended:
			if _, ok := errors.AsType[*manager.NotLeftError](err); !ok {
				t.Fatalf("the worker ends with %v, want a NotLeftError", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("still there after a minute")
		}
	})
}

// S7: a server that wants to expire another one finds the lock row busy each time, because each holder passes it on to a
// transaction that waits. In the end the server waits too.
func TestDeadServerIsExpiredThoughTheLockRowIsNeverFree(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, url string) {
		p := startProcess(t, url, nothing, quick)
		ownsAll := func() bool {
			return p.count(t, "SELECT COUNT(*) FROM schedule_queue WHERE cur_server <> 'short:1:00000000'") == 2
		}
		until(t, "it owns all queues", ownsAll)
		if _, err := p.c.Roster().Register(t.Context(), roster.ServerInfo{UUID: "short:1:00000000", TaskType: "settle", Host: "short", JudgeDeadInterval: quick.JudgeDeadInterval}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.c.DB().ExecContext(t.Context(), "UPDATE schedule_queue SET cur_server = 'short:1:00000000', epoch = epoch + 1 WHERE queue_index = 1"); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); !ownsAll(); {
			free := hold(t, url)
			for testdb.Waiting(t, url, p.c.DB()) == 0 && !ownsAll() {
				if time.Now().After(deadline) {
					t.Fatal("no server has taken over from the dead one for a minute")
				}
				time.Sleep(150 * time.Millisecond)
			}
			free()
		}
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
	})
}
