package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
)

// The servers of the histories here and their processes.
const (
	a, pidA = "host:1:aaaa", 1
	b, pidB = "host:2:bbbb", 2
)

// at is a moment in a history, in milliseconds.
func at(ms int) time.Time { return time.UnixMilli(int64(1_000_000 + ms)) }

// good is a history of one queue: A is granted it, works two items, stands still in the third while B takes
// over and does that one; later B hands the queue back in order.
func good() History {
	return History{
		JudgeDead: 1000 * time.Millisecond,
		Trust:     800 * time.Millisecond,
		Events: []Event{
			{At: at(0), Kind: center.EventJoined, To: a},
			{At: at(10), Kind: center.EventGranted, Queue: "0", To: a, Epoch: 1},
			{At: at(1500), Kind: center.EventExpired, From: a},
			{At: at(1510), Kind: center.EventTakenOver, Queue: "0", From: a, To: b, Epoch: 2},
			{At: at(4000), Kind: center.EventRequested, Queue: "0", From: b, To: "host:1:cccc", Epoch: 2},
			{At: at(4100), Kind: center.EventReleased, Queue: "0", From: b, To: "host:1:cccc", Epoch: 3},
		},
		Spans: []Span{
			span(pidA, a, 1, 20, 30, 40),
			span(pidA, a, 1, 400, 3010, 3020), // the one that was interrupted, and then met the fence
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
	return Span{Process: pid, Server: server, Queue: "0", Epoch: epoch, Begin: at(begin), WorkEnd: at(worked), End: at(end)}
}

func TestCheckAcceptsGoodHistories(t *testing.T) {
	for name, change := range map[string]func(*History){
		"as it is":  func(*History) {},
		"no events": func(h *History) { *h = History{} },
		"killed in the item": func(h *History) {
			h.Windows = []Window{{Process: pidA, Kind: Death, From: at(450)}}
			h.Spans[1].WorkEnd, h.Spans[1].End, h.Spans[1].LastSeen = time.Time{}, time.Time{}, at(450)
		},
		"cut off, and stopped in time": func(h *History) {
			h.Windows[0].Kind = Partition
			h.Spans[1] = span(pidA, a, 1, 400, 1300, 3020) // the driver did not let go of the transaction
		},
		"a registration that nobody knows of expires": func(h *History) {
			h.Events = append(h.Events, Event{At: at(5000), Kind: center.EventExpired, From: "host:2:dddd"})
			h.Stillborn = []string{"host:2:dddd"}
		},
		"stopped between the question and the call": func(h *History) {
			h.Spans = append(h.Spans, span(pidA, a, 1, 3001, 3002, 3003))
		},
		"the owner keeps the queue": func(h *History) {
			h.Events = append(h.Events, Event{At: at(4200), Kind: center.EventRetaken, Queue: "0", From: "host:1:cccc", To: "host:1:cccc", Epoch: 4})
		},
		"the owner leaves, and there is nobody": func(h *History) {
			h.Events = append(h.Events,
				Event{At: at(4200), Kind: center.EventUnassigned, Queue: "0", From: "host:1:cccc", Epoch: 4},
				Event{At: at(4300), Kind: center.EventGranted, Queue: "0", To: a, Epoch: 9})
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

func TestCheckFindsViolations(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*History)
		want   []int // the invariants that are broken
	}{
		{"an epoch is used twice", func(h *History) {
			h.Events = append(h.Events, Event{At: at(5000), Kind: center.EventTakenOver, Queue: "0", From: "host:1:cccc", To: b, Epoch: 3})
		}, []int{1, 2, 4}},
		{"an epoch falls", func(h *History) {
			h.Events = append(h.Events, Event{At: at(5000), Kind: center.EventForced, Queue: "0", From: "host:1:cccc", To: b, Epoch: 0})
		}, []int{1}},
		{"two owners: granted away from somebody else", func(h *History) { h.Events[5].From = a }, []int{1}},
		{"two owners: granted although there is one", func(h *History) { h.Events[3].From = "" }, []int{1}},
		{"an effect of the old epoch after the take-over", func(h *History) {
			h.Effects = append(h.Effects, Effect{a, "0", 1, 6, 0})
			h.Items = append(h.Items, Item{6, true, 1})
		}, []int{2}},
		{"an effect under a stranger's epoch", func(h *History) { h.Effects[4].Server = b }, []int{2}},
		{"an effect under no epoch at all", func(h *History) { h.Effects[4].Epoch = 7 }, []int{2}},
		{"the same item takes effect twice", func(h *History) {
			h.Effects = append(h.Effects, Effect{"host:1:cccc", "0", 3, 3, 4})
			h.Items[2].Effects = 2
		}, []int{5}},
		{"an effect without a trace", func(h *History) { h.Items[0].Effects = 2 }, []int{5}},
		{"an item is lost", func(h *History) { h.Items = append(h.Items, Item{6, false, 0}) }, []int{5}},
		{"done without an effect", func(h *History) { h.Items = append(h.Items, Item{6, true, 0}) }, []int{5}},
		{"an effect on nothing", func(h *History) { h.Items = h.Items[:4] }, []int{5}},
		{"both work, and nothing is wrong", func(h *History) { h.Windows = []Window{{pidB, Pause, at(500), at(3000)}} }, []int{3, 10}},
		{"both work, after a pause that was too short", func(h *History) {
			h.Windows[0] = Window{pidA, Pause, at(500), at(550)}
			h.Spans[1].WorkEnd, h.Spans[1].End = at(1650), at(1650)
		}, []int{3, 10}},
		{"both work, cut off: the old owner should have stopped", func(h *History) { h.Windows[0].Kind = Partition }, []int{3}},
		{"both in a transaction, and nothing is wrong", func(h *History) {
			h.Spans[1].WorkEnd, h.Spans[1].End = at(410), at(1650)
			h.Windows = []Window{{Process: pidA, Kind: Death, From: at(1400)}}
		}, []int{3}},
		{"the pause excuses the old owner, not the new one", func(h *History) {
			h.Spans[1].Epoch, h.Spans[2].Epoch = 2, 1
		}, []int{3, 4}},
		{"released with a call under way", func(h *History) { h.Spans[3].End = at(4110) }, []int{4}},
		{"began before the release", func(h *History) { h.Spans[4].Begin = at(4090) }, []int{4}},
		{"began before the take-over", func(h *History) { h.Spans[2].Begin = at(1400) }, []int{4}},
		{"began after it was expired", func(h *History) { h.Spans = append(h.Spans, span(pidA, a, 1, 3050, 3060, 3070)) }, []int{9}},
		{"began in a partition, without trust", func(h *History) {
			h.Windows = append(h.Windows, Window{0, Partition, at(3000), at(4100)})
			h.Spans[3] = span(pidB, b, 2, 3900, 4050, 4060)
		}, []int{9}},
		{"the healthy is expired", func(h *History) {
			h.Events = append(h.Events, Event{At: at(5000), Kind: center.EventExpired, From: b})
		}, []int{10}},
		{"expired in an outage of all", func(h *History) {
			h.Events = append(h.Events, Event{At: at(6000), Kind: center.EventExpired, From: b})
			h.Windows = append(h.Windows, Window{0, Partition, at(4500), at(5900)})
		}, []int{10}},
		{"expired long after the pause", func(h *History) {
			h.Events = append(h.Events, Event{At: at(9000), Kind: center.EventExpired, From: "host:1:cccc"})
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
				t.Errorf("found %v, want the invariants %v", found, c.want)
			}
		})
	}
}
