package verbs

import (
	"testing"

	"github.com/dutyrota/rota/ops"
)

// Queues go to no more workers than there are queues.
func TestQueuesGoToOthers(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]future{
		"1 queue goes to 1 other worker": {ServerRecord: ops.ServerRecord{Queues: 1}, others: 1}, "1 queue goes to another worker": {ServerRecord: ops.ServerRecord{Queues: 1}, others: 4},
		"2 queues go to 1 other worker": {ServerRecord: ops.ServerRecord{Queues: 2}, others: 1}, "2 queues go to other workers": {ServerRecord: ops.ServerRecord{Queues: 2}, others: 4},
	} {
		if got := f.goes(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
