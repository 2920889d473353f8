package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/processor"
)

// The scenarios of testdata/timetable say when a lane is selected next, and why, after each of its events. A line is
//
//	TIME EVENT [WORD] [DURATION] => DUE WHY
//
// with the times since the begin. "=> -" means that the lane waits for no select: one is in flight, or a page is, or the
// queue drains. The events drive the scheduler as executors do, with results that the line says in the place of a
// dealer. What follows # is a comment. The first lines may be "settings NAME VALUE",
// "cursored" and "peeker".
func TestTimetable(t *testing.T) {
	files, err := filepath.Glob("testdata/timetable/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { playTimetable(t, string(text)) })
		})
	}
}

// aLane is the lane of a scenario, whose calls the scenario makes in the place of executors.
type aLane struct {
	*Processor
	began    time.Time
	executor *executor
	settings Settings
}

func playTimetable(t *testing.T, text string) {
	t.Helper()
	l := &aLane{began: time.Now(), settings: Settings{
		ThreadNumber: 2, FetchNumber: 10, ExecuteNumber: 10, SleepTimeNoData: time.Second,
		Retry: time.Second, RetryFactor: 2, RetryMax: time.Hour, ItemMaxAttempts: 5, MaxCrashes: 3,
	}}
	var d processor.TaskDealer[string] = &noDealer{}
	for number, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		event, want, found := strings.Cut(line, "=>")
		words := strings.Fields(event)
		switch {
		case len(words) == 0:
		case words[0] == "cursored":
			d = &noCursor{}
		case words[0] == "peeker":
			d = &noPeeker{}
		case words[0] == "settings":
			l.set(t, words[1:])
		case !found || len(words) < 2:
			t.Fatalf("line %d: %q is not TIME EVENT => DUE WHY", number+1, line)
		default:
			if l.Processor == nil {
				l.start(t, d)
			}
			time.Sleep(time.Until(l.began.Add(duration(t, words[0]))))
			l.play(t, words[1:])
			if got, want := l.due(), strings.Join(strings.Fields(want), " "); got != want {
				t.Errorf("line %d: %s: due %s, want %s", number+1, strings.TrimSpace(event), got, want)
			}
		}
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (l *aLane) set(t *testing.T, words []string) {
	t.Helper()
	switch words[0] {
	case "interval":
		l.settings.SleepTimeInterval = duration(t, words[1])
	case "nodata":
		l.settings.SleepTimeNoData = duration(t, words[1])
	case "rate":
		l.settings.QueueRatePerSecond, _ = strconv.ParseFloat(words[1], 64)
	case "probe-max":
		l.settings.ProbeMax = duration(t, words[1])
	case "notsleep":
		l.settings.NotSleep = true
	default:
		t.Fatalf("no setting %q", words[0])
	}
}

func (l *aLane) start(t *testing.T, d processor.TaskDealer[string]) {
	t.Helper()
	var err error
	if l.Processor, err = New(d, Env{}, l.settings); err != nil {
		t.Fatal(err)
	}
	l.executor = newExecutor(l.scheduler)
	l.scheduler.executors[l.executor] = struct{}{}
}

// due returns when the lane is due, and why.
func (l *aLane) due() string {
	g := l.scheduler.grants["0"]
	if g == nil || !g.lane.inDueLanes() {
		return "-"
	}
	at, why := g.lane.times.due()
	return fmt.Sprint(at.Sub(l.began), " ", why)
}

// play plays an event.
func (l *aLane) play(t *testing.T, words []string) {
	t.Helper()
	s, now := l.scheduler, time.Now()
	more := words[1:]
	var d time.Duration
	if n := len(more); n > 0 {
		if parsed, err := time.ParseDuration(more[n-1]); err == nil {
			d, more = parsed, more[:n-1]
		}
	}
	switch strings.Join(append(words[:1:1], more...), " ") {
	case "grant":
		l.must(t, l.Grant(processor.Queue{ID: "0", Epoch: 1}, 1))
	case "grant crashed":
		l.must(t, l.Grant(processor.Queue{ID: "0", Epoch: 1, Crashes: 4}, 1))
	case "drain":
		l.Drain("0")
	case "resume":
		l.Resume("0")
	case "hint":
		l.Hint("0")
	case "reload":
		l.Reload()
	case "configure":
		l.settings.SleepTimeNoData = d
		l.must(t, l.Configure(l.settings))
	case "rate-is-lifted":
		l.SetLimits("0", processor.QueueLimits{RatePerSecond: -1})
	case "select":
		l.claim(t)
	case "finds nothing":
		l.selected(func(*selectCall) {})
	case "finds backing-off":
		l.found(t, 1, func(c *selectCall) { c.retryAt = now.Add(d); c.found.drop() })
	case "finds key-left-out":
		l.selected(func(c *selectCall) { c.partial, c.more = true, true })
	case "fails":
		l.selected(func(c *selectCall) { c.outcome, c.err = failed, processor.RetryAfter(d, errors.New("no")) })
	case "is cancelled":
		l.selected(func(c *selectCall) { c.outcome = cancelled })
	case "finds items":
		l.found(t, 1, func(*selectCall) {})
	case "finds 20-items":
		l.found(t, 20, func(*selectCall) {})
	case "finds retries":
		l.found(t, 1, func(c *selectCall) { c.found.retries = 1 })
	case "batch done":
		l.executed(t, func(b *batch) { b.result.done = b.size() })
	case "batch fails":
		l.executed(t, func(b *batch) { b.outcome, b.result.pause, b.result.retryAfter = failed, true, d })
	case "batch suspects":
		l.executed(t, func(b *batch) { b.outcome, b.result.retryNow = failed, true })
	case "batch backs-off":
		l.executed(t, func(b *batch) { b.outcome, b.result.retryAt = failed, now.Add(d) })
	case "peek finds-nothing":
		l.peeked(true)
	case "peek finds-items":
		l.peeked(false)
	case "other-queue succeeds":
		s.observeLocked(evidence{began: now, now: now, success: true}, s.grants["0"].lane)
	default:
		t.Fatalf("no event %q", words)
	}
}

func (*aLane) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// claim claims the call that is due, as an executor does.
func (l *aLane) claim(t *testing.T) {
	t.Helper()
	e := l.executor
	e.now = time.Now()
	if !e.claimLocked(context.Background()) {
		t.Fatalf("nothing is due at %s", e.now.Sub(l.began))
	}
}

// selected ends the select with a result.
func (l *aLane) selected(result func(c *selectCall)) {
	c := &l.executor.selection
	c.now, c.ended = time.Now(), true
	result(c)
	l.executor.finishLocked()
}

// found ends the select with a page, and a result.
func (l *aLane) found(t *testing.T, n int, result func(c *selectCall)) {
	t.Helper()
	l.selected(func(c *selectCall) {
		list, err := l.source.selectItems(context.Background(), processor.Selection{Limit: n})
		l.must(t, err)
		c.found = newPage(c.ctx, list, n)
		result(c)
	})
}

// executed executes a batch.
func (l *aLane) executed(t *testing.T, result func(b *batch)) {
	t.Helper()
	l.claim(t)
	b := &l.executor.batch
	b.now = time.Now()
	result(b)
	if b.outcome == failed {
		b.err = errors.New("no")
	}
	l.executor.finishLocked()
}

// peeked ends a peek of the lane that begins now.
func (l *aLane) peeked(empty bool) {
	s, now := l.scheduler, time.Now()
	g := s.grants["0"]
	s.finishPeekLocked(&peek{setup: l.setup, began: now, asked: []idleLane{{lane: g.lane, empty: empty}}}, now)
}

// noDealer selects numbers; the scenarios say what else its calls do.
type noDealer struct{}

func (*noDealer) Select(_ context.Context, s processor.Selection) (list []string, err error) {
	for n := range s.Limit {
		list = append(list, strconv.Itoa(n))
	}
	return list, nil
}

func (*noDealer) Execute(context.Context, []string) error { return nil }

// noPeeker is a Peeker.
type noPeeker struct{ noDealer }

func (*noPeeker) Peek(context.Context, []processor.Selection) ([]string, error) { return nil, nil }

// noCursor is a Cursored dealer.
type noCursor struct{ noDealer }

func (*noCursor) Cursor(item string) string { return item }
