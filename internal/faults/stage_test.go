//go:build linux

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/schema"
)

// stage is where a scenario plays: a database with work, workers, and a record of what was done to them. Its
// methods are for the scenario's goroutine; they end the test when something fails.
type stage struct {
	*rand.Rand
	t        *testing.T
	settings manager.Settings
	dir      string // for files
	url      string
	entry    string         // the URL that the workers are told
	server   *testdb.Server // the scenario's own, to be stopped; nil without
	view     *testdb.Proxy  // between the scenario and its own server, where the workers have proxies, too
	pooler   *testdb.Server // between the workers and the database; nil without
	pool     int            // see scenario
	power    power
	review   func(*stage, *History)
	judged   func(History, []Violation)
	oldest   time.Duration  // the age that a survivor's heartbeat has reached
	promoted time.Time      // when a standby took the place of the server
	proxied  bool           // each worker has a proxy of its own
	c        *center.Center // the scenario's view, past all proxies
	workers  []*worker
	windows  []Window
	feeding  sync.WaitGroup
	starve   context.CancelFunc  // ends the supply of items
	backlog  int                 // undone items that the supply keeps up in each queue
	rerun    map[string]bool     // runs
	swept    int64               // the watermark of the last run that has succeeded, in milliseconds
	there    map[int64]time.Time // by item: an instant at which it was there for all to see; the supply's own until it ends
}

const (
	queues  = 6
	backlog = 7 // of a stage, unless there are runs
	workers = 3
)

// patience is for what must come, however slow the machine is.
const patience = 90 * time.Second

// defaults are as short as a busy machine allows. SQLite gets more time: its writers wait for each other, and
// not in turn.
func defaults(kind string) manager.Settings {
	heartbeat := 400 * time.Millisecond
	if kind == testdb.SQLite {
		heartbeat = 600 * time.Millisecond
	}
	return manager.Settings{
		Queues: queues, HeartbeatInterval: heartbeat, JudgeDeadInterval: 5 * heartbeat,
		ThreadNumber: 2, FetchNumber: 20, ExecuteNumber: 2,
		SleepTimeNoData: 100 * time.Millisecond, ItemRetry: 50 * time.Millisecond, ItemRetryMax: 400 * time.Millisecond,
		DrainTimeout: 20 * time.Second,
	}
}

// margin is what package manager takes off judge_dead_interval for the lease.
func margin(s manager.Settings) time.Duration {
	return max(s.HeartbeatInterval, s.JudgeDeadInterval*15/100)
}

func (s *stage) trust() time.Duration { return s.settings.JudgeDeadInterval - margin(s.settings) }

// dead returns so many judge_dead_intervals.
func (s *stage) dead(n float64) time.Duration {
	return time.Duration(n * float64(s.settings.JudgeDeadInterval))
}

// open makes the tables and starts to supply items.
func (s *stage) open() {
	ctx := context.WithoutCancel(s.t.Context()) // the supply ends in the cleanup
	c, err := center.Open(ctx, anydb.URL(s.url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		s.t.Fatal(err)
	}
	s.c = c
	s.t.Cleanup(func() { s.c.Close() })
	for _, statement := range tables(c.Dialect()) {
		if _, err := c.DB().ExecContext(ctx, statement); err != nil {
			s.t.Fatal(err)
		}
	}
	s.there, s.rerun = map[int64]time.Time{}, map[string]bool{}
	supply, cancel := context.WithCancel(ctx)
	s.starve = cancel
	s.feeding.Go(func() { s.feed(supply) })
	s.t.Cleanup(s.hunger)
}

// hunger ends the supply of items.
func (s *stage) hunger() {
	s.starve()
	s.feeding.Wait()
}

// feed keeps a few undone items in each queue: one that is stuck must not starve the others. It has no
// opinion on errors: databases go away here, and come back without what was last in them. No item has the
// number of one that was lost.
func (s *stage) feed(ctx context.Context) {
	var highest [queues]int
	for queue := range highest {
		highest[queue] = queue - queues
	}
	for ctx.Err() == nil {
		var ids []int
		for queue := range queues {
			var last, undone int
			err := s.c.DB().QueryRowContext(ctx, bind(s.c, `SELECT COALESCE(MAX(id), ?), COALESCE(SUM(1 - done), 0) FROM items WHERE id % ? = ?`),
				queue-queues, queues, queue).Scan(&last, &undone)
			highest[queue] = max(highest[queue], last)
			for ; err == nil && undone < s.backlog; undone++ {
				highest[queue] += queues
				ids = append(ids, highest[queue])
			}
		}
		if len(ids) > 0 {
			s.insert(ctx, ids)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// insert writes in a transaction, which lib/pq begins with READ WRITE whatever the server's default is.
func (s *stage) insert(ctx context.Context, ids []int) {
	rows, made := make([]string, len(ids)), time.Now().UnixMilli()
	for i, id := range ids {
		rows[i] = fmt.Sprintf("(%d, %d)", id, made)
	}
	tx, err := s.c.DB().BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer tx.Rollback() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, `INSERT INTO items (id, made) VALUES `+strings.Join(rows, ", ")); err != nil || tx.Commit() != nil {
		return // what is not there is inserted the next time
	}
	for _, id := range ids {
		s.there[int64(id)] = time.Now()
	}
}

// start starts workers and waits until they share the queues.
func (s *stage) start(n int) {
	s.t.Helper()
	for range n {
		s.recruit()
	}
	s.settle()
}

// recruit starts a worker and waits for nothing.
func (s *stage) recruit() {
	s.t.Helper()
	url, proxy := s.entry, (*testdb.Proxy)(nil)
	if s.proxied {
		url, proxy = testdb.Through(s.t, s.entry)
	}
	files := filepath.Join(s.dir, fmt.Sprintf("worker-%d", len(s.workers)+1))
	o := order{URL: url, Settings: s.settings, Work: 60 * time.Millisecond, Pool: s.pool, Power: s.power}
	s.workers = append(s.workers, startWorker(s.t, files, o, proxy))
}

// upTo returns a random duration below d.
func (s *stage) upTo(d time.Duration) time.Duration { return time.Duration(s.Int64N(int64(d))) }

// any returns one of the workers that live.
func (s *stage) any() *worker {
	living := s.living()
	return living[s.IntN(len(living))]
}

func (s *stage) living() []*worker {
	return slices.DeleteFunc(slices.Clone(s.workers), func(w *worker) bool { return w.killed || !w.alive() })
}

// until waits for something that must come.
func (s *stage) until(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(25 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// count asks the database for a number; -1 if it does not answer.
func (s *stage) count(query string, args ...any) (n int) {
	if err := s.c.DB().QueryRowContext(s.t.Context(), bind(s.c, query), args...).Scan(&n); err != nil {
		return -1
	}
	return n
}

// settle waits until each queue has a living owner, nothing moves, and the living have registered and share
// evenly.
func (s *stage) settle() {
	s.t.Helper()
	s.until("each queue has a living owner, and all have their share", func() bool {
		living := s.living()
		all := s.count(`SELECT COUNT(*) FROM schedule_queue WHERE task_type = ?`, taskType)
		if s.count(`SELECT COUNT(*) FROM schedule_server WHERE task_type = ?`, taskType) != len(living) || all < 0 {
			return false
		}
		for _, w := range living {
			n := s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE task_type = ? AND status = 'HELD' AND cur_pid = ?`, taskType, w.pid)
			if n < all/len(living) || n > (all+len(living)-1)/len(living) {
				return false
			}
		}
		return s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE status <> 'HELD' AND task_type = ?`, taskType) == 0
	})
}

// exec runs a statement past all proxies.
func (s *stage) exec(statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		if _, err := s.c.DB().ExecContext(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// works waits until so many more items are done.
func (s *stage) works(n int) {
	s.t.Helper()
	done := func() int { return s.count(`SELECT COUNT(*) FROM items WHERE done = 1`) }
	from := done()
	s.until(fmt.Sprintf("%d more items are done", n), func() bool { return done() >= from+n })
}

// expiry waits until the others have taken a worker for dead. In SQLite a process may have been stopped with
// the one lock in its hands; then nobody can do anything, and it has to do that they had the time.
func (s *stage) expiry(w *worker, since time.Time) {
	s.t.Helper()
	s.until("the worker in trouble is expired", func() bool {
		return s.c.Dialect() == schema.SQLite && time.Since(since) > s.dead(3) ||
			s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ? AND from_server LIKE ?`,
				center.EventExpired, fmt.Sprintf("%%:%d:%%", w.pid)) > 0
	})
}

// outlast lets three dead intervals pass: what comes too late must have had the time to come.
func (s *stage) outlast(since time.Time) { time.Sleep(time.Until(since.Add(s.dead(3)))) }

// sleep lets a fault last. Nothing waits for it.
func (s *stage) sleep(d time.Duration) { time.Sleep(d) }

// between notes a window that ends now.
func (s *stage) between(w *worker, kind Kind, from time.Time) {
	window := Window{Kind: kind, From: from, To: time.Now()}
	if w != nil {
		window.Process = w.pid
	}
	s.windows = append(s.windows, window)
}

// dies notes that a process was killed, and waits for its end.
func (s *stage) dies(w *worker) {
	s.t.Helper()
	w.killed = true
	s.until("the killed worker has ended", func() bool { return !w.alive() })
	s.windows = append(s.windows, Window{Process: w.pid, Kind: Death, From: w.ended})
}

func (s *stage) kill(w *worker) {
	s.t.Helper()
	w.signal(syscall.SIGKILL)
	s.dies(w)
}

// leave tells workers to go and waits until they have.
func (s *stage) leave(leaving ...*worker) {
	s.t.Helper()
	for _, w := range leaving {
		w.signal(syscall.SIGTERM)
	}
	s.until("the workers have left", func() bool {
		return !slices.ContainsFunc(leaving, func(w *worker) bool { return w.alive() })
	})
}

// close drains the work, lets everybody leave and judges the history.
func (s *stage) close() {
	s.t.Helper()
	s.hunger()
	if s.power.runs() {
		s.sweepUp()
	}
	s.until("everything is done", func() bool { return s.count(`SELECT COUNT(*) FROM items WHERE done = 0`) == 0 })
	s.settle()
	s.leave(s.living()...)
	for _, w := range s.workers {
		if !w.killed && w.err != nil { // it ended by itself, or found a data race
			s.t.Errorf("worker %d ended with %v", w.pid, w.err)
		}
	}
	h := s.history()
	if s.review != nil {
		s.review(s, &h)
	}
	found := Check(h)
	if s.power.runs() {
		found = append(found, CheckRuns(s.sweeps())...)
	}
	for _, v := range found {
		s.t.Error(v)
	}
	if s.judged != nil {
		s.judged(h, found)
	}
	s.t.Log(summary(h))
}
