//go:build linux

package faults

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// step is a transaction in the life of a run. It is recognized by a part of one of its statements.
type step string

const (
	opening    step = "UPDATE schedule_run SET state = 'RUNNING'"
	claiming   step = "recoveries = CASE WHEN state = 'RUNNING'"
	finishing  step = "), last_error = ''"             // the sweep of a queue ends
	closing    step = "UPDATE schedule_run SET items_" // a run ends
	listing    step = "INSERT INTO schedule_run_item"  // items have failed
	suspending step = "attempt = attempt - 1"          // the owner hands over a queue during its sweep
	firing     step = "UPDATE schedule_trigger SET version"
	resolving  step = "o.trigger_name = r.trigger_name" // the upstreams of a run have succeeded
	fencing    step = "SELECT q.queue_id, q.epoch, q.cur_server"
)

// stepScenarios are faults before and after each step of a run.
var stepScenarios = []scenario{
	{name: "run-kill-at-opening", play: killAt(opening), variant: sweeping, proxied: true},
	{name: "run-kill-at-claiming", play: killAt(claiming), variant: sweeping, proxied: true},
	{name: "run-kill-at-finishing", play: killAt(finishing), variant: sweeping, proxied: true, quick: true},
	{name: "run-kill-at-closing", play: killAt(closing), variant: sweeping, proxied: true},
	{name: "run-kill-at-listing", play: killAtListing, variant: refused, proxied: true, idle: true, quick: true},
	{name: "run-kill-at-suspending", play: killInDrain, variant: sweeping, proxied: true},
	{
		name: "run-replies-lost-at-steps", play: replyLostAt(opening, claiming, finishing, closing), variant: sweeping,
		proxied: true, quick: true,
	},
	{
		name: "run-pause-before-finishing", play: wakesToFinish, variant: sweeping, proxied: true, idle: true, threads: 1,
		quick: true,
	},
	{name: "run-pause-in-finishing", play: pauseInFinishing, variant: sweeping, proxied: true},
}

var moments = []testdb.Moment{testdb.BeforeStatement, testdb.BeforeCommit, testdb.AfterCommit}

// some returns all elements if ROTA_FAULTS is all, and otherwise one element, chosen by the seed.
func some[T any](s *stage, all []T) []T {
	if os.Getenv(which) == "all" {
		return all
	}
	n := s.IntN(len(all))
	return all[n : n+1]
}

// breakAt sets a breakpoint for the given workers, or for all live workers if none is given. It calls do for the first
// worker that sends the statement, and returns the channel of that worker.
func (s workerSteps) breakAt(at step, m testdb.Moment, do func(*worker) (pass bool),
	targets ...*worker,
) (reached <-chan *worker) {
	return s.breakWhen(at, func(*worker) bool { return true }, m, do, targets...)
}

// breakWhen does what breakAt does for the first worker that sends the statement when a condition holds. A goroutine of
// the worker's proxy asks for it.
func (s workerSteps) breakWhen(at step, when func(*worker) bool, m testdb.Moment, do func(*worker) (pass bool),
	targets ...*worker,
) (reached <-chan *worker) {
	if len(targets) == 0 {
		targets = s.live()
	}
	first := make(chan *worker, 1)
	var taken atomic.Bool
	for _, w := range targets {
		stops := func() bool { return when(w) }
		w.proxy.Break(testdb.Breakpoint{Text: string(at), When: stops, Moment: m, Reached: func() bool {
			if !taken.CompareAndSwap(false, true) {
				return true
			}
			first <- w
			return do(w)
		}})
	}
	return first
}

// awaitBreak waits for the worker that reaches the breakpoint.
func (s workerSteps) awaitBreak(reached <-chan *worker, what string) (w *worker) {
	s.t.Helper()
	s.until(what, func() bool {
		select {
		case w = <-reached:
			return true
		default:
			return false
		}
	})
	return w
}

// killWorker kills the worker that has sent the statement.
func killWorker(w *worker) bool {
	_ = syscall.Kill(w.PID, syscall.SIGKILL) // the process is alive: it has just sent a statement
	return false
}

// killAt kills the worker that takes a step: before the statement, before the commit, and after the commit but before
// the reply.
func killAt(at step) func(*stage) {
	return func(s *stage) {
		for _, m := range some(s, moments) {
			reached := s.breakAt(at, m, killWorker)
			id := s.submit("")
			s.dies(s.awaitBreak(reached, fmt.Sprintf("%s: %s", m, at)))
			s.launch()
			s.succeeds(id)
		}
	}
}

// killAtListing kills the worker that records failed items. The run fails, and lists each failed item once.
func killAtListing(s *stage) {
	s.addItems(40)
	m := moments[s.IntN(len(moments))]
	reached := s.breakAt(listing, m, killWorker)
	id := s.submit("")
	s.dies(s.awaitBreak(reached, fmt.Sprintf("%s: %s", m, listing)))
	s.launch()
	s.endsAs(id, runs.Failed)
	s.wantFailedItems(id)
	s.exec(`INSERT INTO cures (id) VALUES (1)`)
	s.rerunEnded(id)
	s.succeeds(id)
	if items := s.failedItems(id); len(items) > 0 {
		s.t.Errorf("the run has succeeded, and lists failed items: %v", items)
	}
}

// wantFailedItems checks that a run lists each item that is not done, once.
func (s runSteps) wantFailedItems(id string) {
	s.t.Helper()
	var open []string
	s.rows(`SELECT id FROM items WHERE done = 0 ORDER BY id`, func(r *sql.Rows) error {
		var item string
		err := r.Scan(&item)
		open = append(open, item)
		return err
	})
	slices.Sort(open)
	if listed := slices.Sorted(slices.Values(s.failedItems(id))); !slices.Equal(listed, open) {
		s.t.Errorf("the run lists the failed items\n%v, want\n%v", listed, open)
	}
}

func (s runSteps) failedItems(id string) (keys []string) {
	s.t.Helper()
	list, err := ops.New(s.c).Runs().FailedItems(s.t.Context(), runs.FailedItemFilter{RunID: id}, 10_000)
	s.must(err)
	for _, i := range list {
		keys = append(keys, i.Key)
	}
	return keys
}

// killInDrain kills a leaving worker when it hands over its sweeps.
func killInDrain(s *stage) {
	for _, m := range moments {
		for killed := false; !killed; {
			id := s.submit("")
			s.midway(id)
			killed = s.leaveOrDie(m)
			s.launch()
			s.succeeds(id)
		}
	}
}

// leaveOrDie makes a worker leave, and reports whether the breakpoint killed it. A worker that has just ended its
// sweeps has none to hand over.
func (s workerSteps) leaveOrDie(m testdb.Moment) (killed bool) {
	s.t.Helper()
	w := s.any()
	reached := s.breakAt(suspending, m, killWorker, w)
	s.leave(w)
	if killed = len(reached) > 0; killed {
		s.dies(w)
	}
	return killed
}

// replyLostAt: the steps are committed, and the worker does not receive the reply.
func replyLostAt(steps ...step) func(*stage) {
	return func(s *stage) {
		for _, at := range some(s, steps) {
			reached := s.breakAt(at, testdb.AfterCommit, func(*worker) bool { return false })
			id := s.submit("")
			s.awaitBreak(reached, "the reply is lost: "+string(at))
			s.succeeds(id)
		}
	}
}

// wakesToFinish: a worker stands still when it is about to write that a queue is done. The others write that, end the
// run and begin another. Then the worker wakes, and its late write must not count.
func wakesToFinish(s *stage) {
	release, from := make(chan struct{}), time.Now()
	free := sync.OnceFunc(func() { close(release) })
	s.t.Cleanup(free)
	// There are no items, so that a worker that has claimed all of its queues takes its next fence for a DONE. How many
	// fences it takes before depends on how many queues it claims at once.
	claimed := func(w *worker) bool {
		return s.count(`SELECT COUNT(*) FROM schedule_run_queue WHERE server LIKE ?`, fmt.Sprintf("%%:%d:%%", w.PID)) ==
			queues/workers
	}
	reached := s.breakWhen(fencing, claimed, testdb.BeforeStatement, holdWorker(release))
	first := s.submit("")
	w := s.awaitBreak(reached, "the fence of a DONE")
	s.awaitExpiry(w, from)
	s.succeeds(first)
	before := fmt.Sprint(s.queuesOf(first))
	second := s.submit("")
	s.succeeds(second)
	w.signal(syscall.SIGCONT)
	free()
	s.addWindow(w, Pause, from)
	s.awaitBalance()
	if after := fmt.Sprint(s.queuesOf(first)); after != before {
		s.t.Errorf("the rows of the first run changed from\n%s to\n%s", before, after)
	}
	for _, q := range s.queuesOf(second) {
		if process(q.Server) == w.PID {
			s.t.Errorf("queue %s of the later run belongs to the worker that stood still: %+v", q.QueueID, q)
		}
	}
}

// holdWorker stops the worker, and holds the statement back until the release.
func holdWorker(release <-chan struct{}) func(*worker) bool {
	return func(w *worker) bool {
		_ = syscall.Kill(w.PID, syscall.SIGSTOP) // the process is alive: it has just sent a statement
		<-release
		return true
	}
}

// pauseInFinishing: a worker stands still between the DONE and its commit. The queue and the run wait for it.
func pauseInFinishing(s *stage) {
	from := time.Now()
	reached := s.breakAt(finishing, testdb.BeforeCommit, func(w *worker) bool {
		_ = syscall.Kill(w.PID, syscall.SIGSTOP)
		return true
	})
	id := s.submit("")
	w := s.awaitBreak(reached, "the commit of a DONE")
	s.awaitTakeover(w)
	s.wake(w, from)
	s.succeeds(id)
}
