package processor

import (
	"cmp"
	"fmt"
	"log/slog"
)

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

// cursorBatch is a batch of a Cursored dealer: what its end means for the cursor.
type cursorBatch struct{ *batch }

// findPosition finds the position of the cursor after the batch.
func (b cursorBatch) findPosition() (err error) {
	b.position.cursor, err = b.items.cursor(b.to - 1)
	b.position.known = err == nil
	return err
}

// recordDead ensures that the dead item of the batch is in the store, before the cursor passes it. The cursor of a sweep
// passes no failed item (X3).
func (b cursorBatch) recordDead() (err error) {
	if b.keys, err = b.items.keys(b.keys[:0], b.from, b.to); err != nil {
		return err
	}
	if b.lane.sweep != nil {
		r, _, err := b.lane.failures.record(&b.call, b.grants[0], b.keys[0])
		return cmp.Or(err, r.cause, errRecordChanged)
	}
	return b.lane.failures.saveDead(b.batch, b.grants[0], b.keys[0])
}

// checkCommitted finds out whether a failed batch of a sweep is done after all. If the cursor has reached the position
// of the batch, its commit succeeded and only the reply was lost. The cursor is loaded at once, because an item that
// fails alone ends the sweep. If the position of the batch is that of the item before it, the cursor proves nothing,
// and the batch has failed.
func (b cursorBatch) checkCommitted() {
	queue := b.grants[0].queue
	if b.env.Cursors == nil || !b.position.known || b.position.cursor == queue.Cursor {
		return
	}
	cursor, err := b.env.Cursors.Load(b.ctx, queue)
	switch {
	case err != nil: // the sweep fails, and the next one begins at the cursor
		b.result.pause = true
		b.logError("load cursor", "", err)
	case cursor == b.position.cursor:
		b.env.Logger.LogAttrs(b.logCtx, slog.LevelInfo, "the failed batch was committed", slog.String("queue", b.queueIDs()))
		b.outcome, b.err = done, nil
	}
}

// saveCursor moves the cursor to the end of a batch that is done. If this fails, the batch has failed, but none of its
// items.
func (b cursorBatch) saveCursor() {
	if b.env.Cursors != nil {
		if err := b.env.Cursors.Save(b.bound, b.grants[0].queue, b.position.cursor); err != nil {
			b.err = fmt.Errorf("save cursor: %w", err)
			b.outcome = b.classify(b.err)
			b.result.pause, b.result.failed = true, b.size()
			b.logBatchFailure()
			return
		}
	}
	b.position.saved = true
}

// finishInOrderLocked continues the page of a cursored lane after a success. After any other outcome it drops the rest
// of the page, which is selected again from the cursor: no item may be executed before all items ahead of it are done
// (X3).
func (b cursorBatch) finishInOrderLocked(s *scheduler) {
	g, n := b.grants[0], b.size()
	if b.outcome == done && b.position.saved {
		b.continuePageLocked(s)
		return
	}
	s.stats.skip(b.page.drop())
	g.cursor.unknown = b.outcome != failed || b.lane.sweep == nil // else checkCommitted has just loaded it
	if b.outcome == failed && n > 1 && !b.result.pause {
		g.cursor.suspects, g.cursor.batchLimit = n, smallerBatch(n)
	}
}

// continuePageLocked moves the cursor and makes the rest of the page ready.
func (b cursorBatch) continuePageLocked(s *scheduler) {
	g := b.grants[0]
	g.moveCursorLocked(b.position.cursor, max(0, g.cursor.suspects-b.size()))
	if s.asleep || s.stopping {
		s.stats.skip(b.page.drop())
	}
	if b.page.unstarted() > 0 {
		s.ready.add(b.lane)
	}
}
