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

// TestOptions say what RunOnce works. The zero value is one queue, item by item.
type TestOptions struct {
	TaskType, OwnSign string // Default to "test" and "BASE".
	Parameter         string // the task type's

	Queues     int               // how many, with IDs 0, 1, 2. Defaults to 1, or to those of Names.
	Names      []string          // the queues by name, in place of a number
	Parameters map[string]string // of queues, by ID
	Cursors    map[string]string // of queues, by ID, where a Cursored dealer begins

	Run *Run // if it is not nil the queues are swept as in mode RUN

	ThreadNumber  int  // Defaults to 1: one call after another.
	FetchNumber   int  // Defaults to 500.
	ExecuteNumber int  // Defaults to 1.
	NotSleep      bool // as in Settings
}

// RunOnce works the queues until a select of each has found nothing to execute. It is for a user's unit test of a
// dealer: it needs no database, and no queue ever moves.
//
// Nothing is tried twice, but for the items of a batch that has failed as a whole. An item of a Keyed or Cursored dealer that fails alone is dead at once, and discarded if the
// dealer is a Discarder; without these powers, and after a failed select, the queue is given up. The error joins all
// failures, the first ten of them, or says that ctx ended before the queues were empty: a dealer whose Execute does
// not change what Select returns would be worked for ever, so give ctx a timeout. With TestOptions.Run, such a sweep
// fails where it is noticed, and nothing is dead or discarded. The contexts of the dealer are
// derived from ctx, but carry no batch for the fence of package center unless ctx does.
func RunOnce[T any](ctx context.Context, d TaskDealer[T], o TestOptions) (Stats, error) {
	r := &once{}
	env := Env{TaskType: cmp.Or(o.TaskType, "test"), OwnSign: cmp.Or(o.OwnSign, "BASE"), Hooks: Hooks{Select: r.selected, Execute: r.executed}}
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
		SleepTimeNoData: 10 * time.Millisecond, // after what is in hand in NOTSLEEP
		Retry:           time.Millisecond, RetryMax: time.Millisecond, ItemMaxAttempts: 1,
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

// once is one RunOnce.
type once struct {
	p    *Processor
	mu   sync.Mutex
	errs []error
}

// run ends when all queues are drained, which they are when they are empty or given up.
func (r *once) run(ctx context.Context) (Stats, error) {
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
		err = fmt.Errorf("%d queues are not empty yet: %w", left, errors.Join(context.Cause(ctx), r.p.Stats().LastError))
	}
	r.addSweeps()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.p.Stats(), errors.Join(append(r.errs, err)...)
}

// drainEmpty drains the queues that are empty and returns how many are not drained.
func (r *once) drainEmpty() (left int) {
	for _, h := range r.p.Held() {
		if !h.EmptySince.IsZero() || h.Sweep.Ended() {
			r.p.Drain(h.Queue.ID)
			h.Drained = h.InHand == 0
		}
		if !h.Drained {
			left++
		}
	}
	return left
}

func (r *once) selected(ctx context.Context, s Selection) (context.Context, func(int, error)) {
	return ctx, func(_ int, err error) {
		if err != nil {
			r.fail(fmt.Errorf("select queue %s: %w", s.Queue.ID, err))
			r.giveUp(s.Queue)
		}
	}
}

func (r *once) executed(ctx context.Context, b Batch) (context.Context, func(Result)) {
	return ctx, func(res Result) {
		if res.Verdict != VerdictFailed {
			return
		}
		r.fail(fmt.Errorf("execute %s of queue %s: %w", itemsText(b.Items), b.Queues[0].ID, res.Err))
		if !r.p.powers.tracks() {
			r.giveUp(b.Queues...)
		}
	}
}

func (r *once) fail(err error) {
	const most = 10
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.errs) < most {
		r.errs = append(r.errs, err)
	}
}

// addSweeps adds why sweeps have failed, where that is no failure of the dealer's that is there already.
func (r *once) addSweeps() {
	for _, h := range r.p.Held() {
		known := slices.ContainsFunc(r.errs, func(err error) bool { return errors.Is(h.Sweep.Err, errors.Unwrap(err)) })
		if h.Sweep.Failed && !known {
			r.fail(h.Sweep.Err)
		}
	}
}

// giveUp drains queues; without an ID it is all of them, those of a SetSelector.
func (r *once) giveUp(queues ...Queue) {
	for _, h := range r.p.Held() {
		for _, q := range queues {
			if q.ID == "" || q.ID == h.Queue.ID {
				r.p.Drain(h.Queue.ID)
			}
		}
	}
}
