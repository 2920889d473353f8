package report

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Pace returns the time of a fixed computation, which depends on the memory as much as on the processor. It shows how
// fast a shared machine is at the moment.
func Pace() time.Duration { return Time(func() { work() }) }

// Time calls f three times and returns the median duration. The first call may be slow because its memory is new.
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

// work fills a map and looks all keys up in another order.
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
