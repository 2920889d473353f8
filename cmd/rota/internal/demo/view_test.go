package demo

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"
)

func pidOf(w *worker) string { return strconv.Itoa(w.pid) }

// example is a fleet of four with worker 2 killed, and a snapshot taken before the take-over.
func example() (*fleet, snapshot) {
	c := &fleet{}
	for i, pid := range []int{4711, 4712, 4713, 1234567} {
		c.workers = append(c.workers, &worker{number: i + 1, pid: pid, killed: i == 1, gone: make(chan struct{})})
	}
	return c, snapshot{
		queues: []queue{
			{"0", "h:4711:a", "", "HELD"},
			{"1", "h:4712:b", "", "OVERDUE"},
			{"2", "h:4713:c", "h:1234567:d", "MOVING"},
			{"3", "", "", "UNASSIGNED"},
			{"5", "fe80::1:1234567:d", "", "HELD"}, // a host name with colons
		},
		settled: map[string]int{"h:4711:a": 5000, "h:4712:b": 2500, "h:4713:c": 1000, "h:1234567:d": 500},
	}
}

func TestState(t *testing.T) {
	fleet, now := example()
	want := []string{
		"",
		"   worker 1  pid 4711     5,000 orders  queues 0",
		"   worker 2  killed       2,500 orders  queues 1",
		"   worker 3  pid 4713     1,000 orders  queues 2→4",
		"   worker 4  pid 1234567    500 orders  queues 5",
		"   no owner:                            queues 3",
		"   ██████████████████░░░░░░░░░░░░░░░░░░░░░░  45 %  9,000 of 20,000 orders",
		"",
	}
	if diff := cmp.Diff(want, fleet.state(now)); diff != "" {
		t.Error(diff)
	}
}

func TestNews(t *testing.T) {
	fleet, _ := example()
	got := fleet.news([]event{
		{kind: "JOINED", to: "h:1234567:d"},
		{kind: "GRANTED", queue: "0", to: "h:4711:a"},
		{kind: "GRANTED", queue: "3", to: "h:4711:a"},
		{kind: "GRANTED", queue: "4", to: "h:4713:c"},
		{kind: "GRANTED", queue: "5", to: "h:4711:a"},
		{kind: "REQUESTED", queue: "2", from: "h:4713:c", to: "h:1234567:d"},
		{kind: "RELEASED", queue: "2", from: "h:4713:c", to: "h:1234567:d"},
		{kind: "EXPIRED", from: "h:4712:b", reason: "silent for 2.6s"},
		{kind: "TAKEN_OVER", queue: "1", from: "h:4712:b", to: "h:9:stranger"},
		{kind: "GRANTED", queue: "6", to: "h:4711:a"},
	})
	want := []string{
		"   JOINED      worker 4",
		"   GRANTED     worker 1  queue 0 3 5",
		"   GRANTED     worker 3  queue 4",
		"   RELEASED    worker 3 → worker 4  queue 2",
		"   EXPIRED     worker 2  silent for 2.6s",
		"   TAKEN_OVER  worker 2 → h:9:stranger  queue 1",
		"   GRANTED     worker 1  queue 6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A terminal shows the news and below them the newest state, within its width and height.
func TestTerminal(t *testing.T) {
	text.EnableColors()
	defer text.DisableColors()
	fleet, now := example()
	for _, size := range [][2]int{{200, 50}, {80, 24}, {40, 5}, {1, 1}} {
		width, height := size[0], size[1]
		var out bytes.Buffer
		v := &view{out: &out, began: time.Now(), size: func() (int, int, error) { return width, height, nil }}
		for _, news := range []string{"first", "second", "third"} {
			v.show([]string{news}, fleet.state(now), false)
		}
		screen := replay(t, out.String())
		if all := strings.Join(screen, "\n"); !regexp.MustCompile(`^.*first\n.*second\n.*third\n`).MatchString(all) {
			t.Errorf("%v: the news are not in order:\n%s", size, all)
		}
		state := screen[3:]
		if want := min(9, height-1); len(state)-1 != want { // and the line of the cursor
			t.Errorf("%v: %d lines of state, want %d:\n%s", size, len(state)-1, want, strings.Join(state, "\n"))
		}
		for _, line := range state {
			if n := text.StringWidthWithoutEscSequences(line); n > width || strings.Count(line, "\x1b[")%2 != 0 {
				t.Errorf("%v: %d columns in %q", size, n, line)
			}
		}
	}
}

// The proof stays on the terminal when the workers go on after it, for the console.
func TestTheProofStays(t *testing.T) {
	fleet, now := example()
	for _, height := range []int{24, 40} {
		var out bytes.Buffer
		v := &view{out: &out, began: time.Now(), size: func() (int, int, error) { return 80, height, nil }}
		v.show([]string{"the last scene"}, fleet.state(now), true)
		v.leave()
		v.print("ok     each order took effect exactly once\nok     one worker was evicted\n")
		for _, news := range []string{"workers go on", "worker 5 started", "worker 6 started"} {
			v.write(news)
		}
		all := strings.Join(replay(t, out.String()), "\n")
		for _, line := range []string{"9,000 of 20,000 orders", "each order took effect exactly once", "one worker was evicted", "worker 5 started"} {
			if !strings.Contains(all, line) {
				t.Errorf("80x%d: the terminal lacks %q:\n%s", height, line, all)
			}
		}
	}
}

// replay returns the lines of a terminal that has got the text.
func replay(t *testing.T, written string) []string {
	t.Helper()
	up := regexp.MustCompile(`\r\x1b\[(\d+)A\x1b\[J`)
	var screen []string
	for i, part := range up.Split(written, -1) {
		if i > 0 {
			n, _ := strconv.Atoi(up.FindAllStringSubmatch(written, -1)[i-1][1])
			if n < 1 || n >= len(screen) {
				t.Fatalf("%d lines up from %d", n, len(screen))
			}
			screen = screen[:len(screen)-1-n]
		}
		screen = append(screen, strings.Split(part, "\n")...)
		if i == 0 || screen[len(screen)-1] == "" {
			continue
		}
		t.Fatalf("the cursor is not at the beginning of a line: %q", screen[len(screen)-1])
	}
	return screen
}

// A pipe gets the state at the end of a scene only.
func TestPipe(t *testing.T) {
	var out bytes.Buffer
	v := newView(&out)
	v.show([]string{"news"}, []string{"an old state"}, false)
	v.show(nil, []string{"the state"}, true)
	if want := "  0.0 s  news\nthe state\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
