package processor

import (
	"testing"
	"time"
)

// A dead item of which memory holds only the digest stays dead when a batch with it fails, and is forgotten alone when
// its record changes (X6).
func TestDigestsOfDeadItems(t *testing.T) {
	m := newMemory()
	f := newFailures(&m)
	for _, key := range []string{"a", "b"} {
		f.keepLocked(key, deadRecord)
	}
	f.suspectLocked("a", 1, time.Now())
	if r, _ := f.recallLocked("a"); !r.dead || f.all.Load() != 0 || f.waiting() != 2 {
		t.Errorf("after a failed batch: %+v, %d records, %d waiting, want dead, none and 2", r, f.all.Load(), f.waiting())
	}
	f.removeLocked("a")
	if _, ok := f.recallLocked("a"); ok {
		t.Error("the removed item is still dead")
	}
	if r, ok := f.recallLocked("b"); !ok || !r.dead || m.dead.held.Load() != 1 {
		t.Errorf("the other item: %+v (%v), %d digests, want dead and 1", r, ok, m.dead.held.Load())
	}
}
