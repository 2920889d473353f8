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

	all    atomic.Int64
	parked atomic.Int64 // without the suspects
}

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

// smallerBatch returns the size of the next batches for the items of a failed batch of n. A failing item among a hundred
// is found with ten batches and then ten items. One by one would need more calls, and halves would need more selects.
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

func (f *failures) count(r record, n int64) {
	f.all.Add(n)
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

// replaceLocked replaces all records by those of the store. It removes the suspects: their batches fail again.
func (f *failures) replaceLocked(list []FailedItem, now time.Time, discardDue func(FailedItem) bool) {
	for key := range f.records {
		f.removeLocked(key)
	}
	for _, i := range list {
		r := record{
			attempts: i.Attempts, dead: i.Dead, cause: errors.New(i.LastError),
			retryAt: now.Add(i.RetryIn), discardDue: discardDue(i), stored: true, saved: !i.Started,
		}
		if i.Started && i.Attempts == 0 { // it has not failed; its next success deletes the record
			r.batchLimit = 1
		}
		f.putLocked(i.Key, r)
	}
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
