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

// sweptSource is a finite source that is swept. Calls take random times. They fail, panic and ignore their context at
// random. Some items always fail.
type sweptSource struct {
	mu          sync.Mutex
	kind        kind
	rnd         *rand.Rand
	failureRate float64
	breaker     bool // the circuit breaker is on: items that have failed alone may be executed again
	open        map[string][]string
	poison      map[string]bool
	busy        map[string]bool
	running     map[string]int // calls by queue
	grants      map[string]*grantResult
	faults      []string
}

// grantResult is what one grant of a queue came to.
type grantResult struct {
	done    map[string]int  // how often an item was executed successfully
	blamed  map[string]bool // items that failed alone or by name
	failure bool            // a failure that no item could be blamed for
}

func newSweptSource(rt *rapid.T, k kind) *sweptSource {
	f := &sweptSource{
		kind: k, rnd: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)),
		failureRate: rapid.SampledFrom([]float64{0, 0, 0.01, 0.2}).Draw(rt, "failureRate"),
		open:        map[string][]string{}, poison: map[string]bool{}, busy: map[string]bool{}, running: map[string]int{},
		grants: map[string]*grantResult{},
	}
	for _, q := range []string{"a", "b", "c", "d"} {
		for i := range rapid.IntRange(0, 40).Draw(rt, "items of "+q) {
			item := fmt.Sprintf("%s%02d", q, i)
			f.open[q] = append(f.open[q], item)
			f.poison[item] = k.poisons(f.rnd)
		}
	}
	return f
}

func (f *sweptSource) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// begin draws the duration and the end of a call.
func (f *sweptSource) begin(q string, failureRate float64) (d time.Duration, how ending) {
	f.running[q]++
	if f.rnd.Float64() < failureRate {
		how = fails + ending(f.rnd.IntN(3))
	}
	return time.Duration(f.rnd.IntN(2000)) * time.Millisecond, how
}

func (f *sweptSource) Select(ctx context.Context, s processor.Selection) (page []string, err error) {
	q := s.Queue.ID
	f.mu.Lock()
	if f.running[q] > 0 && (!f.kind.keyed || f.kind.cursored) {
		f.fault("queue %s is selected while %d calls of it run", q, f.running[q])
	}
	for _, item := range f.open[q] {
		if item > max(s.Queue.Cursor, s.After) || !f.kind.cursored && !f.kind.paged {
			page = append(page, item)
		}
	}
	if !f.kind.cursored && !f.kind.paged {
		f.rnd.Shuffle(len(page), func(i, j int) { page[i], page[j] = page[j], page[i] })
	}
	page = page[:min(len(page), s.Limit)]
	if f.kind.ordered {
		page = f.kind.inOrder(f.open[q], s)
	}
	d, how := f.begin(q, f.failureRate/10)
	f.grants[q].failure = f.grants[q].failure || how == fails || how == panics
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running[q]--
	}()
	return page, spend(ctx, d, how)
}

func (f *sweptSource) Execute(ctx context.Context, items []string) (err error) {
	q := items[0][:1]
	f.mu.Lock()
	for _, item := range items {
		if f.busy[item] || item[:1] != q {
			f.fault("item %s is in flight twice, or in the wrong batch: %v", item, items)
		}
		f.busy[item] = true
		if g := f.grants[q]; g.done[item] > 0 || g.blamed[item] && !f.breaker {
			f.fault("item %s is executed again under the same grant", item)
		}
	}
	if f.kind.ordered {
		if fault := f.kind.checkKeys(items, f.open[q], f.busy, func(string) bool { return false }); fault != "" {
			f.fault("%s", fault)
		}
	}
	if f.kind.cursored && f.running[q] > 0 {
		f.fault("a batch of queue %s is executed while another one runs", q)
	}
	d, how := f.begin(q, f.failureRate)
	bad := f.bad(items, &how)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.running[q]--
		f.end(ctx, q, items, bad, how, err)
	}()
	if err := spend(ctx, d, how); err != nil {
		return err
	}
	return bad.err(how)
}

// bad returns the items of a batch that fail, and makes the batch fail if there are any.
func (f *sweptSource) bad(items []string, how *ending) names {
	bad := make(names, len(items))
	for i, item := range items {
		bad[i] = f.poison[item]
	}
	if slices.Contains(bad, true) {
		*how = []ending{fails, panics, byName}[f.rnd.IntN(btoi(f.kind.keyed && !f.kind.cursored && !f.kind.atomic)+2)]
	}
	return bad
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// end notes the result of a batch. Items that are done leave the source, unless there is a cursor.
func (f *sweptSource) end(ctx context.Context, q string, items []string, bad names, how ending, err error) {
	g := f.grants[q]
	panicked := how == panics && err == nil
	cancelled := ctx.Err() != nil && !panicked
	for i, item := range items {
		f.busy[item] = false
		switch {
		case err == nil && !panicked, how == byName && !cancelled && !bad[i]:
			g.done[item]++
			delete(g.blamed, item)
			if !f.kind.cursored {
				f.open[q] = slices.DeleteFunc(f.open[q], func(other string) bool { return other == item })
			}
		case cancelled:
		case !f.kind.tracks():
			g.failure = true
		case len(items) == 1, how == byName:
			g.blamed[item] = true
			g.failure = g.failure || f.kind.cursored // a cursor does not pass it
		}
	}
}

// A sweptSource with capabilities.
type (
	sweptKeyed    struct{ *sweptSource }
	sweptCursored struct{ *sweptSource }
	sweptBoth     struct{ sweptKeyed }
)

func (sweptKeyed) Key(item string) string { return item }

func (sweptCursored) Cursor(item string) string { return item }

func (sweptBoth) Cursor(item string) string { return item }

func (f *sweptSource) dealer() processor.TaskDealer[string] {
	switch {
	case f.kind.cursored && f.kind.keyed:
		return sweptBoth{sweptKeyed{f}}
	case f.kind.cursored:
		return sweptCursored{f}
	case f.kind.ordered && f.kind.paged:
		return sweptOrderedPaged{sweptOrdered{sweptKeyed{f}}}
	case f.kind.ordered:
		return sweptOrdered{sweptKeyed{f}}
	case f.kind.paged:
		return sweptPaged{sweptKeyed{f}}
	case f.kind.keyed:
		return sweptKeyed{f}
	}
	return f
}
