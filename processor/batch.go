package processor

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// batch is one batch of a page. blame is what its failure means for the items, cursorBatch what its end means for the
// cursor.
//
// It has about 20 methods: the steps of a batch in this file, and one or two in the file of each subject that counts
// the end of a batch (alone, breaker, pace, streak).
type batch struct {
	call
	span
	page *page
	mark mark

	bound    context.Context // the context of Execute
	alone    bool            // of a lane whose items are executed alone
	serial   bool            // the lane gives no other batch until this one ends, because its items are executed alone
	entered  bool            // the batch holds Env.Alone
	recorded bool            // the store has a record that the item has begun
	hookEnd  func(Result)    // the end of Hooks.Execute
	position position
	result   batchResult
}

// position is the position of the cursor after a batch.
type position struct {
	cursor string
	known  bool // cursor is set
	saved  bool // the cursor has moved there
}

// batchResult is what a batch means for its items and its lane.
type batchResult struct {
	failed, dead int           // items; if a call has failed and failed is 0, nothing is known about the items
	named        []itemError   // the failed items, if the error names them
	pause        bool          // the lane pauses
	retryAfter   time.Duration // the length of the pause, if RetryAfter set one
	retryNow     bool          // the items are selected again at once
	retryAt      time.Time     // the item that a cursor waits for backs off until then
	passed       []SweptItem   // of a sweep, the items that it passes, at most maxFailedItems
	waiting      int           // of a sweep, the failed items that wait for the end of an outage
	first        uint64        // the latest record.first of the items that failed; 0 if one of them is new
	recovered    bool          // an item that had failed is done

	discardFailure string // why the last Discard failed; empty if none did
}

// claimLocked takes the next batch of a ready lane.
func (b *batch) claimLocked(ctx context.Context, s *scheduler, l *lane, end int, m mark, now time.Time) {
	l.batches++
	s.inFlight.batches++
	b.lane = l
	b.page, b.mark = l.page, m
	b.span = b.page.take(end)
	b.grants, b.ctx = b.page.grants(b.grants[:0], &b.span)
	if len(b.grants) > 1 {
		b.ctx, b.cancel = context.WithCancelCause(ctx)
	}
	switch {
	case b.page.unstarted() == 0:
		s.settleLocked(l, now)
	case b.capabilities.cursored:
		s.ready.remove(l) // until this batch ends (X3)
	case l.alone:
		b.serial = true
		s.ready.remove(l)
	}
	if b.alone = l.alone; b.alone && m == ordinary {
		b.mark = single
	}
}

// perform calls Execute, unless the mark says otherwise.
func (b *batch) perform() error {
	if err := b.bind(); err != nil {
		return err
	}
	switch b.mark {
	case discardDue:
		return b.causeOfDiscard()
	case passed:
		return cursorBatch{b}.recordDead()
	}
	if b.alone {
		if err := b.beginAlone(); err != nil {
			return err
		}
	}
	ctx := b.bound
	if hook := b.env.Hooks.Execute; hook != nil {
		ctx, b.hookEnd = hook(ctx, Batch{
			TaskType: b.env.TaskType, OwnSign: b.env.OwnSign, Queues: queuesOf(b.grants), Items: b.size(),
		})
		b.logCtx = ctx
	}
	if b.settings.BatchTimeout > 0 {
		return b.inTime(ctx, func(ctx context.Context) error { return b.items.execute(ctx, b.from, b.to) })
	}
	return b.items.execute(ctx, b.from, b.to) // without a closure, which would be an allocation
}

// bind makes the context of Execute, unless the page has it.
func (b *batch) bind() error {
	b.bound = b.ctx
	switch {
	case b.capabilities.cursored:
		if err := (cursorBatch{b}).findPosition(); err != nil {
			return err
		}
		cursor := b.position.cursor
		b.bound = b.env.Bind(b.ctx, queuesOf(b.grants), &cursor)
	case len(b.grants) > 1:
		b.bound = b.env.Bind(b.ctx, queuesOf(b.grants), nil)
	}
	return nil
}

// conclude finds the outcome of the batch and records what failed. Most batches return at the first condition.
func (b *batch) conclude() {
	b.now = time.Now()
	b.took = b.now.Sub(b.began)
	if b.err == nil && b.mark == ordinary && !b.capabilities.cursored && b.hookEnd == nil && b.lane.sweep == nil {
		return
	}
	if b.err != nil {
		b.outcome = b.classify(b.err)
		b.logBatchFailure()
	}
	if b.outcome == failed && b.capabilities.cursored && b.lane.sweep != nil {
		cursorBatch{b}.checkCommitted()
	}
	executeErr := b.err
	b.recordResult()
	b.forgetBegin()
	if b.hookEnd != nil {
		b.hookEnd(Result{Err: executeErr, Outcome: b.outcome.public(), Failed: b.result.failed, Dead: b.result.dead, Took: b.took})
	}
	b.now = time.Now()
	if b.result.discardFailure != "" { // it does not change what the error says about an outage (X5)
		b.err = fmt.Errorf("%w; %s", b.err, b.result.discardFailure)
	}
	if b.err != nil {
		b.err = fmt.Errorf("execute %s of queue %s: %w", countItems(b.size()), b.queueIDs(), b.err)
	}
}

// recordResult records failed items, or removes their records, and moves the cursor.
func (b *batch) recordResult() {
	switch {
	case b.result.pause: // the cursor could not be loaded, so nothing is known about the items
	case b.outcome == failed && b.mark == passed && b.lane.sweep == nil:
		b.result.pause, b.result.failed = true, 1
	case b.outcome == failed:
		blame{b}.run()
	case b.outcome == done && b.capabilities.cursored:
		cursorBatch{b}.saveCursor()
	}
	if b.outcome == done && b.mark > ordinary {
		b.deleteRecords()
	}
	if b.outcome == done && b.fingerprints != nil {
		b.lane.sweep.trail.add(b.fingerprints[b.from:b.to])
	}
}

// logBatchFailure logs the error of the batch.
func (b *batch) logBatchFailure() {
	b.logFailure("execute", slog.Int("items", b.size()))
}

// itemsDone returns how many items of the batch are done.
func (b *batch) itemsDone() int64 {
	switch {
	case b.outcome == done && b.mark >= ordinary:
		return int64(b.size())
	case b.outcome == failed && b.result.failed > 0:
		return int64(b.size() - b.result.failed)
	}
	return 0
}

func countItems(n int) string { return count(n, "item", "items") }

// count returns a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// finishLocked updates the cursor and the sweep, and lets the lane rest if it has waited for this batch.
func (b *batch) finishLocked(s *scheduler) {
	l, r := b.lane, &b.result
	b.observeLocked(s)
	l.batches--
	s.endBatchLocked()
	s.stats.countBatch(b)
	b.countWorkLocked()
	b.measurePaceLocked(s)
	b.countInStreakLocked(s)
	if b.capabilities.cursored {
		cursorBatch{b}.finishInOrderLocked(s)
	}
	b.continueAloneLocked(s)
	b.countPageLocked(s)
	if l.sweep != nil {
		l.sweep.countBatchLocked(s, b)
	}
	if r.pause || b.outcome == lost {
		l.rest.pause, l.rest.retryAfter = true, max(l.rest.retryAfter, r.retryAfter)
	}
	l.rest.retryNow = l.rest.retryNow || r.retryNow
	if r.retryAt.After(l.rest.retryAt) {
		l.rest.retryAt = r.retryAt
	}
	if r.retryNow && l.foundNothing { // in NOTSLEEP the lane may rest already
		l.foundNothing = false
		if l.inDueLanes() {
			s.due.remove(l)
			s.restLocked(l, b.now)
		}
	}
	s.settleLocked(l, b.now)
}

func (b *batch) reset() {
	if b.entered {
		<-b.env.Alone
	}
	*b = batch{call: b.call}
}

// grantOf returns the queue of the item at index i of the batch.
func (b *batch) grantOf(i int) *grant { return b.pageItems.grantOf(b.from + i) }
