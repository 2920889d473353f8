package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

// drawReserved draws a roster in which queues without an owner are reserved for names. Some live servers have names.
func drawReserved(t *rapid.T) *plantest.Roster {
	r := drawRoster(t)
	name := rapid.SampledFrom([]string{"", "", "web-0", "web-1", "web-2"})
	for i := range r.Servers {
		r.Servers[i].Name = name.Draw(t, "name")
	}
	for i := range r.Queues {
		if name := name.Draw(t, "reserved"); name != "" && rapid.Bool().Draw(t, "ownerless") {
			r.Queues[i].Owner, r.Queues[i].ReservedFor = "", name
		}
	}
	return r
}

// P13: the plan is the one of a roster without the queues of absent servers, in which the servers that have returned
// own their queues already.
func TestReservedQueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawReserved(t)
		named := map[string][]plan.Server{}
		for _, s := range before.Servers {
			named[s.Name] = append(named[s.Name], s)
		}
		without := before.Clone()
		back := map[string]string{} // the servers that get queues back
		without.Queues = slices.DeleteFunc(without.Queues, func(q plan.Queue) bool {
			return q.ReservedFor != "" && q.Owner == "" && !q.Removing && len(named[q.ReservedFor]) == 0
		})
		for i := range without.Queues {
			q := &without.Queues[i]
			list := named[q.ReservedFor]
			if q.ReservedFor != "" && q.Owner == "" && !q.Removing && len(list) == 1 && list[0].Eligible && q.Pin.Matches(list[0]) && !slices.Contains(list[0].HungQueues, q.ID) {
				back[q.ID] = list[0].UUID
				q.Owner = back[q.ID]
			}
			q.ReservedFor = ""
		}
		without.Limits, before.Limits = plan.Limits{}, plan.Limits{}
		got := map[string]plan.Change{}
		for _, c := range before.Plan() {
			if waits := !slices.ContainsFunc(without.Queues, func(q plan.Queue) bool { return q.ID == c.QueueID }); waits && (c.Owner != "" || c.Requester != "") {
				t.Fatalf("a queue that waits for its server: %+v", c)
			} else if !waits {
				got[c.QueueID] = c
			}
		}
		want := map[string]plan.Change{}
		for _, c := range without.Plan() {
			want[c.QueueID] = c
		}
		for id, uuid := range back {
			c, ok := want[id]
			if !ok {
				for _, q := range without.Queues {
					if q.ID == id {
						c = plan.Change{QueueID: id, OldEpoch: q.Epoch, OldRequester: q.Requester, Owner: uuid, Requester: q.Requester}
					}
				}
			}
			c.OldOwner, c.Rule, c.Reason = "", plan.Unowned, "it has no live owner"
			if c.Requester != "" {
				c.Rule, c.Reason = got[id].Rule, got[id].Reason // why it goes on to the requester
			}
			want[id] = c
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// P13: planning again over the result changes nothing.
func TestReservedQueuesAreStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawReserved(t)
		rebalance(t, r)
		if again := r.Plan(); len(again) > 0 {
			t.Fatalf("planning again changes %+v", again)
		}
	})
}

// P13: no queue moves when a server leaves for a while and returns. It keeps its place among the servers that work.
func TestReturnMovesNoQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &plantest.Roster{Queues: plantest.Numbered(0, rapid.IntRange(0, 40).Draw(t, "queues"))}
		r.Servers = servers("A", "B", "C", "D", "E", "F")[:rapid.IntRange(2, 6).Draw(t, "servers")]
		r.Limits.Servers = rapid.IntRange(0, 7).Draw(t, "limit")
		for i := range r.Servers {
			r.Servers[i].Name = "of " + r.Servers[i].UUID
		}
		rebalance(t, r)
		r.ReleaseAll("")
		at := rapid.IntRange(0, len(r.Servers)-1).Draw(t, "leaves")
		leaves := r.Servers[at]
		r.Servers[at].Eligible, r.Servers[at].Leaving = false, true
		if changes := r.Plan(); r.Owned()[leaves.UUID] > 0 && len(changes) > 0 {
			t.Fatalf("while %s is about to leave: %+v", leaves.UUID, changes)
		}
		r.Servers = slices.Delete(r.Servers, at, at+1)
		for i := range r.Queues {
			if q := &r.Queues[i]; q.Owner == leaves.UUID {
				q.Owner, q.ReservedFor = "", leaves.Name
			}
		}
		owned := slices.ContainsFunc(r.Queues, func(q plan.Queue) bool { return q.ReservedFor != "" })
		if changes := r.Plan(); owned && len(changes) > 0 {
			t.Fatalf("while %s is away: %+v", leaves.UUID, changes)
		}
		back := leaves
		back.UUID, back.RegisterTime = "back", back.RegisterTime.Add(1000*1000*1000*1000)
		r.Servers = append(r.Servers, back)
		for _, c := range r.Plan() {
			if owned && (c.Owner != back.UUID || c.Requester != "") {
				t.Fatalf("when %s is back: %+v", leaves.UUID, c)
			}
		}
	})
}

// P13: the limits hold for a server that returns as for any other.
func TestReturnWithinLimits(t *testing.T) {
	for _, limits := range []plan.Limits{{QueuesPerServer: 1}, {Servers: 1}, {InFlight: 1}} {
		r := &plantest.Roster{Queues: plantest.Numbered(0, 2), Limits: limits}
		r.Join("A", "back")
		r.Servers[0].Weight, r.Servers[1].Weight, r.Servers[1].Name = 2, 1, "web-0"
		for i := range r.Queues {
			r.Queues[i].ReservedFor = "web-0"
		}
		rebalance(t, r)
		want := []string{"A", "A"}
		if limits.QueuesPerServer > 0 {
			want = []string{"back", "A"}
		}
		if diff := cmp.Diff(want, r.Rows()); diff != "" {
			t.Errorf("limits %+v (-want +got):\n%s", limits, diff)
		}
	}
}

// P13: no plan requests a queue of a server that is about to return for another one, also if the server that had
// requested it dies or is paused.
func TestLeavingServerKeepsQueuesOfLostRequesters(t *testing.T) {
	for _, requester := range []string{"dead", "paused"} {
		r := &plantest.Roster{Queues: plantest.Numbered(0, 2)}
		r.Join("A", "B", "paused")
		r.Servers[0].Name, r.Servers[0].Eligible, r.Servers[0].Leaving = "web-0", false, true
		r.Drain("paused")
		r.Queues[0].Owner, r.Queues[0].Requester = "A", requester
		r.Queues[1].Owner, r.Queues[1].Requester = "A", "B" // it is handed over
		rebalance(t, r)
		if diff := cmp.Diff([]string{"A", "A>B"}, r.Rows()); diff != "" {
			t.Errorf("requested by a server that is %s (-want +got):\n%s", requester, diff)
		}
	}
}
