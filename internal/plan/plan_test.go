package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

func servers(uuids ...string) []plan.Server {
	var r plantest.Roster
	r.Join(uuids...)
	return r.Servers
}

// The table of rule P8. It comes from the documentation of TBSchedule.
func TestPlanTableOfP8(t *testing.T) {
	r := plantest.Roster{Queues: plantest.Numbered(1, 5)}
	steps := []struct {
		join string
		want []string
	}{
		{"A", []string{"A", "A", "A", "A", "A"}},
		{"B", []string{"A", "A>B", "A", "A>B", "A"}},
		{"C", []string{"A", "A>B", "A>C", "A", "A>B"}},
		{"D", []string{"A", "A>B", "A>C", "A>D", "A"}},
	}
	for _, step := range steps {
		r.Join(step.join)
		rebalance(t, &r)
		if diff := cmp.Diff(step.want, r.Rows()); diff != "" {
			t.Fatalf("%s joins (-want +got):\n%s", step.join, diff)
		}
	}
	r.ReleaseAll("A")
	if diff := cmp.Diff([]string{"A", "B", "C", "D", "A"}, r.Rows()); diff != "" {
		t.Fatalf("A releases (-want +got):\n%s", diff)
	}
}

func rebalance(t interface{ Fatal(...any) }, r *plantest.Roster) {
	if err := r.Rebalance(); err != nil {
		t.Fatal(err)
	}
}

// draining returns the servers, one of them draining.
func draining(s []plan.Server, uuid string) []plan.Server {
	for i := range s {
		if s[i].UUID == uuid {
			s[i].Eligible = false
		}
	}
	return s
}

// hung returns the servers, one of them with calls that hang for the queues.
func hung(s []plan.Server, uuid string, queues ...string) []plan.Server {
	for i := range s {
		if s[i].UUID == uuid {
			s[i].HungQueues = queues
		}
	}
	return s
}

// planCases are rosters, and the rows of their plans.
var planCases = []struct {
	name    string
	queues  []plan.Queue
	servers []plan.Server
	limit   int
	want    []string
}{
	{
		"P1 ids sort naturally",
		[]plan.Queue{{ID: "10"}, {ID: "2"}, {ID: "1"}},
		servers("A", "B", "C"), 0,
		[]string{"C", "B", "A"}, // rows 10, 2, 1
	},
	{
		"P2 the larger quota goes to the server with most queues",
		[]plan.Queue{{ID: "0", Owner: "B"}, {ID: "1", Owner: "B"}, {ID: "2"}},
		servers("A", "B"), 0,
		[]string{"B", "B", "A"},
	},
	{
		"P2 among equals, the larger quota goes to the older server",
		plantest.Numbered(0, 3), servers("A", "B"), 0,
		[]string{"A", "B", "A"},
	},
	{
		"P3 a server keeps the queues of its own position first",
		[]plan.Queue{{ID: "0", Owner: "B"}, {ID: "1", Owner: "B"}, {ID: "2", Owner: "B"}, {ID: "3", Owner: "B"}},
		servers("A", "B"), 0,
		[]string{"B>A", "B", "B>A", "B"},
	},
	{
		"P4 a queue goes to its own position, or to the next with room",
		[]plan.Queue{{ID: "0", Owner: "C"}, {ID: "1"}, {ID: "2"}, {ID: "3"}},
		servers("A", "B", "C", "D"), 0,
		[]string{"C", "B", "D", "A"},
	},
	{
		"P6 requests are computed over the result of the first pass",
		[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "A"}, {ID: "2", Owner: "A"}, {ID: "3"}},
		servers("A", "B"), 0,
		[]string{"A", "A>B", "A", "B"},
	},
	{
		"P5 a queue of a dead owner is assigned at once",
		[]plan.Queue{{ID: "0", Owner: "dead"}, {ID: "1", Owner: "A"}, {ID: "2", Owner: "A"}},
		servers("A", "B"), 0,
		[]string{"B", "A", "A"},
	},
	{
		"P5 an unneeded request is withdrawn",
		[]plan.Queue{{ID: "0", Owner: "A", Requester: "gone"}, {ID: "1", Owner: "B", Requester: "A"}},
		servers("A", "B"), 0,
		[]string{"A", "B"},
	},
	{
		"P7 a queue beyond all limits gets no owner",
		plantest.Numbered(0, 5), servers("A", "B"), 2,
		[]string{"A", "B", "A", "B", "-"},
	},
	{
		"P7 an owner over its limit keeps the queues that no server may take",
		[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "A"}, {ID: "2", Owner: "A"}},
		servers("A"), 2,
		[]string{"A", "A", "A"},
	},
	{
		"P7 a queue without an owner comes before the surplus of an owner",
		[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "A"}, {ID: "2"}},
		servers("A", "B"), 1,
		[]string{"A", "A", "B"},
	},
	{
		"P7 a live owner that is not eligible keeps its queues while no server is eligible",
		[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "dead"}},
		draining(servers("A"), "A"), 0,
		[]string{"A", "-"},
	},
	{
		"P5 the queues of a draining owner are requested",
		[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "B"}},
		draining(servers("A", "B"), "A"), 0,
		[]string{"A>B", "B"},
	},
	{
		"N2 a queue being removed has no requester and counts in no quota",
		[]plan.Queue{{ID: "0", Owner: "A", Requester: "B", Removing: true}, {ID: "1", Owner: "A", Removing: true}, {ID: "2"}, {ID: "3"}},
		servers("A", "B"), 0,
		[]string{"A", "A", "A", "B"},
	},
	{
		"N2 a queue being removed loses a dead owner and gets no other",
		[]plan.Queue{{ID: "0", Owner: "dead", Removing: true}, {ID: "1", Removing: true}, {ID: "2", Owner: "dead"}},
		servers("A"), 0,
		[]string{"-", "-", "A"},
	},
	{
		"P9 a queue goes to a server on which no call of it hangs, also beyond the average",
		[]plan.Queue{{ID: "0", Owner: "dead"}, {ID: "1", Owner: "B"}},
		hung(servers("A", "B"), "A", "0"), 0,
		[]string{"B", "B>A"},
	},
	{
		"P9 a queue that hangs on each server has no owner",
		[]plan.Queue{{ID: "0", Owner: "dead"}, {ID: "1"}, {ID: "2"}},
		hung(servers("A"), "A", "0"), 0,
		[]string{"-", "A", "A"},
	},
	{
		"P9 a queue has no owner if the others have no room",
		[]plan.Queue{{ID: "0"}, {ID: "1", Owner: "B"}, {ID: "2", Owner: "A"}},
		hung(servers("A", "B"), "A", "0", "1"), 1,
		[]string{"-", "B", "A"},
	},
	{
		"P7 a queue that no server has room for takes room of its owner",
		[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "B"}, {ID: "2"}},
		hung(hung(servers("A", "B"), "A", "0", "1"), "B", "2"), 1,
		[]string{"A", "B", "-"},
	},
	{
		"P7 a queue that makes room for another keeps the room where it goes",
		[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1"}, {ID: "2"}},
		hung(hung(servers("A", "B"), "A", "2"), "B", "1"), 1,
		[]string{"A>B", "A", "-"},
	},
	{
		"P9 no queue is requested for a server on which its call hangs",
		[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "A"}, {ID: "2", Owner: "A", Requester: "B"}},
		hung(servers("A", "B"), "B", "1", "2"), 0,
		[]string{"A>B", "A", "A"},
	},
	{
		"P9 an owner hands over the queue of its own hung call",
		[]plan.Queue{{ID: "0", Owner: "A"}, {ID: "1", Owner: "A"}},
		hung(servers("A", "B"), "A", "1"), 0,
		[]string{"A", "A>B"},
	},
	{
		"P5 without any live server, owners and requests are cleared",
		[]plan.Queue{{ID: "0", Owner: "dead", Requester: "B"}},
		nil, 0,
		[]string{"-"},
	},
}

func TestPlanCases(t *testing.T) {
	for _, c := range planCases {
		t.Run(c.name, func(t *testing.T) {
			r := plantest.Roster{Queues: c.queues, Servers: c.servers, Limits: plan.Limits{QueuesPerServer: c.limit}}
			rebalance(t, &r)
			if diff := cmp.Diff(c.want, r.Rows()); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
		})
	}
}

// P1: ids sort naturally, whether all are numbers or not. Each queue goes to the server at its position.
func TestPlanSortsNaturally(t *testing.T) {
	for _, want := range [][]string{
		{"0", "2", "3", "10", "100"},
		{"01", "1", "2", "10", "18446744073709551616"},
		{"2", "10", "a2", "a10", "b"},
	} {
		var queues []plan.Queue
		for _, id := range want {
			queues = append(queues, plan.Queue{ID: id})
		}
		slices.Reverse(queues)
		var got []string
		for i, c := range plan.Plan(queues, servers("A", "B", "C", "D", "E"), plan.Limits{}).Changes {
			got = append(got, c.QueueID)
			if c.Owner != string(rune('A'+i)) {
				t.Errorf("queue %s went to %s, want %c", c.QueueID, c.Owner, 'A'+i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in order: %v, want %v", got, want)
		}
	}
}

// P2 shares follow the weights, and what the limits leave goes to servers without one.
func TestPlanOfWeights(t *testing.T) {
	for _, c := range []struct {
		queues, limit int
		weights       []int
		want          []int
	}{
		{8, 0, []int{1, 3}, []int{2, 6}},
		{10, 0, []int{1, 1, 2}, []int{3, 2, 5}}, // exact shares 2.5, 2.5 and 5: the older server is rounded up
		{4, 0, []int{1, 1, 1000}, []int{0, 0, 4}},
		{5, 0, []int{2, 0}, []int{5, 0}},
		{5, 0, []int{0, 0}, []int{3, 2}},
		{10, 4, []int{1, 3, 1}, []int{3, 4, 3}},
		{5, 2, []int{1, 0, 0}, []int{2, 2, 1}},
		{9, 2, []int{1, 0, 0}, []int{2, 2, 2}},
		{4, 0, []int{5, 1}, []int{3, 1}}, // exact shares 3.33 and 0.67: the larger remainder is rounded up
		{16, 0, []int{10, 10, 1}, []int{8, 7, 1}},
		{1, 0, []int{100, 60}, []int{1, 0}},
	} {
		r := plantest.Roster{Queues: plantest.Numbered(0, c.queues), Limits: plan.Limits{QueuesPerServer: c.limit}}
		for i, weight := range c.weights {
			r.Join(string(rune('A' + i)))
			r.Servers[i].Weight = weight
		}
		rebalance(t, &r)
		owned := r.Owned()
		got := make([]int, len(c.want))
		for i := range got {
			got[i] = owned[string(rune('A'+i))]
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%d queues with limit %d and weights %v (-want +got):\n%s", c.queues, c.limit, c.weights, diff)
		}
	}
}

// P12: a pin, or a call that hangs, keeps the heaviest server from every queue. The place that the limits give it would
// leave the queues without an owner, while another server stands by that may have them.
func TestServerThatMayGetNoQueueTakesNoPlace(t *testing.T) {
	t.Parallel()
	pin, err := plan.ParseSelector("host=web2")
	if err != nil {
		t.Fatal(err)
	}
	queues := map[string]plan.Queue{"pin": {ID: "0", Pin: pin}, "hung": {ID: "0"}}
	limits := map[string]plan.Limits{
		"max_servers": {Servers: 1}, "max_servers_per_host": {ServersPerHost: 1}, "max_in_flight": {InFlight: 1},
	}
	for keptBy, queue := range queues {
		for name, limit := range limits {
			servers := []plan.Server{
				{UUID: "a", Host: "web1", Eligible: true, Weight: 2, HungQueues: []string{"0"}},
				{UUID: "b", Host: "web2", Eligible: true, Weight: 1},
			}
			if keptBy == "pin" {
				servers[0].HungQueues = nil
			}
			if name == "max_servers_per_host" && keptBy == "hung" {
				servers[1].Host = "web1"
			}
			changes := plan.Plan([]plan.Queue{queue}, servers, limit).Changes
			if len(changes) != 1 || changes[0].Owner != "b" {
				t.Errorf("%s, %s: the changes are %+v, want that b gets the queue", keptBy, name, changes)
			}
		}
	}
}
