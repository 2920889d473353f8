package processor

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"
)

// blame finds the items of a failed batch that have failed, and records them. Its executor calls it before the batch is
// finished. The items are still in flight, so no other call uses their records.
type blame struct{ *batch }

func (b blame) run() {
	named := namedFailures(b.err, b.size())
	if b.capabilities.cursored {
		named = nil
	}
	if b.result.failed, b.result.named = b.size(), named; named != nil {
		b.result.failed = len(named)
	}
	if !b.capabilities.tracksItems() {
		b.result.pause, b.result.retryAfter = true, retryAfter(b.err)
		return
	}
	var err error
	if b.keys, err = b.items.keys(b.keys[:0], b.from, b.to); err != nil {
		b.logError("find the keys of failed items", "", err)
		b.result.pause = true
		return
	}
	switch {
	case named != nil:
		b.failItems(named)
	case b.size() == 1:
		b.failItems([]itemError{{0, b.err}})
	default:
		b.suspectAll()
	}
}

// suspectAll makes the processor execute the items in smaller batches, down to one item. The error does not say which
// of them failed, and a broken item must not cost the attempts of the others.
func (b blame) suspectAll() {
	after := retryAfter(b.err)
	if b.lane.sweep != nil {
		after = 0
	}
	b.result.retryNow = after == 0
	retryAt := b.now.Add(after)
	if b.capabilities.cursored { // finishInOrderLocked counts the suspects
		b.result.retryAt = retryAt
		return
	}
	b.lane.failures.suspect(b.batch, smallerBatch(b.size()), retryAt)
}

// failItems counts an attempt of each failed item. A sweep has only one attempt.
func (b blame) failItems(named []itemError) {
	if b.lane.sweep != nil {
		b.passInSweep(named)
		return
	}
	stored, err := b.lane.failures.findAll(&b.call, len(named), func(i int) (*grant, string) {
		return b.grantOf(named[i].index), b.keys[named[i].index]
	})
	if err != nil {
		b.logError("count the attempts of failed items", "", err)
		b.result.pause = true // the items are selected again, and no attempt is forgotten
		return
	}
	updates := make([]update, 0, len(named))
	for _, f := range named {
		u, counts := b.countAttempt(f, stored)
		if b.outcome != failed {
			return // Discard met the loss of the queue, so the new owner records the failures
		}
		if !counts {
			b.lane.failures.doubt(u)
			if b.capabilities.cursored {
				b.result.retryAt = u.retryAt
			}
			continue
		}
		updates = append(updates, u)
		if u.dead {
			b.result.dead++
		}
	}
	if len(updates) == 0 {
		return
	}
	for _, g := range b.grants {
		if err := b.lane.failures.save(b.bound, g, updates); err != nil {
			b.logError("save failed items", updates[0].key, err)
		}
	}
	if b.capabilities.cursored && updates[0].dead {
		b.result.retryNow = true
	} else if b.capabilities.cursored {
		b.result.retryAt = updates[0].retryAt
	}
}

// countAttempt returns the new record of an item that failed once more, and whether the failure counts as an attempt.
func (b blame) countAttempt(f itemError, stored map[string]record) (u update, counts bool) {
	u = update{grant: b.grantOf(f.index), key: b.keys[f.index]}
	var ok bool
	if u.record, ok = b.lane.failures.recall(u.grant, u.key); !ok {
		u.record = stored[u.key]
	}
	failure := b.failure(u.record, f.err)
	b.noteFirst(failure)
	u.failed(b.rounds.Load(), f.err)
	switch {
	case u.dead: // it has attempts enough
		return u, false
	case !failure.counts():
		u.doubt(&b.call, f.err)
		return u, false
	}
	u.doubtful, u.tries = false, 0
	if !u.discardDue {
		u.attempts++
	}
	most := b.settings.ItemMaxAttempts
	if u.discardDue || isPermanent(f.err) || most > 0 && u.attempts >= most {
		u.dead = b.discard(f)
		u.discardDue = !u.dead
		if u.discardDue {
			u.attempts = max(u.attempts, most) // so that the next owner discards the item too
		}
	}
	if u.dead {
		b.logLine(slog.LevelError, "item is dead", slog.Any("error", f.err), slog.String("key", u.key), slog.Int("attempts", u.attempts))
	}
	u.retryAt = time.Now().Add(b.settings.itemPause(u.attempts, f.err))
	return u, true
}

// failure returns what is known about the failure of an item with a record.
func (b blame) failure(r record, err error) failure {
	return failure{
		record: r, permanent: isPermanent(err), data: b.env.DataError(err), began: b.began, round: b.round, doubted: b.doubted,
	}
}

// noteFirst notes when the failed items of the batch had failed first.
func (b blame) noteFirst(f failure) {
	if f.first == 0 {
		f.first = math.MaxUint64
	}
	b.result.first = max(b.result.first, f.first)
}

// discard calls Discard, and reports whether it succeeded.
func (b blame) discard(f itemError) bool {
	if !b.capabilities.discarder {
		return true
	}
	ctx := b.bound
	if b.capabilities.cursored { // a fence must not save the cursor before the death is recorded (X3)
		ctx = b.env.Bind(b.ctx, queuesOf(b.grants), nil)
	}
	err := b.inTime(ctx, func(ctx context.Context) error { return b.items.discard(ctx, b.from+f.index, f.err) })
	if err == nil {
		return true
	}
	b.result.discardFailure = fmt.Sprintf("discard item %s: %s", b.keys[f.index], err)
	if b.logError("discard item", b.keys[f.index], err) == cancelled {
		b.outcome = cancelled
	}
	return false
}

// passInSweep records the failed items of a sweep, so that it does not execute them again. The probes of an outage wait
// instead (X5). A cursor passes no failed item (X3): the sweep fails, and the next sweep begins with that item.
func (b blame) passInSweep(named []itemError) {
	g := b.grants[0]
	b.result.pause = b.capabilities.cursored
	for _, f := range named {
		r, _ := b.lane.failures.recall(g, b.keys[f.index])
		failure := b.failure(r, f.err)
		b.noteFirst(failure)
		if !b.capabilities.cursored && !failure.passes() {
			r.failed(b.rounds.Load(), f.err)
			r.doubt(&b.call, f.err)
			b.lane.failures.put(g, b.keys[f.index], r)
			b.result.waiting++
			continue
		}
		if len(b.result.passed) < maxFailedItems {
			b.result.passed = append(b.result.passed, SweptItem{Key: b.keys[f.index], Err: f.err, At: b.now})
		}
		if !b.capabilities.cursored {
			b.lane.failures.put(g, b.keys[f.index], record{dead: true})
		}
	}
}
