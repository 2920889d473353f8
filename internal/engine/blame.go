package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/dutyrota/rota/processor"
)

// failure is what is known when an item has failed, alone or by name. What it means for the item follows from this
// alone.
type failure struct {
	record
	permanent bool // the error is Permanent
	busy      bool // the error is of Busy
	data      bool // the database has refused the data of the item
	began     time.Time
	round     uint64 // when the attempt began; it rises with a success after a failure
	doubted   bool   // when the attempt began, so much had failed that an outage was likely
	sweeps    bool
	inOrder   bool // the item is of a cursor
}

// verdict is what a failure means for its item.
type verdict int

const (
	doubt    verdict = iota // it is no attempt
	attempt                 // it counts as an attempt, unless the error is of Busy
	last                    // it is the last attempt: the item is given up
	passOver                // it is the only attempt of a sweep, which passes the item
)

// judge returns what the failure means for an item that has mostAttempts attempts; 0 stands for any number of attempts.
// A sweep lets an item wait if it failed as the probe of an outage (X5), and passes any other. A cursor passes no
// failed item (X3): passOver then fails the sweep, and the next sweep begins with that item.
func (f failure) judge(mostAttempts int) verdict {
	switch {
	case f.sweeps && (f.inOrder || f.passes()):
		return passOver
	case f.sweeps, f.dead, !f.counts():
		return doubt
	case f.permanent, mostAttempts > 0 && f.attempts+1 >= mostAttempts && !f.busy:
		return last
	}
	return attempt
}

// counts reports whether the failure is an attempt of the item. It is not before the pause of the item is over, because
// attempts count at the pace of the retry policy at most. It is not while nothing else succeeds, because a failure
// while a service is away says nothing about the item (X5).
func (f failure) counts() bool {
	switch {
	case f.permanent:
		return true
	case f.attempts > 0 && f.retryAt.After(f.began):
		return false
	}
	return !f.doubted || f.data || f.last > 0 && f.last < f.round
}

// passes reports whether a sweep passes the item. Otherwise the item waits for the end of an outage. An item that has
// failed before and after a success of another one is poison.
func (f failure) passes() bool {
	return !f.doubted || f.permanent || f.data || f.first > 0 && f.first < f.round
}

// blame finds the items of a failed batch that have failed, and records them. The items are still in flight, so no
// other call uses their records.
func (b *batch) blame() {
	named := namedFailures(b.err, b.size(), b.env.Redact)
	if b.capabilities.Cursored || b.capabilities.atomic {
		named = nil
	}
	if b.result.failed, b.result.named = b.size(), named; named != nil {
		b.result.failed = len(named)
	}
	if !b.capabilities.tracksItems() {
		b.result.pause, b.result.retryAfter = true, b.settings.asked(b.err)
		return
	}
	if err := b.findKeys(); err != nil {
		b.logError("find the keys of failed items", "", err)
		b.result.pause = true
		return
	}
	if named == nil && b.size() == 1 {
		named = []processor.ItemError{{Index: 0, Err: b.err}}
	}
	if named == nil {
		b.suspectAll()
		return
	}
	b.failItems(named)
}

// suspectAll makes the processor execute the items in smaller batches, down to one item. The error does not say which
// of them failed, and a broken item must not cost the attempts of the others.
func (b *batch) suspectAll() {
	after := b.settings.asked(b.err)
	if b.lane.sweep != nil {
		after = 0
	}
	b.result.retryNow = after == 0
	retryAt := b.now.Add(after)
	if b.capabilities.Cursored { // moveCursorLocked counts the suspects
		b.result.retryAt = retryAt
		return
	}
	b.lane.failures.suspect(b, smallerBatch(b.size()), retryAt)
}

// failItems records a failure of each failed item. A sweep makes one attempt only, and keeps its failures in memory.
func (b *batch) failItems(named []processor.ItemError) {
	log := b.lane.failures
	updates := make([]update, 0, len(named))
	for _, f := range named {
		u, verdict := b.failItem(f)
		if !b.page.records[u.key].failedItself() {
			b.result.parked++
		}
		b.result.add(verdict, SweptItem{Key: u.key, Err: f.Err, At: b.now}, u.record)
		switch {
		case b.capabilities.Cursored && verdict == passOver: // the item is executed again
			b.result.pause = true
		case verdict == doubt, verdict == passOver:
			log.note(u.key, u.record)
			b.waitFor(u)
		default:
			updates = append(updates, u)
		}
	}
	if err := log.save(b.bound, updates...); err != nil {
		b.logError("save failed items", updates[0].key, err)
		b.alertUnrecorded(updates, err)
	}
	for i := range updates {
		b.discardFailed(&updates[i])
		b.waitFor(updates[i])
	}
}

// alertUnrecorded sends an alert about failed items that the store has not recorded for half a minute, and that are
// only in memory. A store that is away for longer has the lease expire, and is told of by that.
func (b *batch) alertUnrecorded(updates []update, err error) {
	g := b.grant
	old := func(u update) bool { return time.Since(u.unsavedSince) >= failingFor }
	if b.classify(err) == failed && slices.ContainsFunc(updates, old) {
		b.remind(Alert{Kind: AlertUnrecorded, Queue: g.queue.ID, Text: fmt.Sprintf(
			"failed items of queue %s are not recorded, so another worker would begin to count their attempts again: %v",
			g.queue.ID, err)})
	}
}

// waitFor says when the item that a cursor waits for is selected again. It is the only item of its batch.
func (b *batch) waitFor(u update) {
	if !b.capabilities.Cursored {
		return
	}
	if b.result.retryNow = u.dead && !b.unfinished(u.record); !b.result.retryNow {
		b.result.retryAt = u.retryAt
	}
}

// add counts what a failure means for an item with a new record.
func (r *batchResult) add(v verdict, item SweptItem, now record) {
	switch {
	case v == doubt:
		r.waiting++
	case v == passOver && len(r.passed) < maxFailedItems:
		r.passed = append(r.passed, item)
	case v == last && now.dead:
		r.dead++
	}
}

// failItem returns the new record of an item that failed once more, and what the failure means. It notes when the item
// had failed first.
func (b *batch) failItem(f processor.ItemError) (update, verdict) {
	u := b.updateOf(f.Index)
	b.result.first = max(b.result.first, cmp.Or(u.first, math.MaxUint64))
	most := b.settings.ItemMaxAttempts
	_, busy := processor.RetryOf(f.Err)
	verdict := failure{
		record: u.record, permanent: processor.IsPermanent(f.Err), busy: busy, data: b.env.DataError(f.Err),
		began: b.began, round: b.round, doubted: b.doubted, sweeps: b.lane.sweep != nil, inOrder: b.capabilities.Cursored,
	}.judge(most)
	u.failed(b.rounds.Load(), f.Err)
	switch verdict {
	case passOver:
		u.record = record{dead: true, unsavedSince: b.now}
		return u, verdict
	case doubt:
		if !u.dead {
			u.doubt(&b.call, f.Err)
		}
		return u, verdict
	}
	u.doubtful, u.tries = false, 0
	if !busy {
		u.attempts++
	}
	if verdict == last {
		u.dead = true
		b.logLine(slog.LevelError, "item is dead",
			slog.Any("error", f.Err), slog.String("key", u.key), slog.Int("attempts", u.attempts))
	}
	pause := cmp.Or(b.settings.asked(f.Err), b.settings.pause(u.attempts, b.settings.RetryMax))
	u.retryAt = time.Now().Add(pause)
	return u, verdict
}

// unfinished reports whether a dead item lacks its record or its Discard.
func (b *batch) unfinished(r record) bool {
	return r.unsaved() || b.capabilities.Discarder && !r.discarded
}

// updateOf returns the update of an item of the batch, with its record before the batch.
func (b *batch) updateOf(n int) update {
	u := update{index: n, key: b.keys[n], record: b.page.records[b.keys[n]]}
	if b.order != nil {
		u.orderKey = b.order[b.from+n]
	}
	return u
}

// discardFailed discards an item of a failed batch that has just died. If the store has no record of the death, or if
// Discard fails, a later batch discards the item. A later batch also does if a transaction of the batch is open, or has
// ended only now: it may have committed, and then the item is done and no select returns it (F5). If Discard meets the
// loss of the queue, the next owner does.
func (b *batch) discardFailed(u *update) {
	if !u.dead || !b.capabilities.Discarder || u.unsaved() || b.outcome != failed {
		return
	}
	if ended, err := b.env.Enter(b.ctx, b.grant.queue, false); ended || err != nil {
		return // the next select enters again, and reports the error
	}
	err := b.discard(u)
	if err == nil {
		return
	}
	b.result.discardFailure = err.Error()
	if b.logError("discard item", u.key, err) == cancelled {
		b.outcome = cancelled
	}
}

// finishDeath records a dead item, if the store has no record of it yet, and then discards it.
func (b *batch) finishDeath(u *update) error {
	if u.unsaved() {
		list := []update{*u}
		err := b.lane.failures.save(b.bound, list...)
		if *u = list[0]; err != nil {
			b.alertUnrecorded(list, err)
			b.postpone(u)
			return fmt.Errorf("save failed items: %w", err)
		}
	}
	if !b.capabilities.Discarder {
		return nil
	}
	return b.discard(u)
}

// postpone makes what is missing of a dead item wait: longer each time, as long as an attempt of an item may.
func (b *batch) postpone(u *update) {
	u.tries++
	u.retryAt = time.Now().Add(b.settings.pause(u.tries, b.settings.RetryMax))
	b.lane.failures.note(u.key, u.record)
}

// discard calls Discard for a dead item. The store already has the record of its death, so that a crash behind the
// commit of Discard loses no record. After a crash before it, the next owner finds an item that is dead and still
// selected, and discards it.
func (b *batch) discard(u *update) error {
	ctx := b.bound
	if b.capabilities.Cursored { // a fence must not save the cursor before the item is discarded (X3)
		ctx = b.env.Bind(b.ctx, b.grant.queue, nil)
	}
	err := b.inTime(ctx, func(ctx context.Context) error { return b.items.discard(ctx, b.from+u.index, u.cause) })
	if u.discarded = err == nil; !u.discarded {
		b.alertUndiscarded(u, err)
		b.postpone(u)
		return fmt.Errorf("discard item %s: %w", u.key, err)
	}
	b.lane.failures.note(u.key, u.record)
	return nil
}

// alertUndiscarded sends an alert about dead items that Discard has not taken out of the source.
func (b *batch) alertUndiscarded(u *update, err error) {
	if b.classify(err) == failed {
		b.remind(Alert{Kind: AlertUndiscarded, Queue: b.grant.queue.ID, Text: fmt.Sprintf(
			"Discard fails for dead items of queue %s, so selects return them again: item %s: %v",
			b.grant.queue.ID, u.key, err)})
	}
}
