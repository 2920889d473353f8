//go:build linux

package faults

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// resizeScenarios are faults while queues are split and merged (N3).
var resizeScenarios = []scenario{
	{name: "split", play: splitAndMerge, kinds: everywhere, quick: true},
	{name: "split-kill", play: splitUnderKill, kinds: everywhere, quick: true},
	{name: "split-kill-at-steps", play: killAtResizing, proxied: true},
	{name: "split-replies-lost", play: replyLostAtResizing, proxied: true, quick: true},
	{name: "split-pause-in-item", play: splitBesidePause, kinds: everywhere, threads: 1},
	{name: "split-pause-before-commit", play: splitBesideHeldRow, threads: 1},
	{name: "split-cursor", play: splitUnderKillOnly, variant: inOrder, kinds: everywhere, quick: true},
	{name: "split-notsleep", play: splitUnderKill, variant: notSleep},
	{name: "split-order", play: splitUnderKill, variant: orderly, review: keysInOrder},
}

// The transactions of a split and of a merge.
const (
	splitting step = "cur_since = CASE WHEN cur_server IS NULL THEN NULL"
	yielding  step = "cur_server = NULL, cur_since = NULL, epoch = epoch + 1" // an owner gives up a queue that merges
	merging   step = "UPDATE schedule_queue SET failing_since = NULL, queue_total ="
)

// resize requests another total for all queues.
func (s workerSteps) resize(total int) {
	s.t.Helper()
	s.exec(`UPDATE schedule_task_type SET splittable = TRUE`)
	s.must(s.c.Roster().Operator("test").ResizeAll(s.t.Context(), taskType, total, 0))
}

// resized waits until all queues have a total and the load is balanced.
func (s workerSteps) resized(total int) {
	s.t.Helper()
	s.until(fmt.Sprintf("all queues have the total %d", total), func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_queue WHERE task_type = ?`, taskType) == total &&
			s.count(`SELECT COUNT(*) FROM schedule_queue WHERE task_type = ? AND queue_total = ?`, taskType, total) == total
	})
	s.awaitBalance()
}

func splitAndMerge(s *stage) {
	for _, total := range []int{2 * queues, queues, 3 * queues, queues} {
		s.resize(total)
		s.resized(total)
		s.works(20)
	}
}

// splitUnderKill: a worker dies at any time while the queues are split, and another one while they merge.
func splitUnderKill(s *stage) {
	for _, total := range []int{2 * queues, queues} {
		s.resize(total)
		s.sleep(s.upTo(s.settings.HeartbeatInterval))
		s.kill(s.any())
		s.start(1)
		s.resized(total)
		s.works(20)
	}
}

// splitUnderKillOnly: queues with cursors do not merge, because their cursors differ.
func splitUnderKillOnly(s *stage) {
	s.resize(2 * queues)
	s.sleep(s.upTo(s.settings.HeartbeatInterval))
	s.kill(s.any())
	s.start(1)
	s.resized(2 * queues)
	s.works(20)
}

// killAtResizing kills the worker that splits, that gives up a queue, or that merges: before the statement, before the
// commit, and after the commit but before the reply.
func killAtResizing(s *stage) {
	for _, m := range some(s, moments) {
		for _, at := range []struct {
			step  step
			total int
		}{{splitting, 2 * queues}, {yielding, queues}, {splitting, 2 * queues}, {merging, queues}} {
			reached := s.breakAt(at.step, m, killWorker)
			s.resize(at.total)
			s.dies(s.awaitBreak(reached, fmt.Sprintf("%s: %s", m, at.step)))
			s.start(1)
			s.resized(at.total)
		}
	}
	s.works(20)
}

func replyLostAtResizing(s *stage) {
	for _, at := range []struct {
		step  step
		total int
	}{{splitting, 2 * queues}, {yielding, queues}, {splitting, 2 * queues}, {merging, queues}} {
		reached := s.breakAt(at.step, testdb.AfterCommit, func(*worker) bool { return false })
		s.resize(at.total)
		s.awaitBreak(reached, "the reply is lost: "+string(at.step))
		s.resized(at.total)
	}
	s.works(20)
}

// splitBesidePause: a worker stops in a call. The others take over its queues and split them. The call wakes with a batch
// of the whole queue, and the fence rejects its transaction.
func splitBesidePause(s *stage) {
	w := s.any()
	from := time.Now()
	w.arm("stop work")
	s.until("the worker has stopped itself", w.Stopped)
	s.resize(2 * queues)
	s.awaitTakeover(w)
	s.until("all queues are split", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_queue WHERE task_type = ?`, taskType) == 2*queues
	})
	s.works(queues * backlog) // the item in flight among them
	s.wake(w, from)
	s.works(20)
	s.resized(2 * queues)
}

// splitBesideHeldRow: while a fenced transaction stands still before its commit, its queue is not split, and the other
// queues are.
func splitBesideHeldRow(s *stage) {
	w := s.any()
	from := time.Now()
	w.arm("stop commit")
	s.until("the worker has stopped itself", w.Stopped)
	s.resize(2 * queues)
	s.awaitTakeover(w)
	s.until("all other queues are split", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_queue WHERE task_type = ?`, taskType) >= 2*queues-1
	})
	s.wake(w, from)
	s.resized(2 * queues)
	s.works(20)
}
