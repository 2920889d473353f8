package processor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// TestOptions are the options of RunOnce. The zero value means one queue, and batches of one item.
//
// It has 12 fields, because each corresponds to a setting of the task type or its queues.
type TestOptions struct {
	TaskType, OwnSign string // Default to "test" and "BASE".
	Parameter         string // of the task type

	Queues     int               // number of queues, with IDs 0, 1, 2 and so on. Defaults to 1, or to the number of Names.
	Names      []string          // IDs of the queues, instead of a number
	Parameters map[string]string // of queues, by ID
	Cursors    map[string]string // of queues, by ID: where a Cursored dealer begins

	Run *Run // if it is not nil, the queues are swept as in mode RUN

	ThreadNumber  int  // Defaults to 1: one call after another.
	FetchNumber   int  // Defaults to 500.
	ExecuteNumber int  // Defaults to 1.
	NotSleep      bool // as in Settings

	SweepMaxRepeats int // as in Settings
}

// RunOnce works the queues until a select of each has found nothing to execute. It is for unit tests of a dealer: it
// needs no database, and no queue changes its owner.
//
// RunOnce retries nothing, except the items of a failed batch of several items. If the dealer is Keyed or Cursored, an
// item that fails alone is dead at once. It is discarded if the dealer is a Discarder. Without these capabilities, and
// after a failed select, RunOnce gives up the queue. The error joins the first ten failures. If ctx ends before the
// queues are empty, the error says so. Give ctx a timeout, because RunOnce does not end if Execute does not change what
// Select returns. With TestOptions.Run such a sweep fails as soon as the processor detects it, and no item is dead or
// discarded. The contexts of the dealer are derived from ctx. They carry no batch for the fence of package center,
// unless ctx does.
func RunOnce[T any](ctx context.Context, d TaskDealer[T], o TestOptions) (Stats, error) {
	r := &testRun{}
	env := Env{TaskType: cmp.Or(o.TaskType, "test"), OwnSign: cmp.Or(o.OwnSign, "BASE"), Hooks: r.hooks()}
	p, err := New(d, env, o.settings())
	if err != nil {
		return Stats{}, err
	}
	r.p = p
	queues := o.queues()
	for _, q := range queues {
		if err := p.Grant(q, len(queues)); err != nil {
			return Stats{}, err
		}
	}
	return r.run(ctx)
}

func (o TestOptions) settings() Settings {
	return Settings{
		ThreadNumber: cmp.Or(o.ThreadNumber, 1), FetchNumber: cmp.Or(o.FetchNumber, 500),
		ExecuteNumber: cmp.Or(o.ExecuteNumber, 1), NotSleep: o.NotSleep, Parameter: o.Parameter,
		SleepTimeNoData: 10 * time.Millisecond, // for a select in NOTSLEEP that only found items in flight
		Retry:           time.Millisecond, RetryMax: time.Millisecond, ItemMaxAttempts: 1, SweepMaxRepeats: o.SweepMaxRepeats,
	}
}

func (o TestOptions) queues() []Queue {
	ids := o.Names
	for i := range cmp.Or(o.Queues, 1) {
		if len(o.Names) == 0 {
			ids = append(ids, strconv.Itoa(i))
		}
	}
	queues := make([]Queue, len(ids))
	for i, id := range ids {
		queues[i] = Queue{ID: id, Index: i, Parameter: o.Parameters[id], Cursor: o.Cursors[id], Epoch: 1, Run: o.Run}
	}
	return queues
}

// testRun is one call of RunOnce.
type testRun struct {
	p    *Processor
	mu   sync.Mutex
	errs []error
}

// run runs the processor until all queues are drained. It drains the queues that are empty or given up.
func (r *testRun) run(ctx context.Context) (Stats, error) {
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.p.Run(running) }()
	left := r.drainEmpty()
	for left > 0 && ctx.Err() == nil {
		select {
		case <-r.p.Emptied():
		case <-r.p.Drained():
		case <-ctx.Done():
		}
		left = r.drainEmpty()
	}
	stop()
	err := <-ended
	if left > 0 {
		err = fmt.Errorf("run once: %s not empty yet: %w",
			count(left, "queue is", "queues are"), errors.Join(context.Cause(ctx), r.p.Stats().LastError))
	}
	r.addSweepErrors()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.p.Stats(), errors.Join(append(r.errs, err)...)
}

// drainEmpty drains the empty queues and returns the number of queues that are not drained.
func (r *testRun) drainEmpty() (left int) {
	for _, h := range r.p.Queues() {
		if !h.EmptySince.IsZero() || h.Sweep.Ended() {
			r.p.Drain(h.Queue.ID)
			h.Drained = h.InFlight == 0
		}
		if !h.Drained {
			left++
		}
	}
	return left
}

// hooks returns the hooks that keep the errors of the dealer, and give up queues.
func (r *testRun) hooks() Hooks {
	return Hooks{
		Select: func(ctx context.Context, s Selection) (context.Context, func(int, error)) {
			return ctx, func(_ int, err error) {
				if err != nil {
					r.addError(fmt.Errorf("select queue %s: %w", s.Queue.ID, err))
					r.giveUp(s.Queue)
				}
			}
		},
		Execute: func(ctx context.Context, b Batch) (context.Context, func(Result)) {
			return ctx, func(res Result) {
				if res.Outcome != OutcomeFailed {
					return
				}
				r.addError(fmt.Errorf("execute %s of queue %s: %w", countItems(b.Items), b.Queues[0].ID, res.Err))
				if !r.p.capabilities.tracksItems() {
					r.giveUp(b.Queues...)
				}
			}
		},
	}
}

func (r *testRun) addError(err error) {
	const limit = 10
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errs) < limit {
		r.errs = append(r.errs, err)
	}
}

// addSweepErrors adds the errors of failed sweeps, unless they are errors of the dealer that were added before.
func (r *testRun) addSweepErrors() {
	for _, h := range r.p.Queues() {
		known := slices.ContainsFunc(r.errs, func(err error) bool { return errors.Is(h.Sweep.Err, errors.Unwrap(err)) })
		if h.Sweep.Failed && !known {
			r.addError(h.Sweep.Err)
		}
	}
}

// giveUp drains queues. A queue without an ID stands for all queues of a SetSelector.
func (r *testRun) giveUp(queues ...Queue) {
	for _, h := range r.p.Queues() {
		if slices.ContainsFunc(queues, func(q Queue) bool { return q.ID == "" || q.ID == h.Queue.ID }) {
			r.p.Drain(h.Queue.ID)
		}
	}
}
