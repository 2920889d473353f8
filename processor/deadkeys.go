package processor

import (
	"crypto/sha256"
	"sync/atomic"
)

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
	digests map[KeyDigest]struct{}
	number  atomic.Int64
	budget  *budget // of the processor
}

// deadRecord is what is known about an item of deadKeys.
var deadRecord = record{dead: true, stored: true, saved: true}

// hasLocked reports whether an item is dead. It computes no digest while no item is.
func (d *deadKeys) hasLocked(key string) bool {
	if len(d.digests) == 0 {
		return false
	}
	_, ok := d.digests[DigestOf(key)]
	return ok
}

func (d *deadKeys) addLocked(key string) {
	if d.digests == nil {
		d.digests = map[KeyDigest]struct{}{}
	}
	d.digests[DigestOf(key)] = struct{}{}
	d.recountLocked()
}

func (d *deadKeys) removeLocked(key string) {
	if len(d.digests) > 0 {
		delete(d.digests, DigestOf(key))
		d.recountLocked()
	}
}

// replaceLocked replaces all keys, and reports whether there was room for all. Another queue may have taken the room
// during the load.
func (d *deadKeys) replaceLocked(digests []KeyDigest) (complete bool) {
	d.digests = nil
	d.recountLocked()
	if len(digests) == 0 {
		return true
	}
	d.digests = make(map[KeyDigest]struct{}, max(0, min(int64(len(digests)), d.budget.room())))
	for _, digest := range digests {
		if d.budget.room() <= 0 {
			return false
		}
		d.digests[digest] = struct{}{}
		d.recountLocked()
	}
	return true
}

func (d *deadKeys) recountLocked() {
	n := int64(len(d.digests))
	d.budget.held.Add(n - d.number.Swap(n))
}

// release gives back the room of the keys, when the grant ends.
func (d *deadKeys) release() { d.budget.held.Add(-d.number.Load()) }
