package engine

import (
	"runtime"
	"strconv"
	"testing"
	"time"
)

// BenchmarkHeldKeys measures what the keys of 100,000 items cost that a pass has left behind: the time and the
// allocations of noting them, and heap-MB, the memory that the set of one queue keeps, with keys of 15 characters.
func BenchmarkHeldKeys(b *testing.B) {
	const keys = 100_000
	b.ReportAllocs()
	var held *heldKeys
	for b.Loop() {
		held = held.restart(time.Time{})
		for key := range keys {
			held.leaveBehind("customer-"+strconv.Itoa(100_000+key), key%2 == 0)
		}
	}
	with := liveHeap()
	if !held.isBehind("customer-100000") {
		b.Error("the first key is not held")
	}
	held = nil
	b.ReportMetric(float64(with-liveHeap())/(1<<20), "heap-MB")
}

// liveHeap returns the bytes of live objects.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
