package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/processor"
)

// randomSource is a source of items that checks what the processor does with them. An item is open until its Execute
// succeeds. Calls take random times. They fail, panic and ignore their context at random.
type randomSource struct {
	mu          sync.Mutex
	rnd         *rand.Rand
	failureRate float64 // probability that a call fails
	open        map[string][]string
	busy        map[string]bool  // items being executed
	selecting   map[string]bool  // queues being selected
	running     map[string]int   // calls by queue
	closed      map[string]bool  // drained queues: no call of them may start
	epochs      map[string]int64 // the epoch of each grant
	handed      int64            // items passed to Execute
	kind        kind
	done        map[string]bool // items whose Execute succeeded
	poison      map[string]bool // items that always fail
	alone       map[string]int  // how often an item failed alone or by name
	store       *memory
	storing     int             // running calls of the stores
	admitted    map[string]bool // queues whose failed items or cursor are loaded for a select
	moved       bool            // the store has records of items that have changed queues
	distrust    bool
	faults      []string
}

func (f *randomSource) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// kind is the capabilities of a dealer.
type kind struct {
	keyed, cursored, discards, paged, ordered, atomic bool

	leavesOut bool // an Ordered dealer uses Selection.Held
	folds     bool // the database takes different keys for equal
	passes    bool // Settings.DeadPasses
	crashed   bool // the owners of the queues have crashed, so that items are executed one by one
	samples   bool // failures while nothing succeeds are no attempts, and only samples are tried
}

// mostItems returns how many items a queue has at most. In order the items of a key die one after the other, which takes
// hours of passes.
func (k kind) mostItems() int {
	if k.ordered {
		return 20
	}
	return 40
}

// mostFetched returns the largest fetch_number. Selects in order go on behind pages: these have fewer items than a queue.
func (k kind) mostFetched() int {
	if k.ordered {
		return 2
	}
	return 12
}

// tracks reports whether failures are counted per item.
func (k kind) tracks() bool { return k.keyed || k.cursored }

// begin notes the start of a call, and draws its duration and its end.
func (f *randomSource) begin(q string, admitted bool) (time.Duration, ending) {
	if f.closed[q] && !admitted {
		f.fault("a call for queue %s began after Drain", q)
	}
	f.running[q]++
	if f.distrust && !admitted {
		f.fault("a call for %v began without trust", q)
	}
	how := succeeds
	if f.rnd.Float64() < f.failureRate {
		how = fails + ending(f.rnd.IntN(3))
	}
	return time.Duration(f.rnd.IntN(2000)) * time.Millisecond, how
}

// ending says how a call ends.
type ending int

const (
	succeeds ending = iota
	fails
	panics
	ignoresContext // and succeeds
	byName         // an Execute names the failed items in Failures
	commits        // an Execute commits and returns an error
)

// spend takes the duration of the call and ends it.
func spend(ctx context.Context, d time.Duration, how ending) error {
	if how == ignoresContext {
		time.Sleep(d)
		return nil
	}
	if err := nap(ctx, d); err != nil {
		return err
	}
	switch how {
	case fails:
		return errBroken
	case panics:
		panic("boom")
	}
	return nil
}

func (f *randomSource) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	return f.fetch(ctx, s.Limit, s.Queue.ID)
}

func (f *randomSource) fetch(ctx context.Context, limit int, q string) ([]string, error) {
	f.mu.Lock()
	if f.selecting[q] || f.running[q] > 0 && (!f.kind.keyed || f.kind.cursored) {
		f.fault("queue %s is selected while calls of it are in flight", q)
	}
	f.selecting[q] = true
	admitted := f.admitted[q] // the select was claimed before, because loading the failed items takes time
	delete(f.admitted, q)
	d, how := f.begin(q, admitted)
	page := slices.Clone(f.open[q])
	f.rnd.Shuffle(len(page), func(i, j int) { page[i], page[j] = page[j], page[i] })
	page = page[:min(len(page), limit+f.rnd.IntN(3))]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.selecting[q] = false
		f.running[q]--
	}()
	return page, spend(ctx, d, how)
}

func (f *randomSource) Execute(ctx context.Context, items []string) (err error) {
	f.mu.Lock()
	q := items[0][:1]
	for _, item := range items {
		if f.busy[item] {
			f.fault("item %s is executed twice at once", item)
		}
		f.busy[item] = true
		if f.done[item] {
			f.fault("item %s is executed after it was done", item)
		}
		if f.store.items[item].Dead {
			f.fault("dead item %s is executed", item)
		}
	}
	f.checkOrder(items)
	if fault := f.checkKeys(items); fault != "" {
		f.fault("%s", fault)
	}
	f.handed += int64(len(items))
	f.checkContext(ctx, items)
	d, how := f.begin(q, f.kind.crashed) // the call was claimed before: its turn and the record of its start take time
	named := f.drawFailures(items, &how)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.end(ctx, items, named, how, err)
		f.running[q]--
	}()
	if err := spend(ctx, d, how); err != nil {
		return err
	}
	return named.err(how)
}

// checkContext expects that the context carries the one queue of the batch under the epoch of its grant.
func (f *randomSource) checkContext(ctx context.Context, items []string) {
	for _, item := range items {
		if want := fmt.Sprint(item[:1], ":", f.epochs[item[:1]]); bound(ctx) != want {
			f.fault("a batch with item %s of %s is bound to %s", item, want, bound(ctx))
		}
	}
}

// end notes the result of a batch. Items that are done leave the source.
func (f *randomSource) end(ctx context.Context, items []string, named names, how ending, err error) {
	for i, item := range items {
		f.busy[item] = false
		bad := how == panics || err != nil
		if how == byName && err != nil && ctx.Err() == nil {
			bad = named[i]
		}
		if how == commits && ctx.Err() == nil {
			bad = false
		}
		switch {
		case !bad:
			f.finish(item)
		case len(items) == 1 || how == byName:
			f.alone[item]++
		}
	}
	if f.kind.cursored && how != panics && (err == nil || how == commits && ctx.Err() == nil) {
		f.commit(ctx)
	}
}

func (f *randomSource) finish(item string) {
	q := item[:1]
	f.done[item] = true
	f.open[q] = slices.DeleteFunc(f.open[q], func(other string) bool { return other == item })
}

func newRandomSource(rt *rapid.T, k kind) *randomSource {
	f := &randomSource{
		kind: k, done: map[string]bool{}, poison: map[string]bool{}, alone: map[string]int{}, admitted: map[string]bool{},
		store:       newMemory(),
		rnd:         rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)),
		moved:       rapid.Bool().Draw(rt, "moved"),
		failureRate: rapid.Float64Range(0, 0.5).Draw(rt, "failureRate"),
		open:        map[string][]string{}, busy: map[string]bool{}, selecting: map[string]bool{},
		running: map[string]int{}, closed: map[string]bool{}, epochs: map[string]int64{},
	}
	for _, q := range []string{"a", "b", "c", "d"} {
		for i := range rapid.IntRange(0, k.mostItems()).Draw(rt, "items of "+q) {
			item := fmt.Sprintf("%s%02d", q, i)
			f.open[q] = append(f.open[q], item)
			f.poison[item] = k.poisons(f.rnd)
		}
	}
	return f
}
