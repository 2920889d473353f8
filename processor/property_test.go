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

// farm is a source of items that checks what the processor does with them. An item is open until an Execute of it
// succeeds; calls take random times and fail, panic, and ignore their context at random.
type farm struct {
	mu        sync.Mutex
	rnd       *rand.Rand
	trouble   float64 // how often a call fails
	open      map[string][]string
	busy      map[string]bool  // items being executed
	selecting map[string]bool  // queues being selected
	running   map[string]int   // calls by queue
	closed    map[string]bool  // queues that are drained: nothing of them may start
	epochs    map[string]int64 // what each queue was granted under
	handed    int64            // items given to Execute
	kind      kind
	done      map[string]bool // items that an Execute succeeded with
	poison    map[string]bool // items that always fail
	alone     map[string]int  // how often an item failed so that it could be blamed
	store     *memory
	storing   int             // calls of the store
	admitted  map[string]bool // queues that were being loaded for a select
	distrust  bool
	faults    []string
}

func (f *farm) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// kind is what a dealer can do.
type kind struct{ set, keyed, cursored, discards bool }

// tracks reports whether its items are told apart.
func (k kind) tracks() bool { return k.keyed || k.cursored }

// begin notes the start of a call and draws how long it takes and how it ends.
func (f *farm) begin(queues []string, admitted bool) (time.Duration, int) {
	for _, q := range queues {
		if f.closed[q] && !admitted {
			f.fault("a call for queue %s began after Drain", q)
		}
		f.running[q]++
	}
	if f.distrust && !admitted {
		f.fault("a call for %v began without trust", queues)
	}
	how := 0
	if f.rnd.Float64() < f.trouble {
		how = 1 + f.rnd.IntN(3)
	}
	return time.Duration(f.rnd.IntN(2000)) * time.Millisecond, how
}

// spend lets the call take its time: 1 fails, 2 panics, 3 ignores its context and succeeds.
func (f *farm) spend(ctx context.Context, d time.Duration, how int) error {
	if how == 3 {
		time.Sleep(d)
		return nil
	}
	if err := nap(ctx, d); err != nil {
		return err
	}
	switch how {
	case 1:
		return errBroken
	case 2:
		panic("boom")
	}
	return nil
}

func (f *farm) fetch(ctx context.Context, limit int, queues ...string) ([]string, error) {
	f.mu.Lock()
	for _, q := range queues {
		if f.selecting[q] || f.running[q] > 0 && (!f.kind.keyed || f.kind.cursored) {
			f.fault("queue %s is selected while something of it is in hand", q)
		}
		f.selecting[q] = true
	}
	admitted := f.admitted[queues[0]] // its books were loaded, which takes a while
	for _, q := range queues {
		admitted = admitted || f.admitted[q]
		delete(f.admitted, q)
	}
	d, how := f.begin(queues, admitted)
	var page []string
	for _, q := range queues {
		page = append(page, f.open[q]...)
	}
	f.rnd.Shuffle(len(page), func(i, j int) { page[i], page[j] = page[j], page[i] })
	page = page[:min(len(page), limit+f.rnd.IntN(3))]
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, q := range queues {
			f.selecting[q] = false
			f.running[q]--
		}
	}()
	return page, f.spend(ctx, d, how)
}

func (f *farm) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	return f.fetch(ctx, s.Limit, s.Queue.ID)
}

func (f *farm) Execute(ctx context.Context, items []string) (err error) {
	f.mu.Lock()
	var queues []string
	for _, item := range items {
		if q := item[:1]; !slices.Contains(queues, q) {
			queues = append(queues, q)
		}
		if f.busy[item] {
			f.fault("item %s is executed twice at once", item)
		}
		f.busy[item] = true
		if f.done[item] {
			f.fault("item %s is executed though it is done", item)
		}
		if f.store.items[item].Dead {
			f.fault("item %s is executed though it is dead", item)
		}
	}
	f.checkOrder(items)
	slices.Sort(queues)
	f.handed += int64(len(items))
	f.checkContext(ctx, queues)
	d, how := f.begin(queues, false)
	named := f.doom(items, &how)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.end(ctx, items, named, how, err)
		for _, q := range queues {
			f.running[q]--
		}
	}()
	if err := f.spend(ctx, d, how); err != nil {
		return err
	}
	return named.err(how)
}

// checkContext expects in the context the queues of the batch, under the epochs of their grants.
func (f *farm) checkContext(ctx context.Context, queues []string) {
	var want []string
	for _, q := range queues {
		want = append(want, fmt.Sprint(q, ":", f.epochs[q]))
	}
	if got := bound(ctx); !slices.Equal(got, want) {
		f.fault("a batch of %v is bound to %v", want, got)
	}
}

// end notes what a batch came to. Items that are done leave the source.
func (f *farm) end(ctx context.Context, items []string, named names, how int, err error) {
	for i, item := range items {
		f.busy[item] = false
		bad := how == 2 || err != nil
		if how == byName && err != nil && ctx.Err() == nil {
			bad = named[i]
		}
		if how == thenFail && ctx.Err() == nil {
			bad = false
		}
		switch {
		case !bad:
			f.finish(item)
		case len(items) == 1 || how == byName:
			f.alone[item]++
		}
	}
	if f.kind.cursored && how != 2 && (err == nil || how == thenFail && ctx.Err() == nil) {
		f.commit(ctx)
	}
}

func (f *farm) finish(item string) {
	q := item[:1]
	f.done[item] = true
	f.open[q] = slices.DeleteFunc(f.open[q], func(other string) bool { return other == item })
}

// farmSet is the farm as a SetSelector.
type farmSet struct{ *farm }

func (f farmSet) SelectSet(ctx context.Context, s processor.Selection, owned []processor.Queue) ([]string, error) {
	var queues []string
	for _, q := range owned {
		queues = append(queues, q.ID)
	}
	return f.fetch(ctx, s.Limit, queues...)
}

func (f farmSet) QueueOf(item string) string { return item[:1] }

func TestEveryItemOfALiveQueueIsExecuted(t *testing.T) {
	for _, k := range []kind{
		{},
		{set: true},
		{keyed: true},
		{keyed: true, discards: true},
		{keyed: true, set: true},
		{cursored: true},
		{cursored: true, keyed: true, discards: true},
	} {
		t.Run(fmt.Sprintf("%+v", k), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				rapid.SyncTest(rt, func(rt *rapid.T) { history(rt, k) })
			})
		})
	}
}

// history does random things to a processor, then lets all be well, and expects that every item gets done, or dead.
func history(rt *rapid.T, k kind) {
	f := newFarm(rt, k)
	d := f.dealer()
	env := processor.Env{Bind: bindBoth, Items: farmItems{f}, Cursors: farmCursors{f}, Trusted: func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !f.distrust
	}}
	h := &hand{farm: f, rt: rt}
	var err error
	if h.p, err = processor.New(d, env, h.settings()); err != nil {
		rt.Fatal(err)
	}
	ctx, cancel := context.WithCancel(rt.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.p.Run(ctx) }()
	rt.Repeat(map[string]func(*rapid.T){
		"grant": h.grant, "drain": h.drain, "resume": h.resume, "revoke": h.revoke, "forget": h.forget,
		"configure": h.configure, "trust": h.trust, "wait": h.wait, "": h.check,
	})
	h.heal()
	time.Sleep(30 * time.Minute)
	synctest.Wait()
	h.checkEnd()
	cancel()
	if err := <-ended; err != nil {
		rt.Fatal(err)
	}
	h.check(rt)
}

func newFarm(rt *rapid.T, k kind) *farm {
	f := &farm{
		kind: k, done: map[string]bool{}, poison: map[string]bool{}, alone: map[string]int{}, admitted: map[string]bool{}, store: newMemory(),
		rnd:     rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)),
		trouble: rapid.Float64Range(0, 0.5).Draw(rt, "trouble"),
		open:    map[string][]string{}, busy: map[string]bool{}, selecting: map[string]bool{},
		running: map[string]int{}, closed: map[string]bool{}, epochs: map[string]int64{},
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

// hand is who does things to the processor. It moves when everything is blocked, so that what was claimed before has
// begun, and what begins afterwards must not have been forbidden.
type hand struct {
	*farm
	rt *rapid.T
	p  *processor.Processor
}

func (h *hand) settings() processor.Settings {
	return processor.Settings{
		ThreadNumber:      rapid.IntRange(1, 6).Draw(h.rt, "thread_number"),
		FetchNumber:       rapid.IntRange(1, 12).Draw(h.rt, "fetch_number"),
		ExecuteNumber:     rapid.IntRange(1, 5).Draw(h.rt, "execute_number"),
		SleepTimeNoData:   time.Second,
		SleepTimeInterval: time.Duration(rapid.IntRange(0, 1000).Draw(h.rt, "interval")) * time.Millisecond,
		Retry:             time.Second, RetryMax: 10 * time.Second,
		NotSleep:        h.kind.keyed && !h.kind.cursored && rapid.Bool().Draw(h.rt, "notsleep"),
		ItemMaxAttempts: farmAttempts,
		RatePerSecond:   float64(rapid.SampledFrom([]int{0, 0, 5, 50}).Draw(h.rt, "rate")),
	}
}

func queue(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "queue")
}

// held returns what is held of q.
func (h *hand) held(q string) (processor.Holding, bool) {
	all := h.p.Held()
	i := slices.IndexFunc(all, func(o processor.Holding) bool { return o.Queue.ID == q })
	if i < 0 {
		return processor.Holding{}, false
	}
	return all[i], true
}

func (h *hand) grant(rt *rapid.T) { h.grantOne(queue(rt)) }

func (h *hand) grantOne(q string) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	_, held := h.held(q)
	if !held {
		if h.running[q] > 0 {
			h.fault("queue %s was forgotten with calls running", q)
		}
		h.epochs[q]++
		h.closed[q] = false
	}
	index := int(q[0] - 'a')
	if err := h.p.Grant(processor.Queue{ID: q, Index: index, Epoch: h.epochs[q], Cursor: h.store.cursors[q]}, 4); (err != nil) != held {
		h.fault("grant of %s, held %t: %v", q, held, err)
	}
}

func (h *hand) drain(rt *rapid.T) {
	q := queue(rt)
	synctest.Wait()
	h.p.Drain(q)
	h.close(q)
}

func (h *hand) revoke(rt *rapid.T) {
	q := queue(rt)
	synctest.Wait()
	h.p.Revoke(q)
	h.close(q)
}

// close forbids that calls for q begin.
func (h *hand) close(q string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed[q] = true
}

func (h *hand) resume(rt *rapid.T) { h.resumeOne(queue(rt)) }

func (h *hand) resumeOne(q string) {
	h.mu.Lock()
	_, held := h.held(q)
	h.closed[q] = !held
	h.mu.Unlock()
	h.p.Resume(q)
}

func (h *hand) forget(rt *rapid.T) {
	q := queue(rt)
	synctest.Wait()
	before, held := h.held(q)
	if got := h.p.Forget(q); got != (!held || before.Drained) {
		rt.Fatalf("forget of %+v: %t", before, got)
	}
}

func (h *hand) configure(rt *rapid.T) {
	if err := h.p.Configure(h.settings()); err != nil {
		rt.Fatal(err)
	}
}

func (h *hand) trust(rt *rapid.T) {
	synctest.Wait()
	h.mu.Lock()
	h.distrust = rapid.Bool().Draw(rt, "distrust")
	h.mu.Unlock()
	h.p.Wake()
}

func (h *hand) wait(rt *rapid.T) {
	time.Sleep(time.Duration(rapid.IntRange(0, 5000).Draw(rt, "wait")) * time.Millisecond)
}

// check compares what the processor says to be in hand with what is, once nothing moves.
func (h *hand) check(rt *rapid.T) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.p.Held() {
		if q := o.Queue.ID; o.InHand != h.running[q] && h.storing == 0 || o.InHand < h.running[q] || o.Drained != (o.Draining && o.InHand == 0) {
			h.fault("%+v, but %d calls run", o, h.running[q])
		}
	}
	if s := h.p.Stats(); s.FetchItemCount < s.SuccessCount+s.FailureCount+s.SkipCount || s.InHand < 0 {
		h.fault("stats: %+v", s)
	}
	if len(h.faults) > 0 {
		rt.Fatal(strings.Join(h.faults, "\n"))
	}
}

// heal makes an end of all trouble.
func (h *hand) heal() {
	h.mu.Lock()
	h.trouble, h.distrust = 0, false
	h.mu.Unlock()
	for _, q := range []string{"a", "b", "c", "d"} {
		if _, held := h.held(q); held {
			h.resumeOne(q)
		} else {
			h.grantOne(q)
		}
	}
	h.p.Wake()
}

func (h *hand) checkEnd() {
	h.check(h.rt)
	h.mu.Lock()
	defer h.mu.Unlock()
	for q, items := range h.open {
		for _, item := range items {
			if !h.kind.tracks() || !h.store.items[item].Dead {
				h.rt.Errorf("queue %s: item %s is neither done nor dead", q, item)
			}
		}
	}
	for item, bad := range h.poison {
		if bad && !h.store.items[item].Dead {
			h.rt.Errorf("item %s always fails and is not dead", item)
		}
	}
	if s := h.p.Stats(); s.InHand != 0 || !h.kind.discards && s.FetchItemCount != s.SkipCount+h.handed {
		h.rt.Errorf("%d items were executed, stats: %+v", h.handed, s)
	}
}
