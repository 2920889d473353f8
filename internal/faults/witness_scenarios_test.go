//go:build linux

package faults

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
)

// witnessScenarios are ends of processes that other processes of the host notice at once (S15). The intervals are long,
// so that servers do not look silent in the meantime.
var witnessScenarios = []scenario{
	{name: "witnessed-kill", play: witnessedKill, kinds: everywhere, quick: true, witness: true, slow: true},
	{name: "witnessed-kill-before-commit", play: witnessedKillBeforeCommit, witness: true, slow: true},
	{name: "witnessed-pause", play: witnessedPause, witness: true, threads: 1},
	{name: "witnessed-restart", play: witnessedRestart, kinds: everywhere, witness: true, slow: true},
	{name: "witness-removed", play: witnessRemoved, witness: true},
	{name: "witnessed-by-many", play: witnessedByMany, witness: true, slow: true},
}

// expiries counts the expiries of a worker's servers that have this in their reason.
func (s *scene) expiries(w *worker, reason string) int {
	return s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ? AND from_server LIKE ? AND reason LIKE ?`,
		ops.EventExpired, fmt.Sprintf("%%:%d:%%", w.PID), "%"+reason+"%")
}

const (
	proved = "its process has ended"
	silent = "silent for"
)

func (s workerSteps) awaitProof(w *worker) {
	s.t.Helper()
	s.until("another process has proved the end of the worker", func() bool { return s.expiries(w, proved) > 0 })
	if n := s.expiries(w, silent); n > 0 {
		s.t.Errorf("worker %d was expired %d times because it was silent", w.PID, n)
	}
}

func witnessedKill(s *stage) {
	for range 2 {
		w := s.any()
		w.arm("kill work")
		s.dies(w)
		s.awaitProof(w)
		s.awaitBalance()
		s.works(20)
	}
}

// witnessedKillBeforeCommit: the database may still hold the transaction of the ended process.
func witnessedKillBeforeCommit(s *stage) {
	w := s.any()
	w.arm("kill commit")
	s.dies(w)
	s.awaitProof(w)
	s.awaitBalance()
	s.works(20)
}

// witnessedPause: a stopped process still holds its lock. The others expire it when it has been silent for long enough.
func witnessedPause(s *stage) {
	w := s.any()
	from := time.Now()
	w.signal(syscall.SIGSTOP)
	s.awaitTakeover(w)
	if n := s.expiries(w, proved); n > 0 {
		s.t.Errorf("worker %d is stopped, and the others say that it has ended", w.PID)
	}
	s.wake(w, from)
	s.works(20)
}

// witnessedRestart: no worker is left. The first one that starts expires all servers before it joins.
func witnessedRestart(s *stage) {
	dead := s.live()
	for _, w := range dead {
		s.kill(w)
	}
	s.start(1)
	for _, w := range dead {
		s.awaitProof(w)
	}
	s.works(20)
}

// The processes of a host that see a crash, for how long one row stays stalled, and the most transactions under the
// lock row in that time: of the crash, of the next plans, which come once a second, and of what else may come.
const (
	manyWitnesses = 20
	stalledFor    = 12 * time.Second
	fewPlans      = 30
)

// witnessedByMany: twenty processes of a host see the crash of one while a stray transaction holds the row of its
// queue. Together they make few plans, and the lock row is free.
func witnessedByMany(s *stage) {
	s.start(manyWitnesses - workers)
	var queue string
	var pid int
	s.must(s.c.DB().QueryRowContext(s.t.Context(), `SELECT queue_id, cur_pid FROM schedule_assignment
		ORDER BY queue_id LIMIT 1`).Scan(&queue, &pid))
	w := s.workers[slices.IndexFunc(s.workers, func(w *worker) bool { return w.PID == pid })]
	free := s.holdQueue(queue)
	locked := func() int { return s.count(`SELECT version FROM schedule_task_running`) }
	before := locked()
	s.kill(w)
	s.awaitProof(w)
	busy, looks := 0, 0
	for from := time.Now(); time.Since(from) < stalledFor; time.Sleep(50 * time.Millisecond) {
		looks++
		if s.count(`SELECT 1 FROM schedule_task_running FOR UPDATE NOWAIT`) < 0 {
			busy++
		}
	}
	plans := locked() - before
	s.t.Logf("%d transactions under the lock row in %s; it was busy at %d of %d looks", plans, stalledFor, busy, looks)
	if plans > fewPlans || busy > looks/4 {
		s.t.Errorf("%d transactions under the lock row in %s, and it was busy at %d of %d looks; "+
			"want at most %d and a quarter",
			plans, stalledFor, busy, looks, fewPlans)
	}
	free()
	s.awaitBalance()
	s.works(20)
}

// holdQueue begins a transaction that holds the row of a queue until the caller calls free.
func (s workerSteps) holdQueue(queue string) (free func()) {
	s.t.Helper()
	tx, err := s.c.DB().BeginTx(context.WithoutCancel(s.t.Context()), nil)
	s.must(err)
	free = func() { _ = tx.Rollback() } // does nothing the second time
	s.t.Cleanup(free)
	_, err = tx.ExecContext(s.t.Context(), bind(s.c, `UPDATE schedule_queue SET queue_parameter = 'held'
		WHERE queue_id = ?`), queue)
	s.must(err)
	return free
}

// witnessRemoved: without the directory, a killed worker is expired when it has been silent for long enough, and an
// alert says that the directory is gone.
func witnessRemoved(s *stage) {
	if err := os.RemoveAll(s.witness); err != nil {
		s.t.Fatal(err)
	}
	s.until("an alert reports that the directory is gone", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ? AND reason LIKE ?`, ops.EventAlert,
			condition.Witness.Name+":%") > 0
	})
	w := s.any()
	s.kill(w)
	s.awaitExpiry(w, w.Ended)
	if n := s.expiries(w, proved); n > 0 {
		s.t.Errorf("the directory is gone, and the others have a proof that worker %d has ended", w.PID)
	}
	s.awaitBalance()
	s.works(20)
}
