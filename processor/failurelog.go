package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// failureLog keeps the failed items of a lane, in memory and in the ItemStore. Executors use it without the scheduler's
// lock, and never while they hold that lock.
type failureLog struct {
	store ItemStore  // nil keeps them in memory only
	gate  *gate      // keeps Load apart from Save and Delete
	mu    sync.Mutex // guards the failures of the lane's grants; never held during a call of the store
}

// errRecordChanged ends a batch whose failed item has another record now, because an operator changed it.
var errRecordChanged = errors.New("the record of the failed item has changed")

func newFailureLog(store ItemStore) *failureLog { return &failureLog{store: store, gate: newGate()} }

// update is the new record of a failed item.
type update struct {
	grant *grant
	key   string
	record
}

// load replaces the failed items of a queue by those of the store.
func (l *failureLog) load(c *selectCall, g *grant, version uint64, discardDue func(FailedItem) bool) error {
	l.gate.enterAlone()
	defer l.gate.leaveAlone()
	list, err := l.store.Load(c.ctx, g.queue)
	if err == nil {
		err = c.judgeStarted(g, list)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g.failures.replaceLocked(list, time.Now(), discardDue)
	g.failures.version = version
	return nil
}

// record returns the record of an item.
func (l *failureLog) record(g *grant, key string) (record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := g.failures.records[key]
	return r, ok
}

// put replaces the record of an item in memory.
func (l *failureLog) put(g *grant, key string, r record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.failures.putLocked(key, r)
}

// suspect records all items of a failed batch as suspects, in memory.
func (l *failureLog) suspect(b *batch, batchLimit int, retryAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, key := range b.keys {
		b.grantOf(i).failures.suspectLocked(key, batchLimit, retryAt)
	}
	for _, g := range b.grants {
		g.failures.tidyLocked(b.now)
	}
}

// save records the updates of one queue. If the store fails, save records them in memory only and returns the error.
func (l *failureLog) save(ctx context.Context, g *grant, updates []update) error {
	l.gate.enter()
	defer l.gate.leave()
	now, items := time.Now(), []FailedItem(nil)
	for _, u := range updates {
		if u.grant == g {
			items = append(items, u.item(u.key, now))
		}
	}
	if len(items) == 0 {
		return nil
	}
	err := l.write(ctx, g, items)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range updates {
		if u.grant == g {
			u.stored, u.saved = true, err == nil
			g.failures.putLocked(u.key, u.record)
		}
	}
	return err
}

// saveDead ensures that the record of a dead item is in the store, before a cursor passes the item for good. It returns
// errRecordChanged if the item is not dead any more.
func (l *failureLog) saveDead(ctx context.Context, g *grant, key string, now time.Time) error {
	l.gate.enter()
	defer l.gate.leave()
	r, ok := l.record(g, key)
	switch {
	case !ok || !r.dead:
		return errRecordChanged
	case r.saved:
		return nil
	}
	if err := l.write(ctx, g, []FailedItem{r.item(key, now)}); err != nil {
		return fmt.Errorf("save failed items: %w", err)
	}
	r.saved = true
	l.put(g, key, r)
	return nil
}

func (l *failureLog) write(ctx context.Context, g *grant, items []FailedItem) error {
	if l.store == nil {
		return nil
	}
	return l.store.Save(ctx, g.queue, items)
}

// remove removes the records of a batch that has succeeded: of its suspects, or of its single failed item.
func (l *failureLog) remove(b *batch) error {
	l.gate.enter()
	defer l.gate.leave()
	if !l.removeFromMemory(b) || l.store == nil {
		return nil
	}
	return l.store.Delete(b.bound, b.grantOf(0).queue, b.keys)
}

// removeFromMemory reports whether the store has a record. This is only possible for a batch of one item.
func (l *failureLog) removeFromMemory(b *batch) (stored bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, key := range b.keys {
		f := &b.grantOf(i).failures
		stored = stored || f.records[key].stored
		f.removeLocked(key)
	}
	return stored
}

// deleteRecords removes the records of a batch that has succeeded.
func (b *batch) deleteRecords() {
	var err error
	if b.keys, err = b.items.keys(b.keys[:0], b.from, b.to); err != nil {
		b.logError("find the keys of items", "", err)
		return
	}
	if err := b.lane.failures.remove(b); err != nil {
		b.logError("delete failed item", b.keys[0], err)
	}
}

// causeOfDiscard returns the recorded error of an item whose Discard is due. The batch then fails with it again.
func (b *batch) causeOfDiscard() error {
	var err error
	if b.keys, err = b.items.keys(b.keys[:0], b.from, b.to); err != nil {
		return err
	}
	r, ok := b.lane.failures.record(b.grants[0], b.keys[0])
	if !ok || !r.discardDue {
		return errRecordChanged
	}
	return r.cause
}
