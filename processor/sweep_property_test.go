package processor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/processor"
)

// field is a finite source that is swept. Calls take random times, and fail, panic and ignore their context at random;
// some items always fail.
type field struct {
	mu      sync.Mutex
	kind    kind
	rnd     *rand.Rand
	trouble float64
	open    map[string][]string
	poison  map[string]bool
	busy    map[string]bool
	running map[string]int // calls by queue
	grants  map[string]*harvest
	faults  []string
}

// harvest is what one grant of a queue came to.
type harvest struct {
	done    map[string]int  // how often an item was executed successfully
	blamed  map[string]bool // items that failed alone or by name
	failure bool            // a failure that nobody could be blamed for
}

func newField(rt *rapid.T, k kind) *field {
	f := &field{
		kind: k, rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)), trouble: rapid.SampledFrom([]float64{0, 0, 0.01, 0.2}).Draw(rt, "trouble"),
		open: map[string][]string{}, poison: map[string]bool{}, busy: map[string]bool{}, running: map[string]int{}, grants: map[string]*harvest{},
	}
	for _, q := range []string{"a", "b", "c", "d"} {
		for i := range rapid.IntRange(0, 40).Draw(rt, "items of "+q) {
			item := fmt.Sprintf("%s%02d", q, i)
			f.open[q] = append(f.open[q], item)
			f.poison[item] = k.tracks() && f.rnd.IntN(10) == 0
		}
	}
	return f
}

func (f *field) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// begin draws how long a call takes and whether it fails: 1 with an error, 2 with a panic. 3 ignores its context.
func (f *field) begin(q string, trouble float64) (d time.Duration, how int) {
	f.running[q]++
	if f.rnd.Float64() < trouble {
		how = 1 + f.rnd.IntN(3)
	}
	return time.Duration(f.rnd.IntN(2000)) * time.Millisecond, how
}

func (f *field) spend(ctx context.Context, d time.Duration, how int) error {
	return (&farm{}).spend(ctx, d, how)
}

func (f *field) Select(ctx context.Context, s processor.Selection) (page []string, err error) {
	q := s.Queue.ID
	f.mu.Lock()
	if f.running[q] > 0 && (!f.kind.keyed || f.kind.cursored) {
		f.fault("queue %s is selected while %d calls of it run", q, f.running[q])
	}
	for _, item := range f.open[q] {
		if !f.kind.cursored || item > s.Queue.Cursor {
			page = append(page, item)
		}
	}
	if !f.kind.cursored {
		f.rnd.Shuffle(len(page), func(i, j int) { page[i], page[j] = page[j], page[i] })
	}
	page = page[:min(len(page), s.Limit)]
	d, how := f.begin(q, f.trouble/10)
	f.grants[q].failure = f.grants[q].failure || how == 1 || how == 2
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running[q]--
	}()
	return page, f.spend(ctx, d, how)
}

func (f *field) Execute(ctx context.Context, items []string) (err error) {
	q := items[0][:1]
	f.mu.Lock()
	for _, item := range items {
		if f.busy[item] || item[:1] != q {
			f.fault("item %s is in hand twice, or astray: %v", item, items)
		}
		f.busy[item] = true
		if g := f.grants[q]; g.done[item] > 0 || g.blamed[item] {
			f.fault("item %s is executed once more under the same grant", item)
		}
	}
	if f.kind.cursored && f.running[q] > 0 {
		f.fault("a batch of queue %s is executed beside another", q)
	}
	d, how := f.begin(q, f.trouble)
	bad := f.bad(items, &how)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running[q]--
		f.end(ctx, q, items, bad, how, err)
	}()
	if err := f.spend(ctx, d, how); err != nil {
		return err
	}
	return bad.err(how)
}

// bad says which items of a batch fail, and has it fail if there are any.
func (f *field) bad(items []string, how *int) names {
	bad := make(names, len(items))
	for i, item := range items {
		bad[i] = f.poison[item]
	}
	if slices.Contains(bad, true) {
		*how = []int{1, 2, byName}[f.rnd.IntN(btoi(f.kind.keyed && !f.kind.cursored)+2)]
	}
	return bad
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// end notes what a batch came to. Items that are done leave the source, unless there is a cursor.
func (f *field) end(ctx context.Context, q string, items []string, bad names, how int, err error) {
	g := f.grants[q]
	panicked := how == 2 && err == nil
	cancelled := ctx.Err() != nil && !panicked
	for i, item := range items {
		f.busy[item] = false
		switch {
		case err == nil && !panicked, how == byName && !cancelled && !bad[i]:
			g.done[item]++
			if !f.kind.cursored {
				f.open[q] = slices.DeleteFunc(f.open[q], func(other string) bool { return other == item })
			}
		case cancelled:
		case !f.kind.tracks():
			g.failure = true
		case len(items) == 1, how == byName:
			g.blamed[item] = true
			g.failure = g.failure || f.kind.cursored // it is not passed
		}
	}
}

// The field with powers.
type (
	fieldKeyed    struct{ *field }
	fieldCursored struct{ *field }
	fieldBoth     struct{ fieldKeyed }
)

func (fieldKeyed) Key(item string) string       { return item }
func (fieldCursored) Cursor(item string) string { return item }
func (fieldBoth) Cursor(item string) string     { return item }

func (f *field) dealer() processor.TaskDealer[string] {
	switch {
	case f.kind.cursored && f.kind.keyed:
		return fieldBoth{fieldKeyed{f}}
	case f.kind.cursored:
		return fieldCursored{f}
	case f.kind.keyed:
		return fieldKeyed{f}
	}
	return f
}

func TestEverySweepEnds(t *testing.T) {
	for _, k := range []kind{{}, {keyed: true}, {cursored: true}, {cursored: true, keyed: true}} {
		for _, disturbed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v, disturbed %t", k, disturbed), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					rapid.SyncTest(rt, func(rt *rapid.T) { sweeps(rt, k, disturbed) })
				})
			})
		}
	}
}

// sweeps grants queues with runs, disturbs them or not, and expects that every sweep ends with all items accounted for.
func sweeps(rt *rapid.T, k kind, disturbed bool) {
	f := newField(rt, k)
	items := map[string][]string{}
	for q, list := range f.open {
		items[q] = slices.Clone(list)
	}
	trusted := true
	g := &gardener{field: f, rt: rt, all: items, cursors: map[string]string{}}
	var err error
	g.p, err = processor.New(f.dealer(), processor.Env{Trusted: func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return trusted
	}}, g.settings())
	if err != nil {
		rt.Fatal(err)
	}
	ctx, cancel := context.WithCancel(rt.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.p.Run(ctx) }()
	for _, q := range []string{"a", "b", "c", "d"} {
		g.grant(q)
	}
	if disturbed {
		rt.Repeat(map[string]func(*rapid.T){
			"drain":  func(rt *rapid.T) { g.p.Drain(queue(rt)) },
			"revoke": func(rt *rapid.T) { g.revoke(queue(rt)) },
			"resume": func(rt *rapid.T) { g.p.Resume(queue(rt)) },
			"wait": func(rt *rapid.T) {
				time.Sleep(time.Duration(rapid.IntRange(0, 5000).Draw(rt, "wait")) * time.Millisecond)
			},
			"configure": func(*rapid.T) { _ = g.p.Configure(g.settings()) },
			"trust": func(rt *rapid.T) {
				f.mu.Lock()
				trusted = rapid.Bool().Draw(rt, "trust")
				f.mu.Unlock()
				g.p.Wake()
			},
			"grant": func(rt *rapid.T) { g.again(queue(rt)) },
			"":      g.check,
		})
		f.mu.Lock()
		trusted = true
		f.mu.Unlock()
		g.p.Wake()
	}
	for _, q := range []string{"a", "b", "c", "d"} {
		g.p.Resume(q)
		g.grant(q)
	}
	time.Sleep(30 * time.Minute)
	g.check(rt)
	for _, h := range g.p.Held() {
		if !h.Sweep.Ended() || h.InHand > 0 {
			rt.Errorf("the sweep has not ended: %+v", h)
		}
		g.checkHarvest(h)
	}
	if s := g.p.Stats(); s.InHand != 0 || s.DeadCount != 0 {
		rt.Errorf("stats: %+v", s)
	}
	cancel()
	if err := <-ended; err != nil {
		rt.Fatal(err)
	}
}

// gardener has the field swept.
type gardener struct {
	*field
	rt      *rapid.T
	p       *processor.Processor
	all     map[string][]string
	cursors map[string]string // as the manager would save them
	began   map[string]string // cursors that the grants began with
}

func (g *gardener) settings() processor.Settings {
	return processor.Settings{
		ThreadNumber:      rapid.IntRange(1, 6).Draw(g.rt, "thread_number"),
		FetchNumber:       rapid.IntRange(5, 12).Draw(g.rt, "fetch_number"), // ten times that are more than there can be
		ExecuteNumber:     rapid.IntRange(1, 5).Draw(g.rt, "execute_number"),
		SleepTimeNoData:   24 * time.Hour, // would be noticed
		SleepTimeInterval: time.Duration(rapid.IntRange(0, 1).Draw(g.rt, "interval")) * time.Second,
		Retry:             24 * time.Hour, RetryMax: 24 * time.Hour,
		NotSleep: g.kind.keyed && !g.kind.cursored && rapid.Bool().Draw(g.rt, "notsleep"),
	}
}

// grant grants a queue that is not held.
func (g *gardener) grant(q string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.ContainsFunc(g.p.Held(), func(h processor.Holding) bool { return h.Queue.ID == q }) {
		return
	}
	if g.began == nil {
		g.began = map[string]string{}
	}
	g.grants[q] = &harvest{done: map[string]int{}, blamed: map[string]bool{}}
	g.began[q] = g.cursors[q]
	if err := g.p.Grant(processor.Queue{ID: q, Index: int(q[0] - 'a'), Cursor: g.cursors[q], Run: nightly()}, 4); err != nil {
		g.fault("%v", err)
	}
}

// revoke does so when nothing moves, so that the field and the processor agree on which calls it has cancelled.
func (g *gardener) revoke(q string) {
	synctest.Wait()
	g.p.Revoke(q)
}

// again takes a queue away, whatever its sweep has come to, and grants it anew behind the cursor that it had.
func (g *gardener) again(q string) {
	g.revoke(q)
	time.Sleep(3 * time.Second)
	synctest.Wait()
	for _, h := range g.p.Held() {
		if h.Queue.ID == q && h.Drained {
			g.cursors[q] = h.Sweep.Cursor
			g.checkHarvest(h)
		}
	}
	if !g.p.Forget(q) {
		g.rt.Errorf("queue %s is not drained after all", q)
	}
	g.grant(q)
}

func (g *gardener) check(rt *rapid.T) {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.p.Held() {
		if h.InHand != g.running[h.Queue.ID] || h.Sweep.Ended() && h.Sweep.Swept == h.Sweep.Failed || h.Sweep.Swept && h.InHand > 0 {
			g.fault("%+v, but %d calls run", h, g.running[h.Queue.ID])
		}
	}
	if len(g.faults) > 0 {
		rt.Fatal(strings.Join(g.faults, "\n"))
	}
}

// checkHarvest compares what the processor says of a sweep with nothing in hand with what the field saw of it.
func (g *gardener) checkHarvest(h processor.Holding) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q, s := h.Queue.ID, h.Sweep
	got := g.grants[q]
	if len(got.done) != int(s.ItemsDone) || g.kind.tracks() && len(got.blamed) != int(s.ItemsFailed) {
		g.rt.Errorf("queue %s: %d done and %d failed, but the sweep says %+v", q, len(got.done), len(got.blamed), s)
	}
	if s.Failed && !got.failure {
		g.rt.Errorf("queue %s: the sweep has failed without a reason: %v", q, s.Err)
	}
	if !s.Swept {
		return
	}
	for _, item := range g.all[q] {
		behind := g.kind.cursored && item <= g.began[q] || !g.kind.cursored && !slices.Contains(g.open[q], item)
		if !behind && got.done[item] != 1 && !got.blamed[item] {
			g.rt.Errorf("queue %s is swept, and item %s neither done nor failed", q, item)
		}
		if g.poison[item] && got.done[item] > 0 {
			g.rt.Errorf("item %s is done", item)
		}
	}
}
