package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dutyrota/rota/processor"
)

// QueueState is the state of one queue that the processor holds.
type QueueState struct {
	Queue    processor.Queue
	Draining bool // by Drain or Revoke, or by the processor itself if Lost
	Lost     bool // the dealer returned an error for which Env.Lost is true, and there was no Resume or Revoke since
	InFlight int  // calls of the dealer in flight for this queue
	Drained  bool // draining and nothing in flight: no item of it is touched before Resume

	// EmptySince is the time when the last select of the queue began, if it found nothing to execute while nothing of
	// the queue was in flight. Items that back off or are dead are nothing to execute. It is zero if
	// no select has ended like this, or if the last successful select found something. A queue with a Run gets it
	// when its sweep is complete.
	EmptySince time.Time

	// Survived says that Queue.Crashes is not 0, and that since the grant a page of the queue was executed to its end, or
	// a select has found nothing. The caller resets the count.
	Survived bool

	Failing *QueueFailure // nil unless all calls for the queue fail; always nil for a queue with a Run

	Sweep SweepState // of a queue with a Run
}

// Grant starts the work on a queue under q.Epoch. total is Selection.Total. Grant returns an error if the queue is held
// already, under any epoch: the caller must first Revoke or Drain it, wait until it is drained, and Forget it.
//
// A queue with a Run is swept once. It is selected again and again, without pauses of sleep_time_nodata, until
// QueueState.Sweep says that the sweep has ended. It is not selected after that. The queue stays held until it is
// drained and forgotten like any other. It may be drained and resumed during the sweep. After Forget it may be granted
// again, with the same Run or another. Grant copies the Run.
func (p *Processor) Grant(q processor.Queue, total int) error {
	s := p.lock()
	defer s.mu.Unlock()
	if g := s.grants[q.ID]; g != nil {
		return fmt.Errorf("grant queue %s under epoch %d: still held under epoch %d", q.ID, q.Epoch, g.queue.Epoch)
	}
	l := &lane{heapIndex: -1, serial: s.capabilities.Cursored}
	if q.Run != nil {
		run := *q.Run // so that each grant has its own
		q.Run, l.sweep = &run, &sweep{}
		if s.sweptRun.id != run.ID {
			s.sweptRun = sweptRun{id: run.ID, began: time.Now()}
		}
	}
	g := &grant{queue: q, total: total, lane: l}
	if !q.FailingSince.IsZero() {
		g.streak = queueStreak{since: q.FailingSince, carried: true}
	}
	l.grant, l.limits = g, q.Limits
	l.failures = newFailureLog(p.env.Items, q, s.capabilities, &p.memory.notes)
	l.rate = newQueueRate(s.settings.rateOf(l.limits))
	s.grants[q.ID] = g
	now := time.Now()
	l.times.ask(askMore, now)
	l.times.hold(holdCrash, now.Add(l.crashed(q, s.settings, s.capabilities.tracksItems())))
	s.enqueueLocked(l)
	s.limiter.invalidate()
	s.wakeLocked()
	return nil
}

// Drain stops the selects of a queue and drops its unstarted items (H1). Running calls may finish. A call that an
// executor has claimed counts as running, although it may enter the dealer a moment later. Drain does nothing if the
// queue is not held.
func (p *Processor) Drain(id string) {
	s := p.lock()
	defer s.mu.Unlock()
	if g := s.grants[id]; g != nil {
		s.drainLocked(g, time.Now())
	}
}

// Resume undoes Drain and Revoke, and clears Lost. The caller guarantees that this server still owns the queue under
// its epoch. A batch that Revoke cancelled stays cancelled.
func (p *Processor) Resume(id string) {
	s := p.lock()
	defer s.mu.Unlock()
	g := s.grants[id]
	if g == nil || !g.draining {
		return
	}
	g.draining, g.lost = false, false
	g.streak.rested(time.Since(g.drainedAt))
	g.lane.times.ask(askChange, time.Now())
	s.enqueueLocked(g.lane)
	s.limiter.invalidate()
	s.wakeLocked()
}

// Revoke drains a queue that this server does not own any more, or must not work on, and cancels the contexts of all
// its running calls. cause is what context.Cause returns then, unless an earlier Revoke has cancelled the call; nil
// stands for context.Canceled. An error of a cancelled call does not count as a failure.
func (p *Processor) Revoke(id string, cause error) {
	s := p.lock()
	defer s.mu.Unlock()
	g := s.grants[id]
	if g == nil {
		return
	}
	s.drainLocked(g, time.Now())
	g.cancelLocked(cause)
	g.lost = false
}

// Forget ends the grant of a drained queue. It reports whether the queue is not held any more. It returns false for a
// queue that is not draining or that has calls in flight.
func (p *Processor) Forget(id string) bool {
	s := p.lock()
	defer s.mu.Unlock()
	g := s.grants[id]
	if g == nil {
		return true
	}
	if !g.draining || g.inFlight > 0 {
		return false
	}
	g.cancelLocked(nil)
	g.lane.failures.release()
	delete(s.grants, id)
	s.startNextLocked(time.Now())
	if g.lane.sweep == nil {
		s.endStreakLocked()
	}
	return true
}

// Queues returns the state of all queues that the processor holds, ordered by index.
func (p *Processor) Queues() []QueueState {
	s := p.lock()
	defer s.mu.Unlock()
	now := time.Now()
	all := make([]QueueState, 0, len(s.grants))
	for _, g := range s.grants {
		all = append(all, QueueState{
			Queue: g.queue, Draining: g.draining, Lost: g.lost, InFlight: g.inFlight, Drained: g.draining && g.inFlight == 0,
			EmptySince: g.emptySince, Survived: g.survived, Failing: s.failureLocked(g, now),
			Sweep: g.lane.sweep.state(g, &s.outage, s.settings),
		})
	}
	slices.SortFunc(all, func(a, b QueueState) int { return compareQueues(a.Queue, b.Queue) })
	return all
}

func compareQueues(a, b processor.Queue) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
}

// Selections returns a Selection without a limit for each queue that is held and not draining, by the index of the
// queue. Queues with a Run are left out.
func (p *Processor) Selections() []processor.Selection {
	s := p.lock()
	defer s.mu.Unlock()
	var list []processor.Selection
	for _, g := range s.grants {
		if !g.draining && g.queue.Run == nil {
			list = append(list, s.selectionLocked(g))
		}
	}
	slices.SortFunc(list, func(a, b processor.Selection) int { return compareQueues(a.Queue, b.Queue) })
	return list
}

// selectionLocked returns the selection of a queue, without a limit.
func (s *scheduler) selectionLocked(g *grant) processor.Selection {
	return processor.Selection{
		TaskType: s.env.TaskType, OwnSign: s.env.OwnSign, Server: s.env.Server(),
		Parameter: s.settings.Parameter, Queue: g.queue, Total: g.total, Run: g.queue.Run,
	}
}

// Drained returns a channel that receives a value whenever a queue has become drained, so that the caller need not poll
// Queues. It also receives a value when the batches in flight have come down to the number of SetMaxInFlight. Its
// capacity is 1: one value may stand for several queues.
func (p *Processor) Drained() <-chan struct{} { return p.scheduler.signals.drained }

// Emptied returns a channel that receives a value whenever EmptySince of a queue changes from zero, and whenever a
// sweep ends, complete or failed, so that the caller need not poll Queues. Its capacity is 1: one value may stand for
// several queues.
func (p *Processor) Emptied() <-chan struct{} { return p.scheduler.signals.emptied }

// drainLocked stops the selects of a queue and drops its unstarted items (H1).
func (s *scheduler) drainLocked(g *grant, now time.Time) {
	if g.draining {
		return
	}
	g.draining, g.drainedAt = true, now
	if g.drains != nil {
		close(g.drains)
		g.drains = nil
	}
	l := g.lane
	if !l.selectable() {
		s.due.remove(l)
	}
	if l.page != nil {
		skip(&s.stats, l.page.drop())
		s.placeLocked(l, now)
	}
	s.limiter.invalidate()
	s.startNextLocked(now)
	if g.inFlight == 0 {
		notify(s.signals.drained)
	}
}

// grants are the queues that a processor holds, by ID.
type grants map[string]*grant

// totals returns the totals of the queues: one, unless some of them were split.
func (gs grants) totals() map[int64]bool {
	totals := map[int64]bool{}
	for _, g := range gs {
		totals[int64(max(1, g.total))] = true
	}
	return totals
}

// of returns the grant of the queue with an ID, or to which a whole number belongs; nil if there is none.
func (gs grants) of(key string, totals map[int64]bool) *grant {
	if g := gs[key]; g != nil {
		return g
	}
	n, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		return nil
	}
	for total := range totals {
		g := gs[strconv.Itoa(processor.QueueOf(n, int(total)))]
		if g != nil && int64(g.total) == total {
			return g
		}
	}
	return nil
}

// grant is one queue under one epoch: the unit of ownership and of draining. The scheduler's lock guards it.
type grant struct {
	queue      processor.Queue
	total      int
	lane       *lane
	inFlight   int // calls that concern the queue
	draining   bool
	drainedAt  time.Time     // when it began to drain
	drains     chan struct{} // closed when it begins to drain; nil until a batch asks
	lost       bool          // draining, because a call met the loss of the queue
	survived   bool          // worked since its last crash, while Queue.Crashes is not 0
	emptySince time.Time     // when the last select began, if it found nothing; else zero
	cursor     cursorState   // of a Cursored dealer
	work       Work
	streak     queueStreak

	// The context of the calls that concern this queue. The first call creates it. Revoke cancels it.
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// drainsLocked returns a channel that is closed when the queue begins to drain.
func (g *grant) drainsLocked() <-chan struct{} {
	if g.drains == nil {
		g.drains = make(chan struct{})
	}
	return g.drains
}

func (g *grant) contextLocked(parent context.Context) context.Context {
	if g.ctx == nil {
		g.ctx, g.cancel = context.WithCancelCause(parent)
	}
	return g.ctx
}

func (g *grant) cancelLocked(cause error) {
	if g.ctx != nil {
		g.cancel(cause)
		g.ctx, g.cancel = nil, nil
	}
}

// cursorState is what is known about the cursor of a Cursored dealer, besides Queue.Cursor.
type cursorState struct {
	unknown    bool // the cursor must be loaded, because a batch may have moved it
	suspects   int  // how many of the next items are suspects
	batchLimit int  // the largest batch of suspects
}

// moveCursorLocked moves the cursor of the queue to a known position, where some suspects are left.
func (g *grant) moveCursorLocked(cursor string, suspects int) {
	g.queue.Cursor, g.cursor.unknown, g.cursor.suspects = cursor, false, suspects
}

// Work is what the calls of Execute have done for a queue since it was granted.
type Work struct {
	Items int64         // of the batches that have ended
	Time  time.Duration // the sum over these batches
}

// Worked returns the work for a queue. It is zero if the queue is not held.
func (p *Processor) Worked(queueID string) Work {
	s := p.lock()
	defer s.mu.Unlock()
	if g := s.grants[queueID]; g != nil {
		return g.work
	}
	return Work{}
}

// count counts a batch of the queue that has ended.
func (w *Work) count(b *batch) {
	if b.outcome.started() {
		w.Items += int64(b.size())
		w.Time += b.took
	}
}
