package engine

import (
	"cmp"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/processor"
)

// record is what is known about one failed item: by the ItemStore, by this process, or by both.
type record struct {
	attempts   int
	retryAt    time.Time // the earliest time at which the item is executed again; of a dead item, its Discard
	cause      error     // of the last failure
	batchLimit int       // of a suspect: the largest size of its next batch; else 0
	first      uint64    // the round in which the item first failed alone, as far as this process knows; 0 if it has not
	last       uint64    // the round of the last failure
	doubtful   bool      // the last failure was no attempt, because an outage was likely
	tries      int       // such failures in a row; of a dead item, those of its Discard
	dead       bool
	discarded  bool // the item is dead, and its Discard has succeeded under this grant
	stored     bool // the store has a record of the item

	// unsavedSince is since when the store has an older record of the item, or none; zero: it has this one.
	unsavedSince time.Time
}

// unsaved reports whether the store has an older record of the item, or none.
func (r record) unsaved() bool { return !r.unsavedSince.IsZero() }

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

// with returns a record of the store with what this process has noted about the item. Without a record, or if the store
// could not take the note, the note is all that counts. If the item has died or is alive again since the note, an
// operator has changed it, and the pause of the note is void.
func (r record) with(note record) record {
	if !r.stored || note.unsaved() {
		return note
	}
	r.first, r.last = cmp.Or(note.first, r.first), cmp.Or(note.last, r.last)
	if note.doubtful {
		r.batchLimit = 0
	}
	if note.dead != r.dead {
		return r
	}
	if r.doubtful, r.tries, r.discarded = note.doubtful, note.tries, note.discarded; r.tries > 0 {
		r.retryAt = later(r.retryAt, note.retryAt)
	}
	return r
}

// smallerBatch returns the size of the next batches for the items of a failed batch of n. A failing item among a
// hundred is found with ten batches and then ten items. One by one would need more calls, and halves would need more
// selects.
func smallerBatch(n int) int { return max(1, n/10) }

const (
	// beforeRounds is the round of an item that has failed twice in processes before this one, so that it is poison.
	beforeRounds = 1

	// firstRound is the round before the first success in this process.
	firstRound = 2
)

// record returns the record of an item of the store. The item waits for the rest of its pause, even if an outage has
// caused the pause and is over.
func (i FailedItem) record(sweeps bool, now time.Time) record {
	if sweeps {
		return i.recordInSweep()
	}
	r := record{
		attempts: i.Attempts, dead: i.Dead, cause: errors.New(i.LastError), first: beforeRounds, last: beforeRounds,
		retryAt: now.Add(i.RetryIn), stored: true,
	}
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
		cause := fmt.Errorf("item %s is dead: %s", i.Key, i.LastError)
		return record{dead: true, stored: true, cause: processor.Permanent(cause)}
	}
	return record{batchLimit: 1, stored: true}
}

// update is the new record of a failed item.
type update struct {
	index    int // of the item in its batch
	key      string
	orderKey string // of the item of an Ordered dealer
	record
	started bool // the item begins alone (S14)
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

// memory bounds what the queues of a processor remember: the notes together, but keysBehind bounds each queue.
type memory struct {
	notes      budget
	keysBehind int // order keys that a pass leaves behind
}

func newMemory() memory {
	return memory{notes: budget{most: maxNotes}, keysBehind: maxKeysBehind}
}

// maxNotes is how many notes about failed items a processor makes at most: some megabytes. It may exceed the bound by
// notes that it cannot do without.
const maxNotes = 50_000

// budget is a bound that queues share.
type budget struct {
	held atomic.Int64
	most int64
}

// room returns how many more may be held. Executors that ask at the same time may exceed the bound by one each.
func (b *budget) room() int64 { return b.most - b.held.Load() }
