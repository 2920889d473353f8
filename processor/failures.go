package processor

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// failures are the failed items of one queue. An item is in records or in dead. The lane's failure log guards them. The
// counters may be read without its lock.
type failures struct {
	records map[string]record
	dead    deadKeys
	tidied  time.Time // when suspects that are not selected any more were last removed
	version uint64    // of the last load: calls of Reload + 1; only the lane's select uses it

	all     atomic.Int64 // of records
	parked  atomic.Int64 // of records, without the suspects
	partial atomic.Bool  // the store may have records of the queue's items that are not here
	budget  *budget      // of the records of the processor
}

// record is what is known about one failed item.
type record struct {
	attempts   int
	retryAt    time.Time // the earliest time at which the item is executed again
	cause      error     // of the last failure
	batchLimit int       // of a suspect: the largest size of its next batch; else 0
	first      uint64    // the round in which the item first failed alone, as far as this process knows; 0 if it has not
	last       uint64    // the round of the last failure
	doubtful   bool      // the last failure was no attempt, because an outage was likely
	tries      int       // such failures in a row; of a dead item, those of its Discard
	dead       bool
	unfinished bool // the item is dead, and this process does not know that it was recorded and that its Discard succeeded
	stored     bool // the store may have a record of the item
	saved      bool // the store has this record
}

func newFailures(m *memory) failures {
	return failures{budget: &m.records, dead: deadKeys{budget: &m.dead}}
}

// suspectFor is how long a suspect is remembered that is not selected again, for instance because the failed commit had
// succeeded after all. Removing a suspect too early costs one more failed batch.
const suspectFor = 10 * time.Minute

// failedItself reports whether the item has failed alone or by name.
func (r record) failedItself() bool { return r.attempts > 0 || r.last > 0 }

// failed notes a failure, alone or by name.
func (r *record) failed(round uint64, err error) {
	r.batchLimit, r.cause = 0, lasting(err)
	r.first, r.last = cmp.Or(r.first, round), round
}

// doubt notes that the failure was no attempt. The item backs off for at most ProbeMax, but a pause that the retry
// policy has begun goes on.
func (r *record) doubt(c *call, err error) {
	r.doubtful = true
	r.tries++
	if after := c.settings.asked(err); after > 0 {
		r.retryAt = c.now.Add(after)
	} else if !r.retryAt.After(c.began) {
		r.retryAt = c.now.Add(c.settings.pause(r.attempts+r.tries, min(c.settings.RetryMax, c.settings.ProbeMax)))
	}
}

// waits reports whether an item of a sweep waits for the end of an outage.
func (r record) waits() bool { return r.doubtful && !r.dead }

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
	f.dead.removeLocked(key)
	f.removeRecordLocked(key)
}

func (f *failures) removeRecordLocked(key string) {
	if r, ok := f.records[key]; ok {
		delete(f.records, key)
		f.count(r, -1)
	}
}

// keepLocked replaces the record under key. If the store has the record too, memory holds only the key of a dead item,
// and nothing beyond the bounds.
func (f *failures) keepLocked(key string, r record) {
	f.removeLocked(key)
	switch {
	case !r.saved || (!r.dead || r.unfinished) && f.budget.room() > 0:
		f.putLocked(key, r)
	case r.dead && f.dead.budget.room() > 0:
		f.dead.addLocked(key, r.unfinished)
		f.dead.restLocked(r)
	default:
		f.partial.Store(true)
		f.dead.restLocked(r)
	}
}

// recallLocked returns the record under key. The record of a dead item may say only that the item is dead.
func (f *failures) recallLocked(key string) (record, bool) {
	if r, ok := f.records[key]; ok {
		return r, true
	}
	return f.dead.recallLocked(key)
}

// room returns how many records and how many dead keys the queue may hold.
func (f *failures) room() (records, dead int64) {
	return f.budget.room() + f.all.Load(), f.dead.budget.room() + f.dead.number.Load()
}

// any reports whether an item of the queue may have failed.
func (f *failures) any() bool {
	return f.all.Load() > 0 || f.dead.number.Load() > 0 || f.partial.Load()
}

// waiting returns how many items of memory are dead or back off.
func (f *failures) waiting() int64 { return f.parked.Load() + f.dead.number.Load() }

// release gives back the room of the records and keys, when the grant ends.
func (f *failures) release() {
	f.budget.held.Add(-f.all.Load())
	f.dead.budget.held.Add(-f.dead.number.Load())
}

func (f *failures) count(r record, n int64) {
	f.all.Add(n)
	f.budget.held.Add(n)
	if r.batchLimit == 0 {
		f.parked.Add(n)
	}
}

// suspectLocked records an item of a failed batch, unless the item has failed alone before or is dead.
func (f *failures) suspectLocked(key string, batchLimit int, retryAt time.Time) {
	r, ok := f.recallLocked(key)
	if !ok || r.batchLimit > 0 || r.doubtful && r.attempts == 0 {
		f.putLocked(key, record{batchLimit: batchLimit, retryAt: retryAt, first: r.first, last: r.last})
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
			f.removeRecordLocked(key)
		}
	}
}

// replaceLocked replaces all records by those of the store, as many as there is room for. It removes the suspects:
// their batches fail again.
func (f *failures) replaceLocked(c *call, stored LoadedItems, now time.Time) {
	for key := range f.records {
		f.removeRecordLocked(key)
	}
	complete := f.dead.replaceLocked(stored.Dead, c.capabilities.Discarder)
	f.partial.Store(stored.More || !complete)
	for _, i := range stored.Items {
		f.keepLocked(i.Key, i.record(c, now))
	}
}

const (
	// beforeRounds is the round of an item that has failed twice in processes before this one, so that it is poison.
	beforeRounds = 1

	// firstRound is the round before the first success in this process.
	firstRound = 2
)

// rememberLocked notes the items that failed in earlier sweeps of a run. No other goroutine uses the failures yet.
func (f *failures) rememberLocked(r *Run) {
	if r == nil {
		return
	}
	for _, key := range r.FailedBefore {
		f.putLocked(key, record{first: beforeRounds, last: beforeRounds})
	}
}

// record returns the record of an item of the store. The item waits for the rest of its pause, even if an outage has
// caused the pause and is over.
func (i FailedItem) record(c *call, now time.Time) record {
	if c.lane.sweep != nil {
		return i.recordInSweep()
	}
	r := record{
		attempts: i.Attempts, dead: i.Dead, cause: errors.New(i.LastError), first: beforeRounds, last: beforeRounds,
		retryAt: now.Add(i.RetryIn), stored: true, saved: !i.Started,
	}
	r.unfinished = c.capabilities.Discarder && i.Dead
	if i.Attempts < 2 { // it may have opened the breaker of an outage
		r.first, r.last = firstRound, firstRound
	}
	if i.Started && i.Attempts == 0 { // it has not failed; its next success deletes the record
		r.batchLimit = 1
	}
	return r
}

// recordInSweep returns what the record means in a sweep. The sweep passes a dead item, which has ended its process or
// died in mode CONTINUOUS. Any other item is executed alone, and a success deletes its record.
func (i FailedItem) recordInSweep() record {
	if i.Dead {
		return record{dead: true, stored: true, cause: Permanent(fmt.Errorf("item %s is dead: %s", i.Key, i.LastError))}
	}
	return record{batchLimit: 1, stored: true}
}

// item returns the update in the form of the store. An item that is executed alone has no pause, so that the time of
// its next attempt in the store is the time at which it starts.
func (u *update) item(now time.Time) FailedItem {
	f := FailedItem{Key: u.key, OrderKey: u.orderKey, Attempts: u.attempts, Dead: u.dead, Started: u.started}
	if u.cause != nil {
		f.LastError = u.cause.Error()
	}
	if !u.dead && !u.started {
		f.RetryIn = u.retryAt.Sub(now)
	}
	return f
}

// KeyDigest stands for the key of a dead item: the first 16 bytes of its SHA-256. Two keys with one digest do not occur
// in practice.
type KeyDigest = [16]byte

// DigestOf returns the digest of a key. It allocates nothing for a key of at most 256 bytes.
func DigestOf(key string) KeyDigest {
	var buffer [256]byte
	sum := sha256.Sum256(append(buffer[:0], key...))
	return KeyDigest(sum[:16])
}

// maxDeadKeys is how many keys of dead items a processor holds at most: 40 MB. While the store has more, each page
// costs a statement that finds them.
const maxDeadKeys = 1_000_000

// deadKeys are the keys of the items of one queue whose records in the store say that they are dead. The lane's failure
// log guards them; the number may be read without its lock.
type deadKeys struct {
	digests map[KeyDigest]bool // with record.unfinished
	number  atomic.Int64
	budget  *budget // of the processor

	// The pause of all Discards whose records have no room in memory, after one of them has failed.
	retryAt time.Time
	tries   int
}

// deadRecord is what is known about an item of deadKeys.
var deadRecord = record{dead: true, stored: true, saved: true}

// recallLocked returns what is known about an item that is dead. It computes no digest while no item is.
func (d *deadKeys) recallLocked(key string) (record, bool) {
	if len(d.digests) == 0 {
		return record{}, false
	}
	due, ok := d.digests[DigestOf(key)]
	if !ok {
		return record{}, false
	}
	r := deadRecord
	r.unfinished = due
	return d.resting(r), true
}

// resting adds the pause of Discards to a record that memory has no room for.
func (d *deadKeys) resting(r record) record {
	if r.dead && r.unfinished {
		r.retryAt, r.tries = d.retryAt, d.tries
	}
	return r
}

// restLocked notes how the Discard of such a record has ended.
func (d *deadKeys) restLocked(r record) {
	switch {
	case !r.dead:
	case r.unfinished:
		d.retryAt, d.tries = r.retryAt, r.tries
	default:
		d.retryAt, d.tries = time.Time{}, 0
	}
}

func (d *deadKeys) addLocked(key string, unfinished bool) {
	if d.digests == nil {
		d.digests = map[KeyDigest]bool{}
	}
	d.digests[DigestOf(key)] = unfinished
	d.recountLocked()
}

func (d *deadKeys) removeLocked(key string) {
	if len(d.digests) > 0 {
		delete(d.digests, DigestOf(key))
		d.recountLocked()
	}
}

// replaceLocked replaces all keys, and reports whether there was room for all. Another queue may have taken the room
// during the load. discards says whether the dealer is a Discarder. Then an item that was not here before is to be
// discarded: its last owner may have ended before it did that.
func (d *deadKeys) replaceLocked(digests []KeyDigest, discards bool) (complete bool) {
	before := d.digests
	d.digests = nil
	d.recountLocked()
	d.digests = make(map[KeyDigest]bool, max(0, min(int64(len(digests)), d.budget.room())))
	for _, digest := range digests {
		if d.budget.room() <= 0 {
			return false
		}
		due, known := before[digest]
		d.digests[digest] = discards && (due || !known)
		d.recountLocked()
	}
	return true
}

func (d *deadKeys) recountLocked() {
	n := int64(len(d.digests))
	d.budget.held.Add(n - d.number.Swap(n))
}

// memory bounds what the queues of a processor hold about failed items: together, but keysBehind bounds each queue.
type memory struct {
	records    budget // besides suspects and records that could not be saved, which may exceed it
	dead       budget // keys of dead items
	keysBehind int    // order keys that a pass leaves behind
}

func newMemory() memory {
	return memory{records: budget{most: maxRecords}, dead: budget{most: maxDeadKeys}, keysBehind: maxKeysBehind}
}

// maxRecords is how many records of failed items a processor holds at most, besides suspects and records that it could
// not save: some megabytes. While the store has more, each page costs a statement that finds them by their keys.
const maxRecords = 10_000

// budget is a bound that queues share.
type budget struct {
	held atomic.Int64
	most int64
}

// room returns how many more of its kind memory may hold. Executors that ask at the same time may exceed the bound by
// one each.
func (b *budget) room() int64 { return b.most - b.held.Load() }
