package processor

import (
	"errors"
	"sync/atomic"
	"time"
)

// failures are the failed items of one queue, by key. The lane's failure log guards them. The counters may be read
// without its lock.
type failures struct {
	records map[string]record
	tidied  time.Time // when suspects that are not selected any more were last removed
	version uint64    // of the last load: calls of Reload + 1; only the lane's select uses it

	all     atomic.Int64
	parked  atomic.Int64 // without the suspects
	partial atomic.Bool  // the store may have records of the queue's items that are not here
	memory  *memory      // of the processor
}

// maxRecords is how many records of failed items a processor holds at most, besides suspects and records that it could
// not save: some megabytes. While the store has more, each page costs a statement that finds them by their keys.
const maxRecords = 10_000

// memory bounds the records that the queues of a processor hold together.
type memory struct {
	held atomic.Int64
	most int64
}

// room returns how many more records memory may hold. Executors that ask at the same time may exceed the bound by one
// record each.
func (m *memory) room() int64 { return m.most - m.held.Load() }

// record is what is known about one failed item.
type record struct {
	attempts   int
	retryAt    time.Time // the item is not executed before
	cause      error     // of the last failure
	closes     uint32    // how often the breaker had closed at the last attempt
	batchLimit int       // of a suspect: the largest size of its next batch; else 0
	streak     uint64    // the number of the streak in which the item first failed under this grant; 0 if it has not
	discardDue bool      // only its Discard is missing
	dead       bool
	stored     bool // the store may have a record of the item
	saved      bool // the store has this record
}

// suspectFor is how long a suspect is remembered that is not selected again, for instance because the failed commit had
// succeeded after all. Removing a suspect too early costs one more failed batch.
const suspectFor = 10 * time.Minute

// provenBy reports whether another failure of the item proves that the item is to blame: something has succeeded since
// the item failed, so that the breaker has closed.
func (r record) provenBy(closes uint32) bool { return r.attempts > 0 && r.closes < closes }

// waits reports whether an item of a sweep waits for the end of an outage.
func (r record) waits() bool { return r.attempts > 0 && !r.dead }

// smallerBatch returns the size of the next batches for the items of a failed batch of n. A failing item among a
// hundred is found with ten batches and then ten items. One by one would need more calls, and halves would need more
// selects.
func smallerBatch(n int) int { return max(1, n/10) }

// putLocked replaces the record under key.
func (f *failures) putLocked(key string, r record) {
	if f.records == nil {
		f.records = map[string]record{}
	}
	f.removeLocked(key)
	f.records[key] = r
	f.count(r, 1)
}

func (f *failures) removeLocked(key string) {
	if r, ok := f.records[key]; ok {
		delete(f.records, key)
		f.count(r, -1)
	}
}

// keepLocked replaces the record under key. Beyond the bound, memory holds no record that the store has.
func (f *failures) keepLocked(key string, r record) {
	f.removeLocked(key)
	if r.saved && f.memory.room() <= 0 {
		f.partial.Store(true)
		return
	}
	f.putLocked(key, r)
}

// release gives back the room of all records, when the grant ends.
func (f *failures) release() { f.memory.held.Add(-f.all.Load()) }

func (f *failures) count(r record, n int64) {
	f.all.Add(n)
	f.memory.held.Add(n)
	if r.batchLimit == 0 {
		f.parked.Add(n)
	}
}

// suspectLocked records an item of a failed batch, unless the item has failed alone before.
func (f *failures) suspectLocked(key string, batchLimit int, retryAt time.Time) {
	if r, ok := f.records[key]; !ok || r.batchLimit > 0 {
		f.putLocked(key, record{batchLimit: batchLimit, retryAt: retryAt})
	}
}

// tidyLocked removes the suspects that are not selected any more.
func (f *failures) tidyLocked(now time.Time) {
	if now.Sub(f.tidied) < suspectFor {
		return
	}
	f.tidied = now
	for key, r := range f.records {
		if r.batchLimit > 0 && now.Sub(r.retryAt) > suspectFor {
			f.removeLocked(key)
		}
	}
}

// replaceLocked replaces all records by records of the store, as many as there is room for. It removes the suspects:
// their batches fail again. more says that the store has more records.
func (f *failures) replaceLocked(c *call, list []FailedItem, more bool, now time.Time) {
	for key := range f.records {
		f.removeLocked(key)
	}
	f.partial.Store(more)
	for _, i := range list {
		f.keepLocked(i.Key, c.recordOf(i, now))
	}
}

// recordOf returns the record of an item of the store. After an outage that is over, it keeps its pause.
func (c *call) recordOf(i FailedItem, now time.Time) record {
	r := record{
		attempts: i.Attempts, dead: i.Dead, cause: errors.New(i.LastError), closes: c.closes,
		retryAt: now.Add(i.RetryIn), discardDue: c.discardDue(i), stored: true, saved: !i.Started,
	}
	if i.Started && i.Attempts == 0 { // it has not failed; its next success deletes the record
		r.batchLimit = 1
	}
	return r
}

// discardDue reports whether only the Discard of an item of the store is missing.
func (c *call) discardDue(i FailedItem) bool {
	most := c.settings.ItemMaxAttempts
	return c.capabilities.discarder && !i.Dead && most > 0 && i.Attempts >= most
}

// item returns the record in the form of the store.
func (r record) item(key string, now time.Time) FailedItem {
	f := FailedItem{Key: key, Attempts: r.attempts, Dead: r.dead}
	if r.cause != nil {
		f.LastError = r.cause.Error()
	}
	if !r.dead {
		f.RetryIn = r.retryAt.Sub(now)
	}
	return f
}
