package demo

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func pidOf(w *worker) string { return strconv.Itoa(w.pid) }

// example is a story of four workers with worker 2 killed, and a snapshot taken before the take-over.
func example() (*story, *strings.Builder, snapshot) {
	var out strings.Builder
	c := &fleet{}
	for i, pid := range []int{4711, 4712, 4713, 1234567} {
		c.workers = append(c.workers, &worker{number: i + 1, pid: pid, killed: i == 1, gone: make(chan struct{})})
	}
	return &story{fleet: c, out: &out, began: time.Now()}, &out, snapshot{
		queues: []queue{
			{"0", "h:4711:a", "HELD"},
			{"1", "h:4712:b", "OVERDUE"},
			{"2", "h:4713:c", "MOVING"},
			{"3", "", "UNASSIGNED"},
			{"5", "fe80::1:1234567:d", "HELD"}, // a host name with colons
		},
		settled: map[string]int{"h:4711:a": 5000, "h:4712:b": 2500, "h:4713:c": 1000, "h:1234567:d": 500},
	}
}

func TestTellState(t *testing.T) {
	s, out, now := example()
	s.tellState(now)
	const want = `         worker 1  pid 4711     5,000 orders  queues 0
         worker 2  killed       2,500 orders  queues 1
         worker 3  pid 4713     1,000 orders  queues 2
         worker 4  pid 1234567    500 orders  queues 5
         no owner: queues 3
         45 %  9,000 of 20,000 orders

`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTellEvents(t *testing.T) {
	s, out, _ := example()
	s.tellEvents([]event{
		{kind: "JOINED", to: "h:1234567:d"},
		{kind: "GRANTED", queue: "0", to: "h:4711:a"},
		{kind: "GRANTED", queue: "3", to: "h:4711:a"},
		{kind: "GRANTED", queue: "4", to: "h:4713:c"},
		{kind: "REQUESTED", queue: "2", from: "h:4713:c", to: "h:1234567:d"},
		{kind: "RELEASED", queue: "2", from: "h:4713:c", to: "h:1234567:d"},
		{kind: "EXPIRED", from: "h:4712:b", reason: "silent for 2.6s"},
		{kind: "TAKEN_OVER", queue: "1", from: "h:4712:b", to: "h:9:stranger"},
	})
	const want = `   JOINED      worker 4
   GRANTED     worker 1  queue 0 3
   GRANTED     worker 3  queue 4
   RELEASED    worker 3 → worker 4  queue 2
   EXPIRED     worker 2  silent for 2.6s
   TAKEN_OVER  worker 2 → h:9:stranger  queue 1
`
	if diff := cmp.Diff(want, regexp.MustCompile(`(?m)^ +[0-9.]+ s  `).ReplaceAllString(out.String(), "")); diff != "" {
		t.Error(diff)
	}
}
