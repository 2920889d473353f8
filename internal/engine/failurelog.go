package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/processor"
)

// failureLog knows the failed items of one queue under one grant. The store has their records, and each select asks it
// for those of its page (X6), so that an operator's change counts with the next select. Notes are what only this
// process knows: which items were in a batch that failed, which failures were no attempts, which items a sweep has
// passed, which Discards have ended, and what the store could not take. Executors use the log without the lock of the
// scheduler, and never while they hold that lock.
type failureLog struct {
	store ItemStore
	queue processor.Queue
	inUse atomic.Bool // the store may have a record of an item of the queue; else no page asks it

	version uint64    // of the last question whether it has: calls of Reload + 1; only the lane's select uses it
	askedAt time.Time // when that was

	mu     sync.Mutex // never held during a call of the store
	begun  int        // calls of Save
	ended  int
	notes  map[string]*note
	noted  atomic.Int64 // the number of notes
	room   *budget
	tidied time.Time // when notes of items that are not selected any more were last removed
	rest   record    // the pause of all Discards that there was no room to note, after one of them has failed

	sweeps   bool
	inOrder  bool // the dealer has a cursor
	discards bool
}

// note is what this process knows about one item.
type note struct {
	record
	seenAt time.Time // when the item was last selected, or the note was made
}

func newFailureLog(store ItemStore, q processor.Queue, c capabilities, room *budget) *failureLog {
	l := &failureLog{
		store: store, queue: q, room: room, notes: map[string]*note{},
		sweeps: q.Run != nil, inOrder: c.Cursored, discards: c.Discarder,
	}
	if store == nil {
		l.store = &itemsInMemory{items: map[string]rememberedItem{}}
	}
	if l.sweeps && c.tracksItems() {
		for _, key := range q.Run.FailedBefore {
			l.putLocked(key, record{first: beforeRounds, last: beforeRounds})
		}
	}
	return l
}

// askAgain is the pause after which a queue whose items had records is asked again whether there are any.
const askAgain = time.Minute

// ask finds out whether the store may have records of the queue: at the begin of a grant, after each Reload, and once a
// minute while it may. A sweep asks once.
func (l *failureLog) ask(c *selectCall) error {
	version := c.reloads.Load() + 1
	first, again := l.version == 0, l.version != version
	switch {
	case !c.capabilities.tracksItems(), l.sweeps && !first:
		return nil
	case again:
		for _, t := range c.stages {
			if t.reset != nil {
				t.reset(c.lane)
			}
		}
	case !l.inUse.Load() || c.began.Sub(l.askedAt) < askAgain:
		return nil
	}
	if first {
		if err := l.declareDead(c); err != nil {
			return err
		}
	}
	l.mu.Lock()
	begun, ended := l.begun, l.ended
	l.mu.Unlock()
	has, err := l.store.Any(c.ctx, l.queue)
	if err != nil {
		return err
	}
	l.version, l.askedAt = version, c.began
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inUse.Store(has || begun > ended || l.begun > begun) // Any may not have seen what was being saved
	return nil
}

// find returns what is known about the items with these keys. An item that is not in the result has not failed.
func (l *failureLog) find(c *call, keys []string) (map[string]record, error) {
	var stored []FailedItem
	now := time.Now()
	if l.inUse.Load() && len(keys) > 0 {
		var err error
		if stored, err = l.store.Find(c.ctx, l.queue, keys); err != nil {
			return nil, fmt.Errorf("find failed items: %w", err)
		}
	}
	known := make(map[string]record, min(len(keys), len(stored)+int(l.noted.Load())))
	for _, i := range stored {
		if c.capabilities.Keyed || i.Queue == l.queue.ID { // a cursor is the key of an item in its own queue only
			known[i.Key] = i.record(l.sweeps, now)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidyLocked(c.began)
	for _, key := range keys {
		n, noted := l.notes[key]
		r, recorded := known[key]
		switch {
		case !noted && r.dead && l.discards && !l.sweeps && l.room.room() <= 0:
			known[key] = r.with(l.rest)
		case !noted:
		case !recorded && n.stored && !n.unsaved(): // an operator, or the retention, has deleted the record
			l.removeLocked(key)
		default:
			n.seenAt, known[key] = c.began, r.with(n.record)
		}
	}
	return known, nil
}

// any reports whether an item of the queue may have failed.
func (l *failureLog) any() bool { return l.inUse.Load() || l.noted.Load() > 0 }

// forgetAfter is how long a note is kept about an item that is not selected again after its pause, for instance because
// the failed commit had succeeded after all. Removing the note of a suspect too early costs one more failed batch.
const forgetAfter = 10 * time.Minute

// tidyLocked removes the notes of items that are not selected any more. A sweep keeps its notes: it ends only when none
// of its items waits, and it passes no item twice.
func (l *failureLog) tidyLocked(now time.Time) {
	if l.sweeps || now.Sub(l.tidied) < forgetAfter {
		return
	}
	l.tidied = now
	for key, n := range l.notes {
		if now.Sub(later(n.seenAt, n.retryAt)) > forgetAfter && !n.unsaved() {
			l.removeLocked(key)
		}
	}
}

// note replaces the note about an item.
func (l *failureLog) note(key string, r record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.putLocked(key, r)
}

// putLocked replaces the note about an item. Of a dead item the store says everything, unless a Discard is due. An
// outage may fail any number of items: beyond the bound, an item is tried again as the store says.
func (l *failureLog) putLocked(key string, r record) {
	n := l.notes[key]
	switch {
	case r.dead && !r.unsaved() && !l.discards:
		l.removeLocked(key)
		return
	case n != nil:
	case !l.needs(r) && l.room.room() <= 0:
		if r.dead {
			l.rest = record{dead: true, tries: r.tries, retryAt: r.retryAt}
		}
		return
	default:
		n = &note{}
		l.notes[key] = n
		l.count(1)
	}
	n.record, n.seenAt = r, time.Now()
}

// needs reports whether the note is made whatever the bound: a sweep must end, a cursor waits for its item, nothing
// else has what is unsaved, and the suspects of a failed batch fail it again.
func (l *failureLog) needs(r record) bool {
	return l.sweeps || l.inOrder || r.unsaved() || r.batchLimit > 0
}

func (l *failureLog) removeLocked(key string) {
	if l.notes[key] != nil {
		delete(l.notes, key)
		l.count(-1)
	}
}

func (l *failureLog) count(n int64) {
	l.noted.Add(n)
	l.room.held.Add(n)
}

// release gives back the room of the notes, when the grant ends.
func (l *failureLog) release() { l.room.held.Add(-l.noted.Load()) }

// suspect notes that the items of a failed batch are suspects, unless they have failed alone before.
func (l *failureLog) suspect(b *batch, batchLimit int, retryAt time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range b.keys {
		r := b.page.records[key]
		if r.batchLimit > 0 || r.attempts == 0 && (r.doubtful || r.last == 0) {
			l.putLocked(key, record{batchLimit: batchLimit, retryAt: retryAt, first: r.first, last: r.last})
		}
	}
}

// save records updates, and notes them. An update that the store does not take is unsaved then.
func (l *failureLog) save(ctx context.Context, updates ...update) error {
	if len(updates) == 0 {
		return nil
	}
	items, now := make([]FailedItem, len(updates)), time.Now()
	for i, u := range updates {
		items[i] = u.item(now)
	}
	err := l.write(ctx, items)
	for i := range updates {
		u := &updates[i]
		switch u.stored = err == nil; {
		case u.stored:
			u.unsavedSince = time.Time{}
		case !u.unsaved():
			u.unsavedSince = now
		}
		l.note(u.key, u.record)
	}
	return err
}

// write saves records. A call that has failed may have taken effect.
func (l *failureLog) write(ctx context.Context, items []FailedItem) error {
	l.mu.Lock()
	l.begun++
	l.inUse.Store(true)
	l.mu.Unlock()
	err := l.store.Save(ctx, l.queue, items)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended++
	return err
}

// remove removes what is known about the items of a batch that are done, in the store too if it may have a record.
func (l *failureLog) remove(b *batch) error {
	var stored []string
	l.mu.Lock()
	for i, key := range b.keys {
		if !b.itemDone(i) {
			continue
		}
		r := b.page.records[key]
		b.result.recovered = b.result.recovered || r.failedItself()
		if r.stored || r.unsaved() || b.isolation.recorded {
			stored = append(stored, key)
		}
		l.removeLocked(key)
	}
	l.mu.Unlock()
	if len(stored) == 0 {
		return nil
	}
	return l.store.Delete(b.bound, l.queue, stored)
}

// itemsInMemory is the ItemStore of a grant whose processor has none.
type itemsInMemory struct {
	mu    sync.Mutex
	items map[string]rememberedItem
}

type rememberedItem struct {
	FailedItem
	retryAt time.Time
}

// Any implements ItemStore.
func (m *itemsInMemory) Any(context.Context, processor.Queue) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items) > 0, nil
}

// Started implements ItemStore. The items end with the grant, so that none was started before it.
func (*itemsInMemory) Started(context.Context, processor.Queue) ([]FailedItem, error) {
	return nil, nil
}

// Find implements ItemStore.
func (m *itemsInMemory) Find(_ context.Context, q processor.Queue, keys []string) (found []FailedItem, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if i, ok := m.items[key]; ok {
			i.Queue, i.RetryIn = q.ID, time.Until(i.retryAt)
			found = append(found, i.FailedItem)
		}
	}
	return found, nil
}

// Save implements ItemStore.
func (m *itemsInMemory) Save(_ context.Context, _ processor.Queue, items []FailedItem) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range items {
		m.items[i.Key] = rememberedItem{i, time.Now().Add(i.RetryIn)}
	}
	return nil
}

// Delete implements ItemStore.
func (m *itemsInMemory) Delete(_ context.Context, _ processor.Queue, keys []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.items, key)
	}
	return nil
}
