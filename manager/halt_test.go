package manager

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// The log says what a halt is for, and what the worker does.
func TestHaltText(t *testing.T) {
	t.Parallel()
	for want, reply := range map[string]roster.HeartbeatReply{
		"the task type is paused: the worker finishes what is in flight, and keeps its queues":                {Paused: true},
		"the number of queues changes to 12: the worker finishes what is in flight, and waits for the others": {Repartition: roster.RepartitionReply{Total: 12}},
		"the worker works its queues again": {},
	} {
		if got := haltText(heartbeatReply{HeartbeatReply: reply}); got != want {
			t.Errorf("%+v: %q, want %q", reply, got, want)
		}
	}
}

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
