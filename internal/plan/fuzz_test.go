package plan

import (
	"slices"
	"strings"
	"testing"
)

// Any list of queue ids gets a plan in which each queue has an owner, and a second plan changes nothing.
func FuzzQueueList(f *testing.F) {
	for _, ids := range []string{"0,1,2,10", "north,south", "1,01,1-a", "99999999999999999999999,9", "é1,\xff1,١", ",a1b2,a01b2", "18446744073709551616,0"} {
		f.Add(ids, uint8(2))
	}
	f.Fuzz(func(t *testing.T, list string, servers uint8) {
		ids := strings.Split(list, ",")
		slices.Sort(ids)
		ids = slices.Compact(ids)
		var queues []Queue
		for _, id := range ids {
			queues = append(queues, Queue{ID: id})
			for _, other := range ids {
				if CompareIDs(id, other) != -CompareIDs(other, id) || CompareIDs(id, other) == 0 && id != other {
					t.Fatalf("the order of %q and %q", id, other)
				}
			}
		}
		checkPlan(t, queues, int(servers%5)+1)
	})
}

func checkPlan(t *testing.T, queues []Queue, count int) {
	t.Helper()
	var servers []Server
	for i := range count {
		servers = append(servers, Server{UUID: string(rune('a' + i)), Eligible: true})
	}
	owners := map[string]string{}
	for _, c := range Plan(queues, servers, Limits{}).Changes {
		owners[c.QueueID] = c.Owner
	}
	for i := range queues {
		if queues[i].Owner = owners[queues[i].ID]; queues[i].Owner == "" {
			t.Fatalf("queue %q has no owner", queues[i].ID)
		}
	}
	if again := Plan(queues, servers, Limits{}).Changes; len(again) > 0 {
		t.Errorf("a second plan: %+v", again)
	}
}
