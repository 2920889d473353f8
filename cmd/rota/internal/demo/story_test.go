package demo

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/ops"
)

func pidOf(w *worker) string { return strconv.Itoa(w.process.Pid) }

// example is a story of four workers with worker 2 killed, and a snapshot taken before the take-over.
func example() (*story, *strings.Builder, snapshot) {
	var out strings.Builder
	c := &fleet{}
	for i, pid := range []int{4711, 4712, 4713, 1234567} {
		c.workers = append(c.workers, &worker{number: i + 1, process: &os.Process{Pid: pid}, killed: i == 1, gone: make(chan struct{})})
	}
	return &story{fleet: c, out: &out, began: time.Now()}, &out, snapshot{
		queues: []ops.QueueRecord{
			{QueueID: "0", CurServer: new("h:4711:a"), Status: "HELD"},
			{QueueID: "1", CurServer: new("h:4712:b"), Status: "OVERDUE"},
			{QueueID: "2", CurServer: new("h:4713:c"), Status: "MOVING"},
			{QueueID: "3", Status: "UNASSIGNED"},
			{QueueID: "5", CurServer: new("fe80::1:1234567:d"), Status: "HELD"}, // a host name with colons
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
	s.tellEvents([]ops.EventRecord{
		{Kind: "JOINED", ToServer: new("h:1234567:d")},
		{Kind: "GRANTED", QueueID: new("0"), ToServer: new("h:4711:a")},
		{Kind: "GRANTED", QueueID: new("3"), ToServer: new("h:4711:a")},
		{Kind: "GRANTED", QueueID: new("4"), ToServer: new("h:4713:c")},
		{Kind: "REQUESTED", QueueID: new("2"), FromServer: new("h:4713:c"), ToServer: new("h:1234567:d")},
		{Kind: "RELEASED", QueueID: new("2"), FromServer: new("h:4713:c"), ToServer: new("h:1234567:d")},
		{Kind: "EXPIRED", FromServer: new("h:4712:b"), Reason: "silent for 2.6s"},
		{Kind: "TAKEN_OVER", QueueID: new("1"), FromServer: new("h:4712:b"), ToServer: new("h:9:stranger")},
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

// What the demo reads from the database reaches the terminal only escaped.
func TestTellEscapes(t *testing.T) {
	s, out, _ := example()
	s.tellEvents([]ops.EventRecord{{Kind: ops.EventExpired, Reason: "a\x1b]0;x\x07"}})
	if !strings.HasSuffix(out.String(), `  a\x1b]0;x\a`+"\n") {
		t.Errorf("%q", out.String())
	}
}
