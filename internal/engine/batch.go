package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/dutyrota/rota/processor"
)

// batch is one batch of a page. The methods in this file are its steps, in order. blame.go has the steps for the items
// that have failed.
type batch struct {
	call
	span
	page *page
	mark mark

	bound     context.Context          // the context of Execute
	serial    bool                     // the lane gives no other batch until this one ends
	begun     bool                     // nothing has kept it from doing what the mark says
	frees     bool                     // an item of the page, or behind it, may have waited for the end of the batch
	isolation isolation                // isolation.go
	hookEnds  []func(processor.Result) // the ends of Env.Hooks
	position  position
	result    batchResult
}

// position is the position of the cursor after a batch.
type position struct {
	cursor string
	known  bool // cursor is set
	saved  bool // the cursor has moved there
}

// batchResult is what a batch means for its items and its lane.
type batchResult struct {
	repetition
	done         int                   // items
	failed, dead int                   // items; if a call has failed and failed is 0, nothing is known about the items
	parked       int                   // items that have failed alone or by name for the first time
	named        []processor.ItemError // the failed items, if the error names them
	passed       []SweptItem           // of a sweep, the items that it passes, at most maxFailedItems
	waiting      int                   // failed items whose failure is no attempt; in a sweep they await the end
	first        uint64                // the latest record.first of the failed items; 0 if none failed alone or by name
	recovered    bool                  // an item that had failed is done

	discardFailure string // why the last Discard failed; empty if none did
}

// claimLocked takes the next batch of a ready lane.
func (b *batch) claimLocked(s *scheduler, l *lane, size int, m mark, now time.Time) {
	l.batches++
	s.inFlight.batches++
	b.lane, b.page, b.mark, b.serial = l, l.page, m, l.serial
	b.span = b.page.take(size)
	if m >= ordinary {
		l.rate.take(now, b.size())
	}
	b.grant, b.ctx = l.grant, b.page.ctx
	for _, t := range b.stages {
		if t.take != nil {
			t.take(b, s)
		}
	}
	switch {
	case b.page.unstarted() == 0:
		s.placeLocked(l, now)
	case b.serial, !b.page.startable(), l.full(s.settings):
		s.ready.remove(l)
	}
}

// perform calls Execute, unless the mark says otherwise.
func (b *batch) perform() error {
	if err := b.bind(); err != nil {
		return err
	}
	if b.mark < ordinary {
		b.begun = true
		return b.performRecorded()
	}
	for _, t := range b.stages {
		if t.begin == nil {
			continue
		}
		if err := t.begin(b); err != nil {
			return err
		}
	}
	b.begun = true
	ctx, err := b.callHooks()
	if err != nil {
		return err
	}
	if b.settings.BatchTimeout > 0 {
		return b.inTime(ctx, func(ctx context.Context) error { return b.items.execute(ctx, b.from, b.to) })
	}
	return b.items.execute(ctx, b.from, b.to) // without a closure, which would be an allocation
}

// callHooks returns the context of Execute that the hooks have made.
func (b *batch) callHooks() (context.Context, error) {
	ctx := b.bound
	for _, hooks := range b.env.Hooks {
		if hooks.Execute == nil {
			continue
		}
		parents, err := b.items.traceParents(b.from, b.to)
		if err != nil {
			return nil, err
		}
		var end func(processor.Result)
		ctx, end = hooks.Execute(ctx, processor.Batch{
			TaskType: b.env.TaskType, OwnSign: b.env.OwnSign, Queue: b.grant.queue, Items: b.size(),
			TraceParents: parents,
		})
		if b.logCtx = ctx; end != nil {
			b.hookEnds = append(b.hookEnds, end)
		}
	}
	return ctx, nil
}

// bind makes the context of Execute, unless the page has it, and finds the position of the cursor after the batch.
func (b *batch) bind() (err error) {
	b.bound = b.ctx
	if !b.capabilities.Cursored {
		return nil
	}
	if b.position.cursor, err = b.items.place(b.to - 1); err != nil {
		return err
	}
	b.position.known = true
	cursor := b.position.cursor
	b.bound = b.env.Bind(b.ctx, b.grant.queue, &cursor)
	return nil
}

// findKeys finds the keys of the items.
func (b *batch) findKeys() (err error) {
	b.keys, err = b.items.keys(b.keys[:0], b.from, b.to)
	return err
}

// performRecorded returns the outcome of a dead item. It is not executed, but its record or its Discard may be missing.
// The cursor passes a dead item when the store has its record. The cursor of a sweep passes no failed item (X3).
func (b *batch) performRecorded() error {
	err := b.findKeys()
	if err != nil {
		return err
	}
	u := b.updateOf(0)
	switch {
	case b.lane.sweep != nil:
		return u.cause
	case b.mark == unfinished:
		err = b.finishDeath(&u)
		b.result.failed = 1
		b.waitFor(u)
	}
	return err
}

// conclude finds the outcome of the batch and records what failed. Most batches return at the first condition.
func (b *batch) conclude() {
	b.now = time.Now()
	b.took = b.now.Sub(b.began)
	if b.err == nil && b.mark == ordinary && !b.capabilities.Cursored && len(b.hookEnds) == 0 && b.lane.sweep == nil {
		b.result.done = b.size()
		return
	}
	if b.err != nil {
		b.outcome = b.classify(b.err)
		b.logFailure("execute", b.outcome, b.err, slog.Int("items", b.size()))
	}
	if b.outcome == failed && b.capabilities.Cursored && b.lane.sweep != nil {
		b.checkCommitted()
	}
	executeErr := b.err
	b.recordResult()
	for _, t := range b.stages {
		if t.settle != nil {
			t.settle(b)
		}
	}
	for _, end := range slices.Backward(b.hookEnds) {
		end(processor.Result{
			Err: executeErr, Outcome: b.outcome.public(), Failed: b.result.failed, Dead: b.result.dead, Took: b.took,
		})
	}
	b.now = time.Now()
	if b.result.discardFailure != "" { // it does not change what the error says about an outage (X5)
		b.err = fmt.Errorf("%w; %s", b.err, b.result.discardFailure)
	}
	if b.err != nil {
		b.err = fmt.Errorf("execute %s of queue %s: %w", countItems(b.size()), b.queueID(), b.err)
	}
}

func countItems(n int) string { return count(n, "item", "items") }

// count returns a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// checkCommitted finds out whether a failed batch of a sweep is done after all. If the cursor has reached the position
// of the batch, its commit succeeded and only the reply was lost. The cursor is loaded at once, because an item that
// fails alone ends the sweep. If the position of the batch is that of the item before it, the cursor proves nothing,
// and the batch has failed.
func (b *batch) checkCommitted() {
	queue := b.grant.queue
	if b.env.Cursors == nil || !b.position.known || b.position.cursor == queue.Cursor {
		return
	}
	cursor := ""
	_, err := b.env.Enter(b.ctx, queue, false) // the COMMIT may still be under way (F5)
	if err == nil {
		cursor, err = b.env.Cursors.Load(b.ctx, queue)
	}
	switch {
	case err != nil: // the sweep fails, and the next one begins at the cursor
		b.result.pause = true
		b.logError("load cursor", "", err)
	case cursor == b.position.cursor:
		b.env.Logger.LogAttrs(b.logCtx, slog.LevelInfo, "the failed batch was committed", slog.String("queue", b.queueID()))
		b.outcome, b.err = done, nil
	}
}

// recordResult records failed items, or removes their records, and moves the cursor. It counts the items that are done.
func (b *batch) recordResult() {
	switch {
	case b.result.pause: // the cursor could not be loaded, so nothing is known about the items
	case b.outcome == failed && b.mark < ordinary && b.lane.sweep == nil:
		b.result.pause = b.result.failed == 0 // the record could not be saved
		b.result.failed = 1
	case b.outcome == failed:
		b.blame()
	case b.outcome == done && b.capabilities.Cursored:
		b.saveCursor()
	}
	switch {
	case b.outcome == done && b.mark >= ordinary:
		b.result.done = b.size()
		b.deleteRecords()
	case b.outcome == failed && b.result.failed > 0:
		b.result.done = b.size() - b.result.failed
		if b.result.named != nil && !b.result.pause {
			b.deleteRecords()
		}
	}
}

// saveCursor moves the cursor to the end of a batch that is done. If this fails, the batch has failed, but none of its
// items.
func (b *batch) saveCursor() {
	if b.env.Cursors != nil {
		if err := b.env.Cursors.Save(b.bound, b.grant.queue, b.position.cursor); err != nil {
			b.err = fmt.Errorf("save cursor: %w", err)
			b.outcome = b.classify(b.err)
			b.result.pause, b.result.failed = true, b.size()
			b.logFailure("execute", b.outcome, b.err, slog.Int("items", b.size()))
			return
		}
	}
	b.position.saved = true
}

// deleteRecords removes the records of the items of a batch that had failed and are done now.
func (b *batch) deleteRecords() {
	if b.mark == ordinary {
		return
	}
	if err := b.findKeys(); err != nil {
		b.logError("find the keys of items", "", err)
		return
	}
	if err := b.lane.failures.remove(b); err != nil {
		b.logError("delete failed item", b.keys[0], err)
	}
}

// finishLocked updates the cursor and the sweep, and lets the lane rest if it has waited for this batch.
func (b *batch) finishLocked(s *scheduler) {
	l := b.lane
	s.observeLocked(b.evidence(s.rounds.Load()), l)
	l.batches--
	if s.inFlight.batches--; s.inFlight.batches == s.inFlight.most {
		notify(s.signals.drained)
	}
	countBatch(&s.stats, b)
	b.grant.work.count(b)
	if b.mark >= ordinary && (b.outcome == done || b.outcome == failed) {
		b.measurePaceLocked(s)
	}
	if b.serial || b.order != nil || s.settings.inFlightOf(l.limits) > 0 {
		b.continuePageLocked(s)
	}
	if whole := b.outcome == done || b.outcome == failed; b.page.endBatch(whole && b.begun) {
		s.surviveLocked(l)
	}
	for _, t := range b.stages {
		if t.end != nil {
			t.end(b, s)
		}
	}
	l.rest.observe(b.result.repetition, b.outcome == lost)
	if b.outcome != done || b.frees { // in NOTSLEEP the lane may rest already, and knows nothing of a retry
		if l.sweep != nil {
			l.sweep.idles = false
		}
		l.times.ask(askMore, b.now)
		s.due.update(l)
	}
	s.placeLocked(l, b.now)
}

// evidence returns what the batch says about the service that the dealer calls. round is setup.rounds.
func (b *batch) evidence(round uint64) evidence {
	e := evidence{began: b.began, now: b.now, took: b.took, success: b.result.done > 0}
	e.recovered = b.result.recovered && b.mark >= ordinary
	if b.outcome != failed {
		return e
	}
	e.failed, e.err, e.first, e.failedItems = true, b.err, b.result.first, b.failedItems
	e.wide = !b.capabilities.tracksItems()
	e.inconclusive = b.mark < ordinary || b.result.retryNow || b.env.blames(b.err)
	e.known = b.result.first > 0 && b.result.first < round
	e.expected = b.lane.sweep != nil && b.lane.sweep.expects(b)
	e.probe, e.timeout = b.quota > 0, b.settings.BatchTimeout
	if b.capabilities.Keyed && !b.capabilities.Cursored && !b.result.pause && !e.inconclusive && !e.known {
		for _, key := range b.keys[:min(len(b.keys), failuresToOpen)] { // more of them would prove nothing more
			e.items = append(e.items, b.grant.queue.ID+"\x00"+key)
		}
	}
	return e
}

// continuePageLocked makes the rest of the page ready, or drops it, so that it is selected again: if nothing may start,
// if the batch could not begin, or if the cursor has not moved.
func (b *batch) continuePageLocked(s *scheduler) {
	goesOn := !s.asleep && !s.stopping && b.begun
	if b.capabilities.Cursored {
		goesOn = b.moveCursorLocked() && goesOn
	} else { // the lane may not have been ready when the breaker opened
		goesOn = goesOn && (!s.outage.open() || b.quota > 0)
	}
	skip(&s.stats, b.page.handout.end(b))
	if !goesOn {
		skip(&s.stats, b.page.drop())
		if next := b.lane.page; next != nil && next != b.page { // in NOTSLEEP
			skip(&s.stats, next.drop())
		}
	}
	s.offerLocked(b.lane)
}

// itemDone reports whether an item of the batch is done, as far as the error of the batch says.
func (b *batch) itemDone(n int) bool {
	switch {
	case b.mark < ordinary:
		return false
	case b.outcome == failed && b.result.named != nil:
		return !slices.ContainsFunc(b.result.named, func(e processor.ItemError) bool { return e.Index == n })
	}
	return b.outcome == done
}

// moveCursorLocked moves the cursor after a success, and reports whether it did. After any other outcome, no item may
// be executed before all items ahead of it are done (X3): the items are selected again from the cursor.
func (b *batch) moveCursorLocked() (moved bool) {
	g, n := b.grant, b.size()
	if b.outcome == done && b.position.saved {
		g.moveCursorLocked(b.position.cursor, max(0, g.cursor.suspects-n))
		return true
	}
	g.cursor.unknown = b.outcome != failed || b.lane.sweep == nil || b.result.pause // else it was just loaded
	if b.outcome == failed && n > 1 && !b.result.pause {
		g.cursor.suspects, g.cursor.batchLimit = n, smallerBatch(n)
	}
	return false
}

func (b *batch) reset() { *b = batch{call: b.call} }
