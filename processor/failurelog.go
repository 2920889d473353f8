package processor

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// failureLog keeps the failed items of a queue, in memory and in the ItemStore. Executors use it without the lock of
// the scheduler, and never while they hold that lock.
type failureLog struct {
	store ItemStore // nil keeps them in memory only
	gate  *semaphore.Weighted
	grant *grant
	mu    sync.Mutex // guards the failures of the grant; never held during a call of the store
}

// errRecordChanged ends a batch whose failed item has another record now, because an operator changed it.
var errRecordChanged = errors.New("the record of the failed item has changed")

// exclusive is what Load takes of the gate, so that it never runs beside Find, Save or Delete, which take 1 each. The
// gate is no sync.RWMutex, because a goroutine that waits for a mutex is not durably blocked for testing/synctest.
const exclusive = math.MaxInt64

func newFailureLog(store ItemStore) *failureLog {
	return &failureLog{store: store, gate: semaphore.NewWeighted(exclusive)}
}

// enter waits for the gate, even if the call is cancelled: the calls that are inside are cancelled too, and leave soon.
// The caller calls leave.
func (l *failureLog) enter(n int64) (leave func()) {
	_ = l.gate.Acquire(context.Background(), n)
	return func() { l.gate.Release(n) }
}

// update is the new record of a failed item.
type update struct {
	index    int // of the item in its batch
	key      string
	orderKey string // of the item of an Ordered dealer
	record
	started bool // the item begins alone (S14)
}

// startedRoom is how many records a load asks for even without room for them, so that it gets all Started records. Each
// crash of an owner leaves at most one.
const startedRoom = 100

// load replaces the failed items of a queue by the failed items of the store, once per grant and after each Reload.
//
// Memory holds the failures of a sweep. For a sweep, load therefore only finds out, once, whether the store has records
// of the queue. If it has, each select looks up the records of its items.
func (l *failureLog) load(c *selectCall) error {
	g := l.grant
	version := c.reloads.Load() + 1
	if l.store == nil || !c.capabilities.tracksItems() || g.failures.version == version ||
		c.lane.sweep != nil && g.failures.version > 0 {
		return nil
	}
	c.lane.pass, c.lane.held, c.lane.sourceSize = pass{}, nil, unknownSize
	defer l.enter(exclusive)()
	most, mostDead := g.failures.room()
	if c.lane.sweep != nil {
		most, mostDead = 0, 0
	}
	stored, err := l.store.Load(c.ctx, g.queue, int(max(most, startedRoom)), int(max(mostDead, 0)))
	if err == nil {
		err = l.declareDead(c, stored.Items)
	}
	failedBefore := map[string]record{}
	others := stored.More || len(stored.Items) > 0
	if err == nil && c.lane.sweep != nil && others && len(g.queue.Run.FailedBefore) > 0 {
		err = l.lookUp(&c.call, g.queue.Run.FailedBefore, failedBefore)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g.failures.version = version
	if c.lane.sweep == nil {
		g.failures.replaceLocked(&c.call, stored, time.Now())
		return nil
	}
	for key, r := range failedBefore {
		g.failures.putLocked(key, r)
	}
	g.failures.partial.Store(others)
	return nil
}

// find returns the records with these keys that memory does not hold. It asks the store only if the records of the
// queue may not all be in memory.
func (l *failureLog) find(c *call, keys iter.Seq[string]) (map[string]record, error) {
	found := map[string]record{}
	if !l.grant.failures.partial.Load() {
		return found, nil
	}
	unknown := l.unknown(keys)
	if len(unknown) == 0 {
		return found, nil
	}
	defer l.enter(1)()
	return found, l.lookUp(c, unknown, found)
}

// lookUp asks the store for the records of items of the queue.
func (l *failureLog) lookUp(c *call, keys []string, found map[string]record) error {
	now := time.Now()
	list, err := l.store.Find(c.ctx, l.grant.queue, keys)
	if err != nil {
		return fmt.Errorf("find failed items: %w", err)
	}
	for _, i := range list {
		if c.capabilities.Keyed || i.Queue == l.grant.queue.ID { // a cursor is the key of an item in its own queue only
			found[i.Key] = i.record(c, now)
		}
	}
	return nil
}

// unknown returns the keys that have no record in memory.
func (l *failureLog) unknown(keys iter.Seq[string]) (unknown []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range keys {
		if _, ok := l.grant.failures.recallLocked(key); !ok {
			unknown = append(unknown, key)
		}
	}
	return unknown
}

// record returns the record of an item, from memory or from the store. whole asks the store also if memory knows only
// that the item is dead.
func (l *failureLog) record(c *call, key string, whole bool) (r record, ok bool, err error) {
	if r, ok = l.recall(key); ok && (!whole || r.cause != nil) {
		return r, true, nil
	}
	if !ok && !l.grant.failures.partial.Load() {
		return r, false, nil
	}
	defer l.enter(1)()
	found := map[string]record{}
	if err = l.lookUp(c, []string{key}, found); err != nil {
		return r, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok = found[key]
	return l.grant.failures.dead.resting(r), ok, nil
}

// recall returns the record of an item from memory.
func (l *failureLog) recall(key string) (record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant.failures.recallLocked(key)
}

// mostDoubted bounds the items whose failures were no attempts, in memory: some megabytes.
const mostDoubted = 50_000

// keep replaces the record of an item in memory only. An outage may fail any number of items. So beyond mostDoubted
// records, keep drops the record of an item whose failure was no attempt, and the item is tried again. A sweep keeps
// each record, because it ends only when none of its items waits any more.
func (l *failureLog) keep(u update) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &l.grant.failures
	if u.stored || !u.doubtful || l.grant.lane.sweep != nil || f.budget.held.Load() < mostDoubted {
		f.keepLocked(u.key, u.record)
	}
}

// adopt makes memory hold the record that the store has of an item, or none: an operator has changed it. Otherwise the
// next select would find the item as this one has.
func (l *failureLog) adopt(u update, r record, there bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grant.failures.removeLocked(u.key); there {
		l.grant.failures.keepLocked(u.key, r)
	}
}

// suspect records all items of a failed batch as suspects, in memory.
func (l *failureLog) suspect(b *batch, batchLimit int, retryAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range b.keys {
		l.grant.failures.suspectLocked(key, batchLimit, retryAt)
	}
	l.grant.failures.tidyLocked(b.now)
}

// save records updates, and notes in them what it did. If the store fails, save records them in memory only and returns
// the error.
func (l *failureLog) save(ctx context.Context, updates ...update) error {
	if len(updates) == 0 {
		return nil
	}
	defer l.enter(1)() //nolint:contextcheck // it waits also if the call is cancelled
	items, now := make([]FailedItem, len(updates)), time.Now()
	for i, u := range updates {
		items[i] = u.item(now)
	}
	err := l.write(ctx, items)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range updates {
		u := &updates[i]
		u.stored, u.saved = true, err == nil && l.store != nil && !u.started
		u.unfinished = u.unfinished || u.dead && err != nil
		l.grant.failures.keepLocked(u.key, u.record)
	}
	return err
}

func (l *failureLog) write(ctx context.Context, items []FailedItem) error {
	if l.store == nil {
		return nil
	}
	return l.store.Save(ctx, l.grant.queue, items)
}

// remove removes the records of the items of a batch that are done: of suspects, or of a single failed item.
func (l *failureLog) remove(b *batch) error {
	defer l.enter(1)()
	stored := l.removeFromMemory(b)
	if len(stored) == 0 || l.store == nil {
		return nil
	}
	return l.store.Delete(b.bound, l.grant.queue, stored)
}

// removeFromMemory forgets the items that are done. It returns the keys of those whose records may be in the store.
func (l *failureLog) removeFromMemory(b *batch) (stored []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, key := range b.keys {
		if !b.itemDone(i) {
			continue
		}
		f := &l.grant.failures
		r, ok := f.recallLocked(key)
		b.result.recovered = b.result.recovered || r.failedItself()
		if r.stored || !ok && f.partial.Load() {
			stored = append(stored, key)
		}
		f.removeLocked(key)
	}
	return stored
}
