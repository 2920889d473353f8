package manager_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// BenchmarkPlannedMove measures hand-overs under load, at the default intervals, with items that take 1 ms: how long a queue
// that moves is idle, from the end of the old owner's last item to the beginning of the new owner's first, and how the rate
// of the queues that stay changes meanwhile.
//
// Several rosters of two workers change at once, and out of step. In one operation a worker joins and leaves in half of the
// rosters, and a worker is paused and resumed in the others. The goals are p99-ms below 500 and other-queues-rate-% above
// 90. They are reported and do not fail, because they depend on the machine. The benchmark fails if two workers ever execute
// one queue at once.
func BenchmarkPlannedMove(b *testing.B) {
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		b.Run(kind, func(b *testing.B) { benchmarkMoves(b, testdb.URL(b, kind)) })
	}
}

const (
	moveRosters = 8
	moveQueues  = 4 // of each roster; half of them move
)

func benchmarkMoves(b *testing.B, url string) {
	rosters := make([]*moveRoster, moveRosters)
	for i := range rosters {
		rosters[i] = newMoveRoster(b, url, fmt.Sprintf("moves-%d", i))
	}
	for step := range rosters { // no two heartbeats at the same time
		rosters[step].first.run()
		for i := 1; i < moveRosters; i += 2 {
			if 2*i%moveRosters == step {
				rosters[i].second.run()
			}
		}
		time.Sleep(center.Settings{}.WithDefaults().HeartbeatInterval / moveRosters)
	}
	for i, r := range rosters {
		r.await(func() bool {
			return r.share(r.first)+r.share(r.second) == moveQueues && r.share(r.second) == i%2*moveQueues/2
		})
	}
	var result moveResult
	for b.Loop() {
		result.add(both(rosters, moveChange{"join", (*moveRoster).join}, moveChange{"pause", (*moveRoster).pause}))
		result.add(both(rosters, moveChange{"leave", (*moveRoster).leave}, moveChange{"resume", (*moveRoster).resume}))
	}
	b.StopTimer()
	for _, r := range rosters {
		r.stop()
	}
	result.report(b)
}

// moveChange makes queues move.
type moveChange struct {
	kind string
	act  func(*moveRoster)
}

// both makes one change to the even rosters and another to the odd ones, all at once.
func both(rosters []*moveRoster, even, odd moveChange) moveResult {
	results := make([]moveResult, len(rosters))
	var wg sync.WaitGroup
	for i, r := range rosters {
		wg.Go(func() { results[i] = r.change([]moveChange{even, odd}[i%2]) })
	}
	wg.Wait()
	var all moveResult
	for _, r := range results {
		all.add(r)
	}
	return all
}

// moveResult is what moves cost.
type moveResult struct {
	gaps           map[string][]time.Duration // by the kind of change
	done, expected float64                    // items of the queues that stayed
	overlaps       []string
}

func (m *moveResult) add(o moveResult) {
	if m.gaps == nil {
		m.gaps = map[string][]time.Duration{}
	}
	for kind, gaps := range o.gaps {
		m.gaps[kind] = append(m.gaps[kind], gaps...)
	}
	m.done, m.expected = m.done+o.done, m.expected+o.expected
	m.overlaps = append(m.overlaps, o.overlaps...)
}

func (m *moveResult) report(b *testing.B) {
	b.Helper()
	for _, text := range m.overlaps {
		b.Error(text)
	}
	var all []time.Duration
	for kind, gaps := range m.gaps {
		b.ReportMetric(percentile(gaps, 99), kind+"-p99-ms")
		all = append(all, gaps...)
	}
	b.ReportMetric(float64(len(all)), "moves")
	b.ReportMetric(percentile(all, 50), "p50-ms")
	b.ReportMetric(percentile(all, 99), "p99-ms")
	b.ReportMetric(100*m.done/m.expected, "other-queues-rate-%")
}

// percentile returns the smallest value that so many percent of d do not exceed, in milliseconds.
func percentile(d []time.Duration, percent int) float64 {
	slices.Sort(d)
	return float64(d[(len(d)*percent+99)/100-1]) / 1e6
}

// moveRoster is a task type with two workers. The second one comes and goes.
type moveRoster struct {
	b             *testing.B
	task          string
	queues        [moveQueues]moveQueue
	first, second *moveWorker
}

// moveQueue is what the benchmark knows of one queue.
type moveQueue struct {
	mu      sync.Mutex
	owner   *moveWorker // the worker that executed it last
	busy    bool
	ends    []time.Time // of its items, in order
	gaps    []moveGap
	overlap string
}

// moveGap is a time in which a queue was idle because it moved.
type moveGap struct{ from, to time.Time }

// moveWorker is one worker process, and its dealer.
type moveWorker struct {
	r    *moveRoster
	name string
	c    *center.Center
	uuid atomic.Value // of its last session
	stop context.CancelFunc
	done chan error
}

func newMoveRoster(b *testing.B, url, task string) *moveRoster {
	b.Helper()
	r := &moveRoster{b: b, task: task}
	for _, name := range []string{"first", "second"} {
		c, err := center.Open(b.Context(), anydb.URL(url), center.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		w := &moveWorker{r: r, name: name, c: c}
		if name == "first" {
			r.first = w
		} else {
			r.second = w
		}
	}
	return r
}

func (w *moveWorker) run() {
	m, err := manager.New(w.c, manager.Config{}, manager.Serve(w.r.task, w, manager.Settings{Queues: moveQueues}))
	if err != nil {
		w.r.b.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.stop, w.done = cancel, make(chan error, 1)
	go func() { w.done <- m.Run(ctx) }()
}

func (w *moveWorker) end() {
	if w.stop == nil {
		return
	}
	w.stop()
	if err := <-w.done; err != nil {
		w.r.b.Error(err)
	}
	w.stop = nil
}

// stop ends both workers.
func (r *moveRoster) stop() {
	r.second.end()
	r.first.end()
}

// Select returns one item, so that each queue is worked item by item and never waits for an executor.
func (w *moveWorker) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return []int{s.Queue.Index}, nil
}

// Execute takes 1 ms.
func (w *moveWorker) Execute(ctx context.Context, items []int) error {
	if batch, ok := center.BatchFrom(ctx); ok {
		w.uuid.Store(batch.Server)
	}
	q := &w.r.queues[items[0]]
	q.begin(w)
	defer q.end()
	time.Sleep(time.Millisecond)
	return nil
}

func (q *moveQueue) begin(w *moveWorker) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		q.overlap = fmt.Sprintf("%s: %s started while %s executed the queue", w.r.task, w.name, q.owner.name)
	}
	if q.owner != nil && q.owner != w {
		q.gaps = append(q.gaps, moveGap{q.ends[len(q.ends)-1], time.Now()})
	}
	q.owner, q.busy = w, true
}

func (q *moveQueue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy, q.ends = false, append(q.ends, time.Now())
}

// share returns the number of queues that a worker executed last.
func (r *moveRoster) share(w *moveWorker) (n int) {
	for i := range r.queues {
		q := &r.queues[i]
		q.mu.Lock()
		if q.owner == w {
			n++
		}
		q.mu.Unlock()
	}
	return n
}

// await waits for a state of the queues that must come.
func (r *moveRoster) await(is func() bool) {
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.b.Errorf("%s: the queues have not moved within a minute", r.task)
			return
		}
	}
}

func (r *moveRoster) join() { r.second.run() }

func (r *moveRoster) leave() { r.second.end() }

func (r *moveRoster) pause() { r.pauseSecond(true) }

func (r *moveRoster) resume() { r.pauseSecond(false) }

// pauseSecond does what an operator would do: the workers learn of it with a heartbeat.
func (r *moveRoster) pauseSecond(paused bool) {
	uuid, _ := r.second.uuid.Load().(string)
	if err := r.first.c.Roster().Operator("the benchmark").PauseServer(context.Background(), uuid, paused); err != nil {
		r.b.Error(err)
	}
}

// change makes a change and waits until half of the queues have moved.
func (r *moveRoster) change(c moveChange) moveResult {
	time.Sleep(calm)
	for i := range r.queues {
		r.queues[i].forget()
	}
	want := moveQueues/2 - r.share(r.second)
	time.Sleep(calm)
	c.act(r)
	r.await(func() bool { return r.share(r.second) == want })
	return r.compare(c.kind)
}

// calm is how long all workers work undisturbed before a change.
const calm = 300 * time.Millisecond

func (q *moveQueue) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gaps, q.ends = nil, q.ends[max(0, len(q.ends)-1):]
}

// compare compares what the queues that stayed did during the moves and before.
func (r *moveRoster) compare(kind string) moveResult {
	result := moveResult{gaps: map[string][]time.Duration{}}
	var stayed []*moveQueue
	var moved []moveGap
	for i := range r.queues {
		q := &r.queues[i]
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.overlap != "" {
			result.overlaps = append(result.overlaps, q.overlap)
		}
		if len(q.gaps) == 0 {
			stayed = append(stayed, q)
			continue
		}
		moved = append(moved, q.gaps...)
	}
	if len(moved) == 0 {
		return result
	}
	from := slices.MinFunc(moved, func(a, b moveGap) int { return a.from.Compare(b.from) }).from
	to := slices.MaxFunc(moved, func(a, b moveGap) int { return a.to.Compare(b.to) }).to
	for _, g := range moved {
		result.gaps[kind] = append(result.gaps[kind], g.to.Sub(g.from))
	}
	for _, q := range stayed {
		before := q.count(q.ends[0], q.ends[0].Add(calm))
		result.done += float64(q.count(from, to))
		result.expected += float64(before) * float64(to.Sub(from)) / float64(calm)
	}
	return result
}

// count returns the number of items that ended after from and not after to.
func (q *moveQueue) count(from, to time.Time) int {
	place := func(t time.Time) int {
		i, _ := slices.BinarySearchFunc(q.ends, t, func(end, t time.Time) int { return cmp.Or(end.Compare(t), -1) })
		return i
	}
	return place(to) - place(from)
}
