package processor

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// book is what a queue knows of its failed items, by key. It is guarded by its lane's books, but for the numbers,
// which anybody may read.
type book struct {
	entries map[string]entry
	tidied  time.Time // when suspects that nobody selects any more were last forgotten
	all     atomic.Int64
	parked  atomic.Int64 // without the suspects
	dead    atomic.Int64
}

// entry is what is known of one failed item.
type entry struct {
	attempts int
	until    time.Time // it is not executed before
	cause    error     // of the last failure
	group    int       // of a suspect, of which only a batch has failed: the most it is tried with next; 0 of others
	owed     bool      // only its Discard is missing
	dead     bool
	stored   bool // the store may have a record of it
	saved    bool // the store has this entry
}

// suspectFor is how long a suspect is remembered that is not selected again, for instance because the commit that
// failed had succeeded. One that is forgotten too early only spoils one more batch.
const suspectFor = 10 * time.Minute

// put enters e under key in place of what was there.
func (b *book) put(key string, e entry) {
	if b.entries == nil {
		b.entries = map[string]entry{}
	}
	b.remove(key)
	b.entries[key] = e
	b.count(e, 1)
}

func (b *book) remove(key string) {
	if e, ok := b.entries[key]; ok {
		delete(b.entries, key)
		b.count(e, -1)
	}
}

func (b *book) count(e entry, n int64) {
	b.all.Add(n)
	if e.group == 0 {
		b.parked.Add(n)
	}
	if e.dead {
		b.dead.Add(n)
	}
}

// suspect enters an item of a failed batch, unless more is known of it.
func (b *book) suspect(key string, group int, until time.Time) {
	if e, ok := b.entries[key]; !ok || e.group > 0 {
		b.put(key, entry{group: group, until: until})
	}
}

// smaller is the size of the batches in which the items of a failed one of n are tried next. A hundred items are ten
// batches and then ten items until the one that fails is found: fewer calls than one by one, fewer selects than halves.
func smaller(n int) int { return max(1, n/10) }

// tidy forgets the suspects that are not selected any more.
func (b *book) tidy(now time.Time) {
	if now.Sub(b.tidied) < suspectFor {
		return
	}
	b.tidied = now
	for key, e := range b.entries {
		if e.group > 0 && now.Sub(e.until) > suspectFor {
			b.remove(key)
		}
	}
}

// replace makes the book what the store has. Suspects are forgotten, they show themselves again.
func (b *book) replace(list []FailedItem, now time.Time, owed func(FailedItem) bool) {
	for key := range b.entries {
		b.remove(key)
	}
	for _, f := range list {
		b.put(f.Key, entry{
			attempts: f.Attempts, dead: f.Dead, cause: errors.New(f.LastError),
			until: now.Add(f.RetryIn), owed: owed(f), stored: true, saved: true,
		})
	}
}

// item is the record of e.
func (e entry) item(key string, now time.Time) FailedItem {
	f := FailedItem{Key: key, Attempts: e.attempts, Dead: e.dead}
	if e.cause != nil {
		f.LastError = e.cause.Error()
	}
	if !e.dead {
		f.RetryIn = e.until.Sub(now)
	}
	return f
}

// retryIn is how long an item rests after its nth failure, unless the failure itself has a wish.
func (s *Settings) retryIn(n int, err error) time.Duration {
	if d := retryAfter(err); d > 0 {
		return d
	}
	b := backoff.ExponentialBackOff{InitialInterval: s.Retry, MaxInterval: s.RetryMax, RandomizationFactor: 0.5, Multiplier: 2}
	for ; n > 1 && b.InitialInterval < s.RetryMax; n-- {
		b.InitialInterval = min(2*b.InitialInterval, s.RetryMax)
	}
	return min(b.NextBackOff(), s.RetryMax)
}
