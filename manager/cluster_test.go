package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// cluster is some worker processes of one roster, in a bubble: they have one database in memory and fake time. Its
// methods are the steps that tests take, so it has more than 15.
type cluster struct {
	*testing.T
	c       *center.Center
	workers []*worker

	mu       sync.Mutex
	inFlight map[int]string // queue: the worker that executes it now
	logged   *lockedBuffer
	done     map[string]int // calls of Execute by worker
	first    map[string]time.Time
	overlap  error
}

// inBubble runs f with a roster of its own. Time passes only when every goroutine waits. The test becomes a parallel
// one, because bubbles compute while the tests on real servers wait.
func inBubble(t *testing.T, f func(*cluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := center.Open(t.Context(), sqlite.URL("sqlite::memory:"), center.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cl := &cluster{T: t, c: c, inFlight: map[int]string{}, done: map[string]int{}, first: map[string]time.Time{}, logged: new(lockedBuffer)}
		t.Cleanup(cl.close)
		f(cl)
	})
}

// close ends what a failed test has left, because a bubble must end without goroutines.
func (cl *cluster) close() {
	for _, w := range cl.workers {
		w.stop()
		<-w.done
	}
	time.Sleep(2 * time.Hour) // longer than any dealer that ignores its context
	if err := cl.c.Close(); err != nil {
		cl.Error(err)
	}
	if cl.overlap != nil {
		cl.Error(cl.overlap)
	}
}

// work is a dealer whose items are the queue's index. Executing one takes a while, and no other worker may have the
// queue meanwhile.
type work struct {
	cl     *cluster
	name   string
	takes  time.Duration
	more   time.Duration // each queue takes so much longer than the one before
	stub   bool          // ignores its context
	before func()
	ended  func(cause error) // called when its context is cancelled
}

func (w *work) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return []int{s.Queue.Index}, nil
}

func (w *work) Execute(ctx context.Context, items []int) error {
	w.cl.enter(w.name, items[0])
	defer w.cl.exit(items[0])
	if w.before != nil {
		w.before()
	}
	if w.stub {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-ctx.Done():
		if w.ended != nil {
			w.ended(context.Cause(ctx))
		}
		return ctx.Err()
	case <-time.After(w.takes + time.Duration(items[0])*w.more):
		return nil
	}
}

func (cl *cluster) enter(name string, queue int) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if other, ok := cl.inFlight[queue]; ok && cl.overlap == nil {
		cl.overlap = fmt.Errorf("%s works queue %d while %s works it", name, queue, other)
	}
	cl.inFlight[queue] = name
	if cl.done[name]++; cl.done[name] == 1 {
		cl.first[name] = time.Now()
	}
}

func (cl *cluster) exit(queue int) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	delete(cl.inFlight, queue)
}

// inFlightOf returns how many queues a worker is executing.
func (cl *cluster) inFlightOf(name string) (n int) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	for _, worker := range cl.inFlight {
		if worker == name {
			n++
		}
	}
	return n
}

func (cl *cluster) executed(name string) int {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.done[name]
}

// firstBegan returns when a worker executed its first item.
func (cl *cluster) firstBegan(name string) time.Time {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.first[name]
}

// worker is one worker process.
type worker struct {
	*manager.Manager
	stop context.CancelFunc
	done chan struct{}
	err  error
}

var fast = manager.Settings{Queues: 6, SleepTimeInterval: 10 * time.Millisecond, DrainTimeout: 3 * time.Second}

func (cl *cluster) start(name string, w *work, s manager.Settings) *worker {
	cl.Helper()
	if w == nil {
		w = &work{takes: 100 * time.Millisecond}
	}
	w.cl, w.name = cl, name
	m, err := manager.New(cl.c, manager.Config{Grace: time.Second, Logger: cl.logger()}, manager.Serve("settle", w, s))
	if err != nil {
		cl.Fatal(err)
	}
	return cl.run(m)
}

// logger returns a logger that writes text to cl.logged.
func (cl *cluster) logger() *slog.Logger { return slog.New(slog.NewTextHandler(cl.logged, nil)) }

func (cl *cluster) run(m *manager.Manager) *worker {
	ctx, cancel := context.WithCancel(cl.Context())
	wk := &worker{Manager: m, stop: cancel, done: make(chan struct{})}
	cl.workers = append(cl.workers, wk)
	go func() {
		defer close(wk.done)
		wk.err = m.Run(ctx)
	}()
	return wk
}

// leave stops a worker and waits until it has left.
func (cl *cluster) leave(w *worker) error {
	w.stop()
	<-w.done
	return w.err
}

// owners returns the number of queues of each owner, and the number of queues without an owner.
func (cl *cluster) owners() (counts []int, ownerless int) {
	cl.Helper()
	rows, err := cl.c.DB().QueryContext(cl.Context(), "SELECT cur_server, COUNT(*) FROM schedule_queue GROUP BY cur_server ORDER BY 2 DESC")
	if err != nil {
		cl.Fatal(err)
	}
	defer func() {
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			cl.Fatal(err)
		}
	}()
	for rows.Next() {
		var owner *string
		var n int
		if err := rows.Scan(&owner, &n); err != nil {
			cl.Fatal(err)
		}
		if owner == nil {
			ownerless = n
			continue
		}
		counts = append(counts, n)
	}
	return counts, ownerless
}

func (cl *cluster) wantOwners(want ...int) {
	cl.Helper()
	got, ownerless := cl.owners()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		cl.Fatalf("queues per owner are %v and %d have none, want %v", got, ownerless, want)
	}
}

func (cl *cluster) events(kind string) (n int) {
	cl.Helper()
	if err := cl.c.DB().QueryRowContext(cl.Context(), "SELECT COUNT(*) FROM schedule_event WHERE kind = ?", kind).Scan(&n); err != nil {
		cl.Fatal(err)
	}
	return n
}

func (cl *cluster) exec(query string, args ...any) {
	cl.Helper()
	if _, err := cl.c.DB().ExecContext(cl.Context(), query, args...); err != nil {
		cl.Fatal(err)
	}
}

// noteChanges tells the servers that their queues have changed, as a transaction that changes them does (S2).
func (cl *cluster) noteChanges() {
	cl.Helper()
	cl.exec("UPDATE schedule_server_version SET queue_version = queue_version + 1")
	cl.exec("UPDATE schedule_task_running SET plan_version = plan_version + 1")
}

// noteEdits also tells them that there is another server, as its registration does (S3).
func (cl *cluster) noteEdits() {
	cl.Helper()
	cl.noteChanges()
	cl.exec("UPDATE schedule_task_running SET membership_version = membership_version + 1")
}

func (cl *cluster) scan(query string, into any) {
	cl.Helper()
	if err := cl.c.DB().QueryRowContext(cl.Context(), query).Scan(into); err != nil {
		cl.Fatal(err)
	}
}

func (cl *cluster) uuid() string {
	cl.Helper()
	return cl.uuidOf("1 = 1")
}

// uuidOf returns the uuid of the server that meets a condition.
func (cl *cluster) uuidOf(condition string) (uuid string) {
	cl.Helper()
	if err := cl.c.DB().QueryRowContext(cl.Context(), "SELECT uuid FROM schedule_server WHERE "+condition).Scan(&uuid); err != nil {
		cl.Fatal(err)
	}
	return uuid
}

// lockedBuffer holds what the workers log.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns what has been logged so far.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// serveAlerted starts a worker that records its alerts.
func (cl *cluster) serveAlerted(alerts *alertLog, d processor.TaskDealer[int], s manager.Settings) *worker {
	cl.Helper()
	m, err := manager.New(cl.c, manager.Config{Alerter: alerts, Grace: time.Second}, manager.Serve("settle", d, s))
	if err != nil {
		cl.Fatal(err)
	}
	return cl.run(m)
}

func (cl *cluster) serve(s *store, set manager.Settings) *worker {
	cl.Helper()
	s.cl, s.items = cl, map[int]bool{}
	return cl.serveAlso(s, set)
}

func (cl *cluster) serveAlso(s *store, set manager.Settings) *worker {
	cl.Helper()
	m, err := manager.New(cl.c, manager.Config{Grace: time.Second}, manager.Serve("settle", s, set))
	if err != nil {
		cl.Fatal(err)
	}
	return cl.run(m)
}
