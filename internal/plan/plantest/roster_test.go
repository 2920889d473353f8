package plantest

import (
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/plan"
)

// newRoster returns queue 0 of A, requested by B; queue 1 of a dead server; queue 2 of A.
func newRoster() *Roster {
	r := &Roster{Queues: []plan.Queue{
		{ID: "0", Owner: "A", Requester: "B", Epoch: 7},
		{ID: "1", Owner: "dead", Epoch: 7},
		{ID: "2", Owner: "A", Epoch: 7},
	}}
	r.Join("A", "B", "C")
	r.Drain("C")
	r.Servers[0].HungQueues = []string{"1"}
	r.Servers[1].HungQueues = []string{"2"}
	return r
}

func TestApplyRefuses(t *testing.T) {
	for want, c := range map[string]plan.Change{
		"no such queue":             {QueueID: "9", Owner: "A"},
		"row changed meanwhile":     {QueueID: "1", OldOwner: "dead", OldEpoch: 6, Owner: "A"},
		"row changed meanwhile: {":  {QueueID: "1", OldOwner: "A", OldEpoch: 7, Owner: "B"},
		"the old owner is live":     {QueueID: "0", OldOwner: "A", OldEpoch: 7, Owner: "B"},
		"the new owner is dead":     {QueueID: "1", OldOwner: "dead", OldEpoch: 7, Owner: "dead"},
		"hangs on the new owner":    {QueueID: "1", OldOwner: "dead", OldEpoch: 7, Owner: "A"},
		"owner or requester":        {QueueID: "2", OldOwner: "A", OldEpoch: 7, Owner: "A", Requester: "B"},
		"hand over to this request": {QueueID: "2", OldOwner: "A", OldEpoch: 7, Owner: "A", Requester: "C"},
	} {
		if err := newRoster().Apply([]plan.Change{c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Apply(%+v): %v, want %q", c, err, want)
		}
	}
}

func TestEpochCountsOwners(t *testing.T) {
	r := newRoster()
	if r.Release("0", "A", 6) || r.Release("0", "B", 7) || r.Release("2", "A", 7) {
		t.Error("released under another epoch, by another owner, or without a request")
	}
	if !r.Release("0", "A", 7) {
		t.Error("not released")
	}
	err := r.Apply([]plan.Change{
		{QueueID: "1", OldOwner: "dead", OldEpoch: 7, Owner: "B"},
		{QueueID: "0", OldOwner: "B", OldEpoch: 8, Owner: "B", Requester: "A"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"B>A", "B", "A"}; !slices.Equal(r.Rows(), want) {
		t.Errorf("rows %v, want %v", r.Rows(), want)
	}
	for id, want := range map[string]int64{"0": 8, "1": 8, "2": 7} {
		if got := r.Queue(id).Epoch; got != want {
			t.Errorf("epoch of queue %s is %d, want %d", id, got, want)
		}
	}
}

func TestReleaseNeedsAnEligibleRequester(t *testing.T) {
	r := newRoster()
	r.Servers[1].HungQueues = []string{"0"}
	if r.Release("0", "A", 7) {
		t.Error("P9: released to a server on which a call of the queue hangs")
	}
	r.Servers[1].HungQueues = nil
	r.Drain("B")
	if r.Release("0", "A", 7) {
		t.Error("released to a draining server")
	}
	r.Remove("B")
	if r.Release("0", "A", 7) {
		t.Error("released to a server that has left")
	}
}
