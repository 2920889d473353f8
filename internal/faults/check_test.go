package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// The servers of the histories in these tests, and their processes.
const (
	a, pidA = "host:1:aaaa", 1
	b, pidB = "host:2:bbbb", 2
)

// at returns the instant ms milliseconds after the start of a history.
func at(ms int) time.Time { return time.UnixMilli(int64(1_000_000 + ms)) }

// good returns a history of one queue without a violation. A is granted the queue and does two items. A stands still in
// the third item, B takes over and does that item. Later B hands the queue over.
func good() History {
	return History{
		JudgeDead: 1000 * time.Millisecond,
		Trust:     800 * time.Millisecond,
		Events: []Event{
			{At: at(0), Kind: ops.EventJoined, To: a},
			{At: at(10), Kind: ops.EventGranted, Queue: "0", To: a, Epoch: 1},
			{At: at(1500), Kind: ops.EventExpired, From: a},
			{At: at(1510), Kind: ops.EventTakenOver, Queue: "0", From: a, To: b, Epoch: 2},
			{At: at(4000), Kind: ops.EventRequested, Queue: "0", From: b, To: "host:1:cccc", Epoch: 2},
			{At: at(4100), Kind: ops.EventReleased, Queue: "0", From: b, To: "host:1:cccc", Epoch: 3},
		},
		Spans: []Span{
			span(pidA, a, 1, 20, 30, 40),
			span(pidA, a, 1, 400, 3010, 3020), // interrupted by the pause; the fence then rejects its transaction
			span(pidB, b, 2, 1600, 1700, 1710),
			span(pidB, b, 2, 4010, 4050, 4060),
			span(pidA, "host:1:cccc", 3, 4120, 4130, 4140),
		},
		Effects: []Effect{
			{a, "0", 1, 1, 0}, {a, "0", 1, 2, 0}, {b, "0", 2, 3, 2}, {b, "0", 2, 4, 2}, {"host:1:cccc", "0", 3, 5, 4},
		},
		Items:   []Item{{1, true, 1}, {2, true, 1}, {3, true, 1}, {4, true, 1}, {5, true, 1}},
		Windows: []Window{{pidA, Pause, at(500), at(3000)}},
	}
}

func span(pid int, server string, epoch int64, begin, worked, end int) Span {
	return Span{
		Process: pid, Server: server, Queue: "0", Epoch: epoch, Begin: at(begin), WorkEnd: at(worked),
		End: at(end),
	}
}

// rosterOf returns a roster of the servers A and B with these queues.
func rosterOf(rest bool, queues ...plan.Queue) Roster {
	servers := []plan.Server{
		{UUID: a, Host: "1", Eligible: true, Weight: 1},
		{UUID: b, Host: "2", Eligible: true, Weight: 1},
	}
	return Roster{At: at(100), Rest: rest, Plan: roster.PlanInput{Queues: queues, Servers: servers}}
}

func TestCheckAcceptsGoodHistories(t *testing.T) {
	for name, change := range map[string]func(*History){
		"unchanged": func(*History) {},
		"no events": func(h *History) { *h = History{} },
		"the owner is killed in an item": func(h *History) {
			h.Windows = []Window{{Process: pidA, Kind: Death, From: at(450)}}
			h.Spans[1].WorkEnd, h.Spans[1].End, h.Spans[1].LastSeen = time.Time{}, time.Time{}, at(450)
		},
		"the owner is cut off, and stops in time": func(h *History) {
			h.Windows[0].Kind = Partition
			h.Spans[1] = span(pidA, a, 1, 400, 1300, 3020) // the driver kept the transaction open
		},
		"a registration with a lost reply expires": func(h *History) {
			h.Events = append(h.Events, Event{At: at(5000), Kind: ops.EventExpired, From: "host:2:dddd"})
			h.Stillborn = []string{"host:2:dddd"}
		},
		"the owner is stopped between the permission and the call": func(h *History) {
			h.Spans = append(h.Spans, span(pidA, a, 1, 3001, 3002, 3003))
		},
		"the owner keeps the queue": func(h *History) {
			h.Events = append(h.Events, Event{
				At: at(4200), Kind: ops.EventRetaken, Queue: "0", From: "host:1:cccc",
				To: "host:1:cccc", Epoch: 4,
			})
		},
		"the roster is uneven while a plan is due, and while a queue is requested": func(h *History) {
			h.Rosters = []Roster{
				rosterOf(false, plan.Queue{ID: "0", Owner: a}, plan.Queue{ID: "1", Owner: a}),
				rosterOf(true, plan.Queue{ID: "0", Owner: a}, plan.Queue{ID: "1", Owner: a, Requester: b}),
				rosterOf(true, plan.Queue{ID: "0", Owner: a}, plan.Queue{ID: "1", Owner: b}),
			}
		},
		"a drain ends before a call, and another one begins after it": func(h *History) {
			h.Drains = []Drain{{pidB, "0", 2, at(3000), at(4005)}, {pidB, "0", 2, at(4020), time.Time{}}}
		},
		"data databases keep the effects of a take-over that the roster has lost": func(h *History) {
			*h = lostGrant()
		},
		"the last owner leaves": func(h *History) {
			h.Events = append(h.Events,
				Event{At: at(4200), Kind: ops.EventUnassigned, Queue: "0", From: "host:1:cccc", Epoch: 4},
				Event{At: at(4300), Kind: ops.EventGranted, Queue: "0", To: a, Epoch: 9})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := good()
			change(&h)
			for _, v := range Check(h) {
				t.Error(v)
			}
		})
	}
}

// lostGrant returns the good history after the roster has lost the grant of epoch 2 to B, and has given that epoch to
// C. Data databases still have B's effects under it, and rejected C. The epochs rise above 100.
func lostGrant() History {
	h := good()
	h.Events[3].To = "host:1:cccc"
	h.Events = append(h.Events[:4],
		Event{At: at(3900), Kind: ops.EventHistory, Epoch: 100},
		Event{At: at(4000), Kind: ops.EventForced, Queue: "0", From: "host:1:cccc", To: b, Epoch: 101})
	h.Spans = h.Spans[:3]
	h.Effects[4] = Effect{b, "0", 101, 5, 4}
	h.Witnessed = true
	return h
}

func TestCheckFindsViolations(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*History)
		want   []int // the broken invariants
	}{
		{"an epoch is used twice", func(h *History) {
			h.Events = append(h.Events, Event{
				At: at(5000), Kind: ops.EventTakenOver, Queue: "0", From: "host:1:cccc", To: b,
				Epoch: 3,
			})
		}, []int{1, 2, 4}},
		{"a queue stays with a server that has two more than another", func(h *History) {
			h.Rosters = append(h.Rosters, rosterOf(true, plan.Queue{ID: "0", Owner: a}, plan.Queue{ID: "1", Owner: a}))
		}, []int{20}},
		{"a queue has no owner although a server may own it", func(h *History) {
			h.Rosters = append(h.Rosters, rosterOf(true, plan.Queue{ID: "0"}, plan.Queue{ID: "1", Owner: a}))
		}, []int{20}},
		{"a queue stays with a server that its pin excludes", func(h *History) {
			pin, _ := plan.ParseSelector("host=2")
			h.Rosters = append(h.Rosters, rosterOf(true, plan.Queue{ID: "0", Owner: a, Pin: pin}, plan.Queue{ID: "1", Owner: b}))
		}, []int{20}},
		{"a call begins in a drain", func(h *History) {
			h.Drains = []Drain{{Process: pidB, Queue: "0", Epoch: 2, From: at(3900)}}
		}, []int{21}},
		{"an epoch falls", func(h *History) {
			h.Events = append(h.Events, Event{
				At: at(5000), Kind: ops.EventForced, Queue: "0", From: "host:1:cccc", To: b,
				Epoch: 0,
			})
		}, []int{1}},
		{"two owners: released by a server that is not the owner", func(h *History) { h.Events[5].From = a }, []int{1}},
		{"two owners: taken over as if there were no owner", func(h *History) { h.Events[3].From = "" }, []int{1}},
		{"an effect of the old epoch after the take-over", func(h *History) {
			h.Effects = append(h.Effects, Effect{a, "0", 1, 6, 0})
			h.Items = append(h.Items, Item{6, true, 1})
		}, []int{2}},
		{"an effect under another server's epoch", func(h *History) { h.Effects[4].Server = b }, []int{2}},
		{"an effect under an unknown epoch", func(h *History) { h.Effects[4].Epoch = 7 }, []int{2}},
		{"an effect under an epoch that the roster has lost, in its own database", func(h *History) {
			*h = lostGrant()
			h.Witnessed = false
		}, []int{2}},
		{"two servers have effects under an epoch that the roster has lost", func(h *History) {
			*h = lostGrant()
			h.Effects[3].Server = "host:1:cccc"
		}, []int{2}},
		{"an effect under another server's epoch after the loss", func(h *History) {
			*h = lostGrant()
			h.Effects[4].Server = a
		}, []int{2}},
		{"the same item takes effect twice", func(h *History) {
			h.Effects = append(h.Effects, Effect{"host:1:cccc", "0", 3, 3, 4})
			h.Items[2].Effects = 2
		}, []int{5}},
		{"an effect without a row in the history", func(h *History) { h.Items[0].Effects = 2 }, []int{5}},
		{"an item is lost", func(h *History) { h.Items = append(h.Items, Item{6, false, 0}) }, []int{5}},
		{"an item is done without an effect", func(h *History) { h.Items = append(h.Items, Item{6, true, 0}) }, []int{5}},
		{"an effect on an item that does not exist", func(h *History) { h.Items = h.Items[:4] }, []int{5}},
		{
			"both work, and the old owner is healthy",
			func(h *History) { h.Windows = []Window{{pidB, Pause, at(500), at(3000)}} },
			[]int{3, 10},
		},
		{"both work after a pause shorter than the trust", func(h *History) {
			h.Windows[0] = Window{pidA, Pause, at(500), at(550)}
			h.Spans[1].WorkEnd, h.Spans[1].End = at(1650), at(1650)
		}, []int{3, 10}},
		{
			"both work, and the old owner does not stop when cut off", func(h *History) { h.Windows[0].Kind = Partition },
			[]int{3},
		},
		{"both are in a transaction, and the old owner is healthy", func(h *History) {
			h.Spans[1].WorkEnd, h.Spans[1].End = at(410), at(1650)
			h.Windows = []Window{{Process: pidA, Kind: Death, From: at(1400)}}
		}, []int{3}},
		{"the pause hits the new owner", func(h *History) {
			h.Spans[1].Epoch, h.Spans[2].Epoch = 2, 1
		}, []int{3, 4}},
		{"a release while a call is in flight", func(h *History) { h.Spans[3].End = at(4110) }, []int{4}},
		{"a call begins before the release", func(h *History) { h.Spans[4].Begin = at(4090) }, []int{4}},
		{"a call begins before the take-over", func(h *History) { h.Spans[2].Begin = at(1400) }, []int{4}},
		{
			"a call begins after its server expired",
			func(h *History) { h.Spans = append(h.Spans, span(pidA, a, 1, 3050, 3060, 3070)) },
			[]int{9},
		},
		{"a call begins in a partition after the end of the trust", func(h *History) {
			h.Windows = append(h.Windows, Window{0, Partition, at(3000), at(4100)})
			h.Spans[3] = span(pidB, b, 2, 3900, 4050, 4060)
		}, []int{9}},
		{"a healthy server expires", func(h *History) {
			h.Events = append(h.Events, Event{At: at(5000), Kind: ops.EventExpired, From: b})
		}, []int{10}},
		{"a server expires in an outage that hits all", func(h *History) {
			h.Events = append(h.Events, Event{At: at(6000), Kind: ops.EventExpired, From: b})
			h.Windows = append(h.Windows, Window{0, Partition, at(4500), at(5900)})
		}, []int{10}},
		{"a server expires long after its pause", func(h *History) {
			h.Events = append(h.Events, Event{At: at(9000), Kind: ops.EventExpired, From: "host:1:cccc"})
		}, []int{10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := good()
			c.change(&h)
			found := Check(h)
			var got []int
			for _, v := range found {
				got = append(got, v.Invariant)
			}
			if got = slices.Compact(got); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("Check found %v, want violations of the invariants %v", found, c.want)
			}
		})
	}
}
