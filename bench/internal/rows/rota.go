package rows

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// dealer is a TaskDealer with the statements of the hand-written loop.
type dealer struct {
	*task
	inTx bool
}

// Select implements processor.TaskDealer.
func (d dealer) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	d.begin()
	return ids(ctx, d.db, d.sql.next, s.Queue.Index, s.Limit)
}

// Execute implements processor.TaskDealer.
func (d dealer) Execute(ctx context.Context, list []int64) error {
	d.labour(len(list))
	var err error
	if d.inTx {
		err = center.InTx(ctx, d.db.DB, func(tx *sql.Tx) error { return d.mark(ctx, tx, list) })
	} else {
		err = d.mark(ctx, d.db, list)
	}
	if err == nil {
		d.settled(len(list))
	}
	return err
}

// ordered is a dealer whose rows belong to 10,000 customers. Rows of one customer are executed in order.
type ordered struct{ dealer }

// customers is the number of customers of a queue. A block of neighbours has rows of different customers.
const customers = 10_000 / queues

func (ordered) Key(id int64) string      { return strconv.FormatInt(id, 10) }
func (ordered) OrderKey(id int64) string { return strconv.FormatInt(id%customers, 10) }
func (ordered) Atomic() bool             { return true }

func byRota(inTx bool) func(context.Context, *task) error {
	return serve(func(t *task) processor.TaskDealer[int64] { return dealer{t, inTx} })
}

func inOrder(ctx context.Context, t *task) error {
	return serve(func(t *task) processor.TaskDealer[int64] { return ordered{dealer{t, true}} })(ctx, t)
}

// serve runs one process with as many executors as there are workers.
func serve(dealerOf func(*task) processor.TaskDealer[int64]) func(context.Context, *task) error {
	return func(ctx context.Context, t *task) error {
		// The settings in the database win over those in the code, so each case has a task type of its own.
		name := fmt.Sprintf("rows-%d-%d", t.workers, page(t.work))
		m, err := manager.New(t.db.Center, manager.Config{}, manager.Serve(name, dealerOf(t), manager.Settings{
			Queues: queues, ThreadNumber: t.workers, FetchNumber: page(t.work), ExecuteNumber: page(t.work),
		}))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		select {
		case <-t.done:
			cancel()
			return <-ended
		case err := <-ended:
			if err == nil {
				err = ctx.Err()
			}
			return err
		}
	}
}
