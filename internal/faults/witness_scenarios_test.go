//go:build linux

package faults

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/dutyrota/rota/center"
)

// witnessScenarios are ends of processes that other processes of the host notice at once (S15). The intervals are long,
// so that servers do not look silent in the meantime.
var witnessScenarios = []scenario{
	{name: "witnessed-kill", play: witnessedKill, kinds: everywhere, quick: true, witness: true, slow: true},
	{name: "witnessed-kill-before-commit", play: witnessedKillBeforeCommit, witness: true, slow: true},
	{name: "witnessed-pause", play: witnessedPause, witness: true, threads: 1},
	{name: "witnessed-restart", play: witnessedRestart, kinds: everywhere, witness: true, slow: true},
	{name: "witness-removed", play: witnessRemoved, witness: true},
}

// expiries counts the expiries of a worker's servers that have this in their reason.
func (s *scene) expiries(w *worker, reason string) int {
	return s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ? AND from_server LIKE ? AND reason LIKE ?`,
		center.EventExpired, fmt.Sprintf("%%:%d:%%", w.pid), "%"+reason+"%")
}

const (
	proved = "its process has ended"
	silent = "silent for"
)

func (s workerSteps) awaitProof(w *worker) {
	s.t.Helper()
	s.until("another process has proved the end of the worker", func() bool { return s.expiries(w, proved) > 0 })
	if n := s.expiries(w, silent); n > 0 {
		s.t.Errorf("worker %d was expired %d times because it was silent", w.pid, n)
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
		s.t.Errorf("worker %d is stopped, and the others say that it has ended", w.pid)
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

// witnessRemoved: without the directory, a killed worker is expired when it has been silent for long enough, and an alert
// says that the directory is gone.
func witnessRemoved(s *stage) {
	if err := os.RemoveAll(s.witness); err != nil {
		s.t.Fatal(err)
	}
	s.until("an alert reports that the directory is gone", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ? AND reason LIKE ?`, center.EventAlert, center.AlertWitness+":%") > 0
	})
	w := s.any()
	s.kill(w)
	s.awaitExpiry(w, w.ended)
	if n := s.expiries(w, proved); n > 0 {
		s.t.Errorf("the directory is gone, and the others have a proof that worker %d has ended", w.pid)
	}
	s.awaitBalance()
	s.works(20)
}
