//go:build linux

package faults

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
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
	"github.com/dutyrota/rota/ops"
)

// stage is the environment of a scenario, with the steps of scenarios by subject. The goroutine of the scenario calls
// its methods. They end the test when an operation fails.
type stage struct {
	*scene
	supplySteps
	workerSteps
	runSteps
	graphSteps
	faultSteps
}

// newStage returns a stage for the scene.
func newStage(s *scene) *stage {
	workers := workerSteps{s}
	items, runs := supplySteps{s}, runSteps{workers}
	return &stage{
		scene: s, supplySteps: items, workerSteps: workers, runSteps: runs, graphSteps: graphSteps{runs},
		faultSteps: faultSteps{workers},
	}
}

// The steps of scenarios.
type (
	supplySteps struct{ *scene }      // items are inserted
	workerSteps struct{ *scene }      // workers start, are disturbed and end
	runSteps    struct{ workerSteps } // runs are submitted and end
	graphSteps  struct{ runSteps }    // triggers and dependants
	faultSteps  struct{ workerSteps } // the database or the network fails
)

// scene is what the steps of a scenario share: a database with items, the workers, and a record of the faults. It has
// many fields, because most describe the scenario.
type scene struct {
	*rand.Rand
	t         *testing.T
	settings  manager.Settings
	dir       string // for the files of the workers
	url       string
	workerURL string           // the URL for the workers
	data      []shard          // the data databases, if the items are there
	server    *testdb.Server   // the scenario's own, which it may stop; may be nil
	nodes     []*testdb.Server // of the scenario's own cluster; may be nil
	cluster   *testdb.Cluster  // that Patroni leads; may be nil
	group     *testdb.Group    // of MySQL servers; may be nil
	replica   *testdb.Server   // that follows the server semi-synchronously; may be nil
	view      *testdb.Proxy    // between the scenario and its own server, if the workers have proxies
	pooler    *testdb.Server   // between the workers and the database; may be nil
	pool      int              // as in scenario
	returns   time.Duration    // as in scenario
	idleTx    time.Duration    // as in scenario
	program   string           // that the next workers run; empty: this one
	witness   string           // the witness directory of the workers; empty: none
	variant   variant
	single    bool          // the workers write a batch by one statement
	reply     time.Duration // reply_timeout of the workers; 0 means the default
	review    func(*stage, *History)
	checked   func(History, []Violation)
	oldest    time.Duration  // the greatest age of a survivor's heartbeat
	fellBack  time.Time      // since when all work with a database that has lost history
	proxied   bool           // each worker has a proxy of its own
	c         *center.Center // the scenario's connection, which bypasses the proxies
	workers   []*worker
	windows   []Window
	rosters   []Roster // only the watcher uses it until endWatch
	watching  sync.WaitGroup
	endWatch  context.CancelFunc
	supplying sync.WaitGroup
	endSupply context.CancelFunc // ends the supply
	backlog   int                // undone items that the supply keeps in each queue
	highest   [queues]int        // the last item of each queue; only the supply uses it until the supply ends
	rerun     map[string]bool    // runs that were rerun
	swept     int64              // the watermark of the last successful run, in milliseconds
	// by item: an instant at which it was committed; only the supply uses the map until the supply ends
	there map[int64]time.Time
}

const (
	queues  = 6
	backlog = 7 // the default of stage.backlog
	workers = 3
)

// patience is the longest wait for an event that must come. It suffices on a slow machine.
const patience = 90 * time.Second

// defaults returns settings that are as short as a busy machine allows. The intervals are longer for SQLite, because
// its writers wait for each other in no fair order.
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

// margin returns the part of judge_dead_interval that package manager subtracts for the lease.
func margin(s manager.Settings) time.Duration {
	return max(s.HeartbeatInterval, s.JudgeDeadInterval*15/100)
}

func (s *scene) trust() time.Duration { return s.settings.JudgeDeadInterval - margin(s.settings) }

// dead returns n judge_dead_intervals.
func (s *scene) dead(n float64) time.Duration {
	return time.Duration(n * float64(s.settings.JudgeDeadInterval))
}

// open creates the tables and starts the supply of items.
func (s *stage) open() {
	ctx := context.WithoutCancel(s.t.Context()) // the supply ends in the cleanup
	c, err := center.Open(ctx, anydb.URL(s.url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		s.t.Fatal(err)
	}
	s.c = c
	s.t.Cleanup(func() { s.c.Close() })
	s.openData(ctx)
	for _, at := range s.places() {
		for _, statement := range tables(at.Dialect()) {
			if _, err := at.DB().ExecContext(ctx, statement); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.there, s.rerun = map[int64]time.Time{}, map[string]bool{}
	supplyCtx, cancel := context.WithCancel(ctx)
	s.endSupply = cancel
	s.supplying.Go(func() { s.supply(supplyCtx) })
	s.t.Cleanup(s.stopSupply)
	watchCtx, cancel := context.WithCancel(ctx)
	s.endWatch = cancel
	s.watching.Go(func() { s.watchRoster(watchCtx) })
	s.t.Cleanup(s.stopWatch)
}

// stopSupply ends the supply of items.
func (s supplySteps) stopSupply() {
	s.endSupply()
	s.supplying.Wait()
}

// stopWatch ends the reading of the roster.
func (s *scene) stopWatch() {
	s.endWatch()
	s.watching.Wait()
}

// supply keeps a few undone items in each queue, so that a stuck queue does not stop the others. It ignores errors,
// because databases fail here and may lose the last commits. The number of a lost item is not used again.
func (s supplySteps) supply(ctx context.Context) {
	for queue := range s.highest {
		s.highest[queue] = queue - queues
	}
	for ctx.Err() == nil {
		ids := map[place][]int{}
		for queue := range queues {
			var undone int
			at := s.placeOf(queue)
			err := at.DB().QueryRowContext(ctx,
				bind(at, `SELECT COUNT(*) FROM items WHERE done = 0 AND id % ? = ? AND id < ?`), queues, queue, bad).Scan(&undone)
			for ; err == nil && undone < s.backlog; undone++ {
				s.highest[queue] += queues
				ids[at] = append(ids[at], s.highest[queue])
			}
		}
		for at, list := range ids {
			s.insert(ctx, at, list)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// insert writes in a transaction. lib/pq begins each transaction with READ WRITE, regardless of the default of the
// server.
func (s supplySteps) insert(ctx context.Context, at place, ids []int) {
	rows, made := make([]string, len(ids)), time.Now().UnixMilli()
	for i, id := range ids {
		rows[i] = fmt.Sprintf("(%d, %d)", id, made)
	}
	tx, err := at.DB().BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer tx.Rollback() // does nothing after a commit
	if _, err := tx.ExecContext(ctx, `INSERT INTO items (id, made) VALUES `+strings.Join(rows, ", ")); err != nil ||
		tx.Commit() != nil {
		return // the supply inserts as many items the next time
	}
	for _, id := range ids {
		s.there[int64(id)] = time.Now()
	}
}

// start starts n workers and waits until the load is balanced.
func (s workerSteps) start(n int) {
	s.t.Helper()
	for range n {
		s.launch()
	}
	s.awaitBalance()
}

// launch starts a worker and does not wait for its registration.
func (s workerSteps) launch() {
	s.t.Helper()
	s.launchAs("")
}

// launchAs starts a worker with a name.
func (s workerSteps) launchAs(name string) *worker {
	s.t.Helper()
	url, proxy := s.workerURL, (*testdb.Proxy)(nil)
	if s.proxied {
		url, proxy = testdb.Through(s.t, s.workerURL)
	}
	files := filepath.Join(s.dir, fmt.Sprintf("worker-%d", len(s.workers)+1))
	o := order{
		URL: url, Settings: s.settings, Work: 60 * time.Millisecond, Pool: s.pool, IdleTx: s.idleTx,
		Witness: s.witness, Name: name, Variant: s.variant, Single: s.single, Reply: s.reply,
	}
	data := map[string]*testdb.Proxy{}
	o.Data = s.dataThrough(data)
	if name != "" {
		o.Returns = s.returns
	}
	w := startWorker(s.t, cmp.Or(s.program, os.Args[0]), files, o, proxy)
	w.data = data
	s.workers = append(s.workers, w)
	return w
}

// upTo returns a random duration below d.
func (s *scene) upTo(d time.Duration) time.Duration { return time.Duration(s.Int64N(int64(d))) }

// any returns a random live worker.
func (s *scene) any() *worker {
	live := s.live()
	return live[s.IntN(len(live))]
}

// live returns the workers that have not been killed and have not ended.
func (s *scene) live() []*worker {
	return slices.DeleteFunc(slices.Clone(s.workers), func(w *worker) bool { return w.killed || !w.Alive() })
}

// until waits for a condition that must become true.
func (s *scene) until(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(25 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %s in vain until %s", patience, what)
		}
	}
}

// count returns the number that a query of the roster's database yields, or -1 if the query fails.
func (s *scene) count(query string, args ...any) int { return s.countIn(s.c, query, args...) }

// countIn returns the number that a query of a database yields, or -1 if the query fails.
func (s *scene) countIn(at place, query string, args ...any) (n int) {
	if err := at.DB().QueryRowContext(s.t.Context(), bind(at, query), args...).Scan(&n); err != nil {
		return -1
	}
	return n
}

// items returns how many items are done, or are not, or -1 if a database does not say.
func (s *scene) items(done bool) (sum int) {
	state := 0
	if done {
		state = 1
	}
	for _, at := range s.places() {
		n := s.countIn(at, `SELECT COUNT(*) FROM items WHERE done = ?`, state)
		if n < 0 {
			return n
		}
		sum += n
	}
	return sum
}

// awaitBalance waits until each live worker is registered, each queue has a live owner, the load is balanced, and no
// queue moves.
func (s workerSteps) awaitBalance() {
	s.t.Helper()
	s.until("each queue has a live owner and the load is balanced", func() bool {
		live := s.live()
		all := s.count(`SELECT COUNT(*) FROM schedule_queue WHERE task_type = ?`, taskType)
		if s.count(`SELECT COUNT(*) FROM schedule_server WHERE task_type = ?`, taskType) != len(live) || all < 0 {
			return false
		}
		for _, w := range live {
			n := s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE task_type = ? AND status = 'HELD' AND cur_pid = ?`,
				taskType, w.PID)
			if n < all/len(live) || n > (all+len(live)-1)/len(live) {
				return false
			}
		}
		return s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE status <> 'HELD' AND task_type = ?`, taskType) == 0
	})
}

// exec runs statements that bypass the proxies.
func (s *scene) exec(statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		if _, err := s.c.DB().ExecContext(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// works waits until n more items are done.
func (s workerSteps) works(n int) {
	s.t.Helper()
	from := s.items(true)
	s.until(fmt.Sprintf("%d more items are done", n), func() bool { return s.items(true) >= from+n })
}

// eachQueueGoesOn waits until one more item of each queue is done.
func (s workerSteps) eachQueueGoesOn() {
	s.t.Helper()
	for queue := range queues {
		done := func() int { return s.count(`SELECT COUNT(*) FROM items WHERE done = 1 AND id % ? = ?`, queues, queue) }
		before := -1
		s.until(fmt.Sprintf("queue %d goes on", queue), func() bool {
			n := done()
			if before < 0 {
				before = n // the database may fail at first
			}
			return n > before
		})
	}
}

// awaitExpiry waits until the others have expired a worker. Where all writers share one lock, the stopped process may
// hold it, so that no other process can write. There it suffices that three dead intervals have passed.
func (s workerSteps) awaitExpiry(w *worker, since time.Time) {
	s.t.Helper()
	s.until("the worker in trouble is expired", func() bool {
		return s.c.Roster().DB.OneWriter && time.Since(since) > s.dead(3) ||
			s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ? AND from_server LIKE ?`,
				ops.EventExpired, fmt.Sprintf("%%:%d:%%", w.PID)) > 0
	})
}

// outlast waits until three dead intervals have passed since the given time, so that a late effect has had the time to
// occur.
func (s *scene) outlast(since time.Time) { time.Sleep(time.Until(since.Add(s.dead(3)))) }

// sleep is the duration of a fault. No scenario uses it to wait for an event.
func (s *scene) sleep(d time.Duration) { time.Sleep(d) }

// addWindow records a window of trouble that ends now. Without a worker, the window hits all of them.
func (s *scene) addWindow(w *worker, kind Kind, from time.Time) {
	window := Window{Kind: kind, From: from, To: time.Now()}
	if w != nil {
		window.Process = w.PID
	}
	s.windows = append(s.windows, window)
}

// dies waits for the end of a killed worker and records it.
func (s workerSteps) dies(w *worker) {
	s.t.Helper()
	w.killed = true
	s.until("the killed worker has ended", func() bool { return !w.Alive() })
	doomed := w.doomed
	if doomed.IsZero() { // a breakpoint has killed it
		doomed = w.Ended
	}
	s.windows = append(s.windows, Window{Process: w.PID, Kind: Death, From: doomed})
}

func (s workerSteps) kill(w *worker) {
	s.t.Helper()
	w.signal(syscall.SIGKILL)
	s.dies(w)
}

// leave terminates workers in order and waits for their end.
func (s workerSteps) leave(leaving ...*worker) {
	s.t.Helper()
	for _, w := range leaving {
		w.signal(syscall.SIGTERM)
	}
	s.until("the workers have left", func() bool {
		return !slices.ContainsFunc(leaving, func(w *worker) bool { return w.Alive() })
	})
}

// notLeft finds that a worker could not leave because the database did not answer in time. On a busy machine it may not,
// and a PgBouncer 1.18 ends by itself now and then (https://github.com/pgbouncer/pgbouncer/issues/801). That a worker
// leaves without an error is for tests without real time.
var notLeft = regexp.MustCompile(`(deadline exceeded|connection refused|reset by peer|EOF); the other workers take over`)

// close waits until all items are done, terminates all workers and checks the history.
func (s *stage) close() {
	s.t.Helper()
	s.stopSupply()
	if s.variant.runs() {
		s.sweepRest()
	}
	s.until("all items are done", func() bool { return s.items(false) == 0 })
	s.awaitBalance()
	s.leave(s.live()...)
	for _, w := range s.workers {
		switch {
		case w.killed || w.Err == nil:
		case notLeft.MatchString(w.Tail(3)):
			s.t.Logf("worker %d could not tell the roster that it leaves", w.PID)
		default: // a failure, or a data race
			s.t.Errorf("worker %d ended with an error: %v", w.PID, w.Err)
		}
	}
	s.stopWatch()
	h := s.history()
	if s.review != nil {
		s.review(s, &h)
	}
	found := Check(h)
	if s.variant.runs() {
		found = append(found, CheckRuns(s.sweeps())...)
	}
	for _, v := range found {
		s.t.Error(v)
	}
	if s.checked != nil {
		s.checked(h, found)
	}
	s.t.Log(summary(h))
}
