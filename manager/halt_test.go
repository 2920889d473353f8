package manager

import (
	"testing"

	"github.com/dutyrota/rota/internal/roster"
)

// The log says what a halt is for, and what the worker does.
func TestHaltText(t *testing.T) {
	t.Parallel()
	for want, reply := range map[string]roster.HeartbeatReply{
		"the task type is paused: the worker finishes what is in flight, and keeps its queues":                {Paused: true},
		"the number of queues changes to 12: the worker finishes what is in flight, and waits for the others": {RequestedTotal: 12},
		"the worker works its queues again": {},
	} {
		if got := haltText(heartbeatReply{HeartbeatReply: reply}); got != want {
			t.Errorf("%+v: %q, want %q", reply, got, want)
		}
	}
}
