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

// dealer is the TaskDealer of the README.
type dealer struct {
	*task
	fence fence
}

// fence is how a dealer writes.
type fence int

const (
	unfenced  fence = iota
	together        // by center.ExecFenced
	inSeveral       // by center.InTx
)

// Select implements processor.TaskDealer.
func (d dealer) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	d.begin()
	return center.Column[int64](ctx, d.db.DB, d.sql.next, s.Total, s.Queue.Index, s.Limit)
}

// Execute implements processor.TaskDealer.
func (d dealer) Execute(ctx context.Context, list []int64) (err error) {
	switch d.fence {
	case unfenced:
		err = d.settle(ctx, d.db, list)
	case together:
		query, args := d.sql.settle(d.table, list)
		err = center.ExecFenced(ctx, d.db.DB, query, args...)
	case inSeveral:
		err = center.InTx(ctx, d.db.DB, func(tx *sql.Tx) error { return d.settle(ctx, tx, list) })
	}
	if err == nil {
		d.settled(len(list))
	}
	return err
}

// ordered is a dealer whose rows belong to 10,000 customers. Rows of one customer are executed in order.
type ordered struct{ dealer }

const customers = 10_000

func (ordered) Key(id int64) string      { return strconv.FormatInt(id, 10) }
func (ordered) OrderKey(id int64) string { return strconv.FormatInt(id%customers, 10) }
func (ordered) Atomic() bool             { return true }

func byRota(f fence) func(context.Context, *task) error {
	return serve(func(t *task) processor.TaskDealer[int64] { return dealer{t, f} })
}

func inOrder(ctx context.Context, t *task) error {
	return serve(func(t *task) processor.TaskDealer[int64] { return ordered{dealer{t, together}} })(ctx, t)
}

// taskType is the name of the task type of a case. The settings in the database win over those in the code, so each
// number of workers has a task type of its own.
func (t *task) taskType() string { return fmt.Sprintf("settle-%d", t.workers) }

// serve runs one process with as many executors as there are workers.
func serve(dealerOf func(*task) processor.TaskDealer[int64]) func(context.Context, *task) error {
	return func(ctx context.Context, t *task) error {
		m, err := manager.New(t.db.Center, manager.Config{}, manager.Serve(t.taskType(), dealerOf(t), manager.Settings{
			Queues: queues, ThreadNumber: t.workers, FetchNumber: fetched, ExecuteNumber: batch,
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
