//go:build linux

package faults

import (
	"fmt"
	"syscall"
	"time"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// moving is the last statement of the transaction that makes the runs of the next slots of a backfill.
const moving step = "UPDATE schedule_backfill SET state"

// backfillScenarios are faults while a backfill makes the runs of its slots.
var backfillScenarios = []scenario{
	{name: "run-backfill-kill", play: killInBackfill, variant: sweeping, kinds: everywhere, quick: true},
	{name: "run-backfill-all-die", play: allDieInBackfill, variant: sweeping, kinds: everywhere},
	{name: "run-backfill-kill-at-moving", play: killAtMoving, variant: sweeping, proxied: true},
}

// backfilled is the number of slots of a backfill.
const backfilled = 12

// startBackfill starts a backfill of slots that are all in the past, of a trigger that does not fire during the
// scenario.
func (s graphSteps) startBackfill() string {
	s.t.Helper()
	now, err := s.c.Engine().Scheduler.Tick(s.t.Context(), taskType)
	s.must(err)
	from := now.Now.Add(-(backfilled + 1) * time.Hour).Truncate(time.Second)
	_, err = ops.New(s.c).Triggers().Define(s.t.Context(), runs.Trigger{
		Name: "hourly", Target: taskType, Kind: runs.TriggerEvery, Expression: "1h", StartAt: from.Add(-30 * time.Minute),
	})
	s.must(err)
	b, err := s.c.Engine().Backfills.Start(s.t.Context(),
		runs.BackfillRange{TaskType: taskType, From: from, To: from.Add(backfilled * time.Hour)}, "test")
	s.must(err)
	return b.ID
}

// made waits until the backfill has made the runs of so many slots.
func (s graphSteps) made(n int) {
	s.t.Helper()
	s.until("the backfill makes runs", func() bool { return s.count(`SELECT slots_made FROM schedule_backfill`) >= n })
}

// backfillSucceeds waits for the end of a backfill, and checks that each slot has one run.
func (s graphSteps) backfillSucceeds(id string) {
	s.t.Helper()
	var b runs.BackfillRecord
	read := func() (err error) {
		b, err = ops.New(s.c).Backfills().Get(s.t.Context(), id)
		return err
	}
	for n := range int64(backfilled) { // patience is for one run: a busy machine takes longer than that for all of them
		s.until(fmt.Sprintf("%d runs of the backfill have succeeded", n+1), func() bool {
			return read() == nil && (b.RunsSuccess > n || b.State != runs.BackfillRunning)
		})
	}
	s.until("the backfill ends", func() bool { return read() == nil && b.State != runs.BackfillRunning })
	list := s.count(`SELECT COUNT(*) FROM schedule_run WHERE backfill_id = ?`, id)
	slots := s.count(`SELECT COUNT(DISTINCT scheduled_at) FROM schedule_run WHERE backfill_id = ?`, id)
	if b.State != runs.BackfillSuccess || b.SlotsMade != backfilled || list != backfilled || slots != backfilled {
		s.t.Errorf("the backfill is %s (%s) with %d slots made, %d runs and %d slots; want SUCCESS and %d", b.State,
			b.Message, b.SlotsMade, list, slots, backfilled)
	}
}

// killInBackfill: workers die in the middle of a backfill, and an operator pauses it.
func killInBackfill(s *stage) {
	id := s.startBackfill()
	s.made(3)
	s.kill(s.any())
	s.launch()
	s.made(5)
	s.must(s.c.Engine().Backfills.SetPaused(s.t.Context(), id, true, "test"))
	open := func() int { return s.count(`SELECT COUNT(*) FROM schedule_run WHERE state IN ('READY', 'RUNNING')`) }
	s.until("the last run has ended", func() bool { return open() == 0 })
	paused := s.count(`SELECT slots_made FROM schedule_backfill`)
	s.sleep(2 * time.Second) // two ticks
	if n := s.count(`SELECT slots_made FROM schedule_backfill`); n != paused || open() != 0 {
		s.t.Errorf("a paused backfill went from %d slots to %d", paused, n)
	}
	s.must(s.c.Engine().Backfills.SetPaused(s.t.Context(), id, false, "test"))
	s.made(paused + 2)
	s.kill(s.any())
	s.launch()
	s.backfillSucceeds(id)
}

// allDieInBackfill: no worker is left in the middle of a backfill, and the next one goes on with it.
func allDieInBackfill(s *stage) {
	id := s.startBackfill()
	s.made(4)
	for _, w := range s.live() {
		w.signal(syscall.SIGSTOP) // stop all first, so that the last worker makes no run
	}
	for _, w := range s.live() {
		s.kill(w)
	}
	if b, err := ops.New(s.c).Backfills().Get(s.t.Context(), id); err != nil || b.State != runs.BackfillRunning ||
		b.SlotsMade == backfilled {
		s.t.Errorf("the backfill is %+v, want it RUNNING with slots left: %v", b, err)
	}
	s.launch()
	s.backfillSucceeds(id)
}

// killAtMoving kills the worker that makes the run of a slot: before the statement that moves the backfill on, before
// the commit, and after the commit but before the reply.
func killAtMoving(s *stage) {
	id := s.startBackfill()
	for _, m := range moments {
		w := s.awaitBreak(s.breakAt(moving, m, killWorker), m.String()+": the backfill makes a run")
		s.dies(w)
		s.launch()
	}
	s.backfillSucceeds(id)
}
