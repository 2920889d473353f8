package runs

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/dutyrota/rota/internal/slots"
)

// maxJitter is the upper bound of Jitter.
const maxJitter = 24 * time.Hour

// delay returns how much later than its slots the trigger fires. It follows from the trigger's id, so that all servers
// agree and the slots keep their distance.
func (t Trigger) delay() time.Duration {
	n := t.Jitter.Milliseconds()
	if n <= 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.ID)) // never fails
	return time.Duration(h.Sum64()%uint64(n)) * time.Millisecond
}

// firingAt returns when a slot fires, or zero for the zero slot.
func (t Trigger) firingAt(slot time.Time) time.Time {
	if slot.IsZero() {
		return slot
	}
	return slot.Add(t.delay())
}

// first returns when the trigger fires next, as of now, or zero if it is done.
func (t Trigger) first(a slots.Trigger, now time.Time) time.Time {
	return t.firingAt(a.First(now.Add(-t.delay())))
}

func (t Trigger) validateJitter() error {
	switch {
	case t.Jitter < 0 || t.Jitter > maxJitter || t.Jitter%time.Millisecond != 0:
		return fmt.Errorf("jitter (%s) must be from 0s to %s, in whole milliseconds", t.Jitter, maxJitter)
	case t.Jitter > 0 && t.Kind == TriggerOnce:
		return fmt.Errorf("jitter (%s) must not be set for kind ONCE", t.Jitter)
	}
	return nil
}
