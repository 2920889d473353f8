package program

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// Program does the operations outside of this process. The executors of a worker call it concurrently.
type Program interface {
	// Ask returns the reply to a request. An error means that the whole batch has failed, and ErrFenced that the program
	// has found the queue lost.
	Ask(ctx context.Context, b *Batch) (*Reply, error)
}

// InTx runs a fenced transaction in the database that has the items of a batch, as center.InTx does.
type InTx func(ctx context.Context, fn func(*sql.Tx) error) error

// Run lets a program do an operation with items of one queue, which s has selected. ctx is that of Execute or Discard.
func Run(ctx context.Context, p Program, op string, s *processor.Selection, items []Item, inTx InTx) (Outcome, error) {
	b, err := newBatch(ctx, s, items)
	if err != nil {
		return nil, err
	}
	b.Op = op
	reply, err := p.Ask(ctx, b)
	switch {
	case errors.Is(err, ErrFenced):
		return nil, checkFenced(ctx, inTx, err)
	case err != nil:
		return nil, errors.Join(err, center.UnknownCommit(ctx)) // it has not told what became of its transaction
	}
	return reply.Outcome, nil
}

// newBatch returns the request for items of one queue. Items with one key are one.
func newBatch(ctx context.Context, s *processor.Selection, items []Item) (*Batch, error) {
	owner, _ := center.BatchFrom(ctx) // FenceStatementOf refuses a context without a batch
	fence, err := center.FenceStatementOf(ctx)
	if err != nil {
		return nil, err
	}
	b := newRequest(s)
	b.Queue, b.Epoch, b.Database = owner.Queue.ID, owner.Queue.Epoch, owner.Database
	b.Fence = &Fence{SQL: fence.SQL, Args: fence.Args}
	b.Items = make([]Item, 0, len(items))
	seen := make(map[string]struct{}, len(items))
	for _, item := range items {
		if _, twice := seen[item.Key]; !twice {
			seen[item.Key] = struct{}{}
			b.Items = append(b.Items, item)
		}
	}
	return b, nil
}

// newRequest returns a request with what is the same for all queues.
func newRequest(s *processor.Selection) *Batch {
	b := &Batch{TaskType: s.TaskType, OwnSign: s.OwnSign, Server: s.Server, Parameter: s.Parameter}
	if s.Run != nil {
		b.RunKey, b.TraceParent = s.Run.Key, s.Run.TraceParent
		b.Run = map[string]any{"params": s.Run.Params}
		for _, f := range processor.RunFields() {
			if value := f.Value(s.Run); value != nil {
				b.Run[f.Name] = value
			}
		}
	}
	return b
}

// checkFenced returns what the fence itself says, when a program says that it is fenced.
func checkFenced(ctx context.Context, inTx InTx, told error) error {
	if err := inTx(ctx, func(*sql.Tx) error { return nil }); err != nil {
		return fmt.Errorf("%w: %w", told, err)
	}
	return fmt.Errorf("%w, but the worker owns the queue: does the program run the statement first, in a transaction of "+
		"the right database?", told)
}

// Err returns the errors of the items that have failed, as Execute of a dealer returns them.
func (o Outcome) Err(items []Item) error {
	var failures processor.Failures
	for i, item := range items {
		if err := o[item.Key]; err != nil {
			failures.Add(i, err)
		}
	}
	return failures.Err()
}
