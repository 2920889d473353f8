package processor

import (
	"runtime"
	"testing"
)

// BenchmarkHeldKeys measures what the keys of 100,000 items cost that a pass has left behind: the time and the
// allocations of noting them, and heap-MB, the memory that the set of one queue keeps.
func BenchmarkHeldKeys(b *testing.B) {
	const keys = 100_000
	b.ReportAllocs()
	var behind keysBehind
	for b.Loop() {
		behind = keysBehind{}
		for key := range uint64(keys) {
			behind.left.add((key+1)*0x9E3779B97F4A7C15, key%2 == 0)
		}
	}
	with := liveHeap()
	if !behind.left.has(0x9E3779B97F4A7C15) {
		b.Error("the first key is not held")
	}
	behind = keysBehind{}
	b.ReportMetric(float64(with-liveHeap())/(1<<20), "heap-MB")
}

// liveHeap returns the bytes of live objects.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
