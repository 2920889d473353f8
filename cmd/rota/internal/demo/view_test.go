package demo

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jedib0t/go-pretty/v6/text"
)

// cast is a crew of four whose second was killed, and what is seen at the take-over.
func cast() (*crew, seen) {
	c := &crew{}
	for number, pid := range []int{4711, 4712, 4713, 1234567} {
		c.workers = append(c.workers, &worker{number: number + 1, pid: pid, killed: number == 1, gone: make(chan struct{})})
	}
	return c, seen{
		queues: []queue{
			{"0", "h:4711:a", "", "HELD", 2},
			{"1", "h:4712:b", "", "OVERDUE", 12345},
			{"2", "h:4713:c", "h:1234567:d", "MOVING", 2},
			{"3", "", "", "UNASSIGNED", 3},
			{"4", "h:9:stranger", "", "ORPHAN", 2},
			{"5", "h:1234567:d", "", "HELD", 2},
		},
		settled: map[string]int{"h:4711:a": 5000, "h:4712:b": 2500, "h:4713:c": 1000, "h:1234567:d": 500, "h:9:stranger": 1},
		events: []event{
			{kind: "JOINED", to: "h:1234567:d"},
			{kind: "GRANTED", queue: "0", to: "h:4711:a", epoch: 2},
			{kind: "GRANTED", queue: "3", to: "h:4711:a", epoch: 2},
			{kind: "REQUESTED", queue: "2", from: "h:4713:c", to: "h:1234567:d", epoch: 2},
			{kind: "RELEASED", queue: "2", from: "h:4713:c", to: "h:1234567:d", epoch: 3},
			{kind: "EXPIRED", from: "h:4712:b", reason: "silent for 2.6s"},
			{kind: "TAKEN_OVER", queue: "1", from: "h:4712:b", to: "h:4711:a", epoch: 4},
			{kind: "FORCED", queue: "5", from: "h:4713:c", to: "h:4711:a", reason: "drain_timeout"},
			{kind: "UNASSIGNED", queue: "5", from: "h:4713:c"},
			{kind: "LEFT", from: "h:4713:c"},
		},
	}
}

func act(t *testing.T) scene {
	t.Helper()
	crew, seen := cast()
	stage := stage{step: "something happens"}
	stage.tell("worker 1 started, pid 4711")
	s := stage.scene(seen, crew)
	s.elapsed = 2500 * time.Millisecond
	for i := range s.workers {
		s.workers[i].rate = 523
	}
	s.rate = 2092
	return s
}

func TestPlainView(t *testing.T) {
	var out bytes.Buffer
	v := &plainView{out: &out, clock: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC) }}
	s := act(t)
	v.show(s)
	s.news = nil
	v.show(s) // nothing has changed: nothing is written
	v.close()
	want := strings.ReplaceAll(`@== something happens
@   worker 1 started, pid 4711
@   worker 4 joined the roster
@   queues 0, 3 granted to worker 1
@   queue 2: worker 3 is asked to hand over to worker 4
@   queue 2 handed over by worker 3 to worker 4
@   worker 2 is judged dead: silent for 2.6s
@   queue 1 of worker 2 taken over by worker 1
@   FORCED queue 5: worker 3 to worker 1 drain_timeout
@   queue 5 without owner: nobody is left
@   worker 3 left the roster
@ 45 %  9,001 of 20,000 orders, 2092/s: worker 1 has 1 queue, 5,000 settled; worker 3 has 1 queue, 1,000 settled; worker 4 has 1 queue, 500 settled
`, "@", "03:04:05.006  ")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestFrame(t *testing.T) {
	want := strings.TrimPrefix(strings.ReplaceAll(`
 Rota demo  20,000 orders, 8 queues, SQLite                               2.5 s
 something happens

 QUEUE  OWNER          PID  STATUS     EPOCH  WORKER     OWNS    SETTLED   RATE
 0      ● worker 1    4711  HELD           2  ● worker 1 1 queue   5,000  523/s
 1      ✗ worker 2    4712  OVERDUE    12345  ████████░░░░░░░░░░░░░░░░░░░░░░░░░
 2      ● worker 3    4713  MOVING → 4     2  ✗ worker 2 killed    2,500  523/s
 3      -                   UNASSIGNED     3  ████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
 4      -                   ORPHAN         2  ● worker 3 1 queue   1,000  523/s
 5      ● worker 4 1234567  HELD           2  █░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                                              ● worker 4 1 queue     500  523/s
                                              ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░

 ████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░  45 %   9,001 of 20,000   2092/s

`, "@", ""), "\n")
	f := frame{headline: "20,000 orders, 8 queues, SQLite", scene: act(t)}
	if diff := cmp.Diff(want, trimmed(f.lines(80, 24))); diff != "" {
		t.Error(diff)
	}
}

func TestTerminalView(t *testing.T) {
	screen, err := os.CreateTemp(t.TempDir(), "") // its size is unknown: 80x24 it is
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close() //nolint:errcheck // read below
	v := newTerminalView(screen, "headline")
	for range 3 {
		v.show(act(t))
	}
	v.close()
	v.close() // once is enough
	written, err := os.ReadFile(screen.Name())
	if err != nil {
		t.Fatal(err)
	}
	frames := strings.Split(string(written), home)
	if len(frames) != 4 || frames[0] != enterScreen {
		t.Fatalf("got %d frames after %q", len(frames)-1, frames[0])
	}
	last, closing, _ := strings.Cut(frames[3], leaveScreen)
	if !strings.HasSuffix(last, eraseBelow) || strings.Count(last, "\n") != 23 || strings.Contains(closing, "\x1b") {
		t.Errorf("the last frame is %q, then %q", last, closing)
	}
	if !strings.Contains(closing, "✗ worker 2 killed") || !strings.HasSuffix(closing, "worker 3 left the roster\n\n") {
		t.Errorf("the user is left with\n%s", closing)
	}
}

func trimmed(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	return b.String()
}

// Whatever the size of the terminal, nothing is wider or higher, and the newest news are seen.
func TestFrameFits(t *testing.T) {
	text.EnableColors()
	defer text.DisableColors()
	f := frame{headline: strings.Repeat("headline ", 20), scene: act(t)}
	for range 100 {
		f.told = append(f.told, "an old event")
	}
	f.told = append(f.told, "the newest event of "+strings.Repeat("worker 4 ", 30))
	for _, size := range [][2]int{{80, 24}, {200, 50}, {81, 25}, {40, 10}, {1, 1}} {
		lines := f.lines(size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if n := text.StringWidthWithoutEscSequences(l); n > size[0] {
				t.Errorf("%v: %d columns in %q", size, n, l)
			}
			if strings.Count(l, "\x1b[")%2 != 0 {
				t.Errorf("%v: a colour does not end in %q", size, l)
			}
		}
		if all := strings.Join(lines, "\n"); size[1] >= 24 && !strings.Contains(all, "the newest event") {
			t.Errorf("%v: the newest event is not shown:\n%s", size, all)
		}
	}
}

func TestMeter(t *testing.T) {
	var m meter
	start := time.Now()
	for i := range 21 { // 100 a second for two seconds, then nothing for two
		m.add(start.Add(time.Duration(i)*200*time.Millisecond), map[int]int{1: min(i, 10) * 20})
		if got := m.rate(1); i == 0 && got != 0 || i == 10 && got != 100 || i == 20 && got != 0 {
			t.Errorf("after %d readings: %v/s", i+1, got)
		}
	}
}
