package program

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// Dealer is the dealer of a program that selects its items itself. Several goroutines may use it.
//
// It is Keyed. It is Ordered, because each item may have an order key. It is not Atomic: a program is not all or
// nothing. It is not Paged, and leaves out Selection.Held if the program does.
type Dealer struct {
	program Program
	answers []string // the operations that the program answers
	pool    *sql.DB  // of the roster's database
}

// NewDealer returns the dealer of a program that answers these operations beside OpExecute. The pool is that of the
// roster's database.
func NewDealer(p Program, answers []string, pool *sql.DB) *Dealer {
	return &Dealer{program: p, answers: answers, pool: pool}
}

// Capabilities implements processor.Capable: the dealer is a Discarder if the program answers OpDiscard.
func (d *Dealer) Capabilities() processor.Capabilities {
	return processor.Capabilities{Keyed: true, Ordered: true, Discarder: slices.Contains(d.answers, OpDiscard)}
}

// Select implements processor.TaskDealer.
func (d *Dealer) Select(ctx context.Context, s processor.Selection) ([]Selected, error) {
	b := newQuestion(OpSelect, &s)
	b.Limit, b.Held = s.Limit, s.Held
	r, err := d.program.Ask(ctx, b)
	if err != nil {
		return nil, err
	}
	for i := range r.Selected {
		r.Selected[i].of = &s
	}
	return r.Selected, nil
}

// newQuestion returns a request about one queue.
func newQuestion(op string, s *processor.Selection) *Batch {
	b := newRequest(s)
	b.Op, b.Queue, b.Epoch, b.Database, b.Part = op, s.Queue.ID, s.Queue.Epoch, s.Queue.Database, partOf(s)
	return b
}

func partOf(s *processor.Selection) *Part {
	return &Part{Index: s.Queue.Index, Total: s.Total, Parameter: s.Queue.Parameter}
}

// Execute implements processor.TaskDealer.
func (d *Dealer) Execute(ctx context.Context, list []Selected) error {
	items := make([]Item, len(list))
	for i, s := range list {
		items[i] = Item{Key: s.Key, Row: s.Row}
	}
	return d.run(ctx, OpExecute, list[0].of, items)
}

func (d *Dealer) run(ctx context.Context, op string, s *processor.Selection, items []Item) error {
	outcome, err := Run(ctx, d.program, op, s, items, d.inTx)
	if err != nil {
		return err
	}
	return outcome.Err(items)
}

// inTx runs a fenced transaction in the database whose fence the batch has.
func (d *Dealer) inTx(ctx context.Context, fn func(*sql.Tx) error) error {
	if data := center.DataOf(ctx); data != nil {
		return data.InTx(ctx, fn)
	}
	return center.InTx(ctx, d.pool, fn)
}

// Key implements processor.Keyed.
func (d *Dealer) Key(s Selected) string { return s.Key }

// OrderKey implements processor.Ordered.
func (d *Dealer) OrderKey(s Selected) string { return s.OrderKey }

// Peek implements processor.Peeker.
func (d *Dealer) Peek(ctx context.Context, idle []processor.Selection) ([]string, error) {
	if !slices.Contains(d.answers, OpPeek) {
		return nil, processor.ErrNoPeek
	}
	b := newRequest(&idle[0])
	b.Op, b.Database = OpPeek, idle[0].Queue.Database
	for i := range idle {
		s := &idle[i]
		b.Queues = append(b.Queues, Idle{Queue: s.Queue.ID, Epoch: s.Queue.Epoch, Part: *partOf(s)})
	}
	r, err := d.program.Ask(ctx, b)
	if err != nil {
		return nil, err
	}
	return r.Queues, nil
}

// Backlog implements processor.Backlogger. An age counts back from now.
func (d *Dealer) Backlog(ctx context.Context, s processor.Selection) (backlog processor.Backlog, err error) {
	if !slices.Contains(d.answers, OpBacklog) {
		return backlog, processor.ErrNoBacklog
	}
	r, err := d.program.Ask(ctx, newQuestion(OpBacklog, &s))
	if err != nil {
		return backlog, err
	}
	backlog.Items = *r.Count
	if backlog.Items > 0 && r.OldestAgeMS != nil {
		backlog.Oldest = time.Now().Add(-time.Duration(*r.OldestAgeMS) * time.Millisecond)
	}
	return backlog, nil
}

// Discard implements processor.Discarder.
func (d *Dealer) Discard(ctx context.Context, s Selected, cause error) error {
	return d.run(ctx, OpDiscard, s.of, []Item{{Key: s.Key, Row: s.Row, Error: cause.Error()}})
}

var (
	_ processor.Keyed[Selected]     = (*Dealer)(nil)
	_ processor.Ordered[Selected]   = (*Dealer)(nil)
	_ processor.Peeker              = (*Dealer)(nil)
	_ processor.Backlogger          = (*Dealer)(nil)
	_ processor.Discarder[Selected] = (*Dealer)(nil)
	_ processor.Capable             = (*Dealer)(nil)
)
