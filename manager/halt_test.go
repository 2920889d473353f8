package manager

import (
	"testing"
	"time"
)

// H4: a server that hands everything over does not wait beyond its time, whether the roster knows of it or not.
func TestHandOverStage(t *testing.T) {
	past, future := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	for want, h := range map[handOverStage]*halt{
		noHandOver:    {unannounced: true},
		notAnnounced:  {unannounced: true, handOverBy: future},
		awaitsNews:    {handOverBy: future},
		waitsNoLonger: {unannounced: true, handOverBy: past},
	} {
		if got := h.stage(); got != want {
			t.Errorf("handed over by %s, unannounced %t: got %d, want %d", h.handOverBy, h.unannounced, got, want)
		}
	}
}
