package report

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Pace tells how fast the machine is just now: how long a computation takes that is always the same, and waits for memory
// as much as for the processor. A shared machine is not always as fast.
func Pace() time.Duration { return Time(func() { work() }) }

// Time calls f three times, and returns the median of how long it took: one may be the first to use its memory.
func Time(f func()) time.Duration {
	var took [3]time.Duration
	for i := range took {
		start := time.Now()
		f()
		took[i] = time.Since(start)
	}
	slices.Sort(took[:])
	return took[1]
}

// work fills a map, and looks everything up in another order.
func work() (found int) {
	r := rand.New(rand.NewPCG(1, 1))
	keys := make([]uint64, 500_000)
	for i := range keys {
		keys[i] = r.Uint64()
	}
	seen := map[uint64]int{}
	for i, k := range keys {
		seen[k] = i
	}
	slices.Sort(keys)
	for _, k := range keys {
		found += seen[k] & 1
	}
	return found
}
