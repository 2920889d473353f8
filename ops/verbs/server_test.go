package verbs

import (
	"testing"

	"github.com/dutyrota/rota/ops"
)

// Each queue goes where the plan sends it, or stays.
func TestQueuesGoToOthers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		queues, going    int64
		others           int
		inOrder, byForce string
	}{
		{0, 0, 0, "it owns no queues, and gets none until it is resumed", "it owns no queues, and gets none until it is resumed"},
		{2, 0, 0, "no other worker can take its 2 queues now: it waits", "its 2 queues have no owner until another worker can take over"},
		{1, 1, 1, "its 1 queue goes to 1 other worker as it finishes what it has in flight", "its 1 queue goes to 1 other worker at once"},
		{2, 2, 2, "its 2 queues go to other workers as it finishes what it has in flight", "its 2 queues go to other workers at once"},
		{
			4, 3, 1, "3 of its 4 queues go to 1 other worker as it finishes what it has in flight; no other worker can take the rest now: it waits",
			"3 of its 4 queues go to 1 other worker at once; the rest has no owner until another worker can take over",
		},
	} {
		f := future{ops.ServerRecord{Queues: test.queues}, test.going, test.others}
		if got := f.handOver("it waits"); got != test.inOrder {
			t.Errorf("in order: %q, want %q", got, test.inOrder)
		}
		if got := f.loseAll(); got != test.byForce {
			t.Errorf("by force: %q, want %q", got, test.byForce)
		}
	}
}
