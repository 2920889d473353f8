package costs

import (
	"context"
	"database/sql"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// worker is a real worker process, alone in its roster. Its dealer selects pages of five batches from memory. A batch is
// a fenced transaction with one UPDATE.
type worker struct {
	*steps
	busy    atomic.Bool // there are items
	batches atomic.Int64
}

const (
	workerQueues = 8
	batch        = 100
	page         = 5 * batch
	settling     = 3 * time.Second // until a worker has joined, planned and audited
)

// Select returns a page of items while there are any.
func (w *worker) Select(context.Context, processor.Selection) ([]int, error) {
	if !w.busy.Load() {
		return nil, nil
	}
	return make([]int, page), nil
}

// Execute marks the items of a batch.
func (w *worker) Execute(ctx context.Context, _ []int) error {
	w.batches.Add(1)
	return center.InTx(ctx, w.c.DB(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE costs_work SET n = n + 1`)
		return err
	})
}

// work measures a worker without items, and then with items for a tenth of the time.
func (r *steps) work(o Options) error {
	w := &worker{steps: r}
	for _, s := range []string{`CREATE TABLE costs_work (n INTEGER NOT NULL)`, `INSERT INTO costs_work VALUES (0)`} {
		if _, err := r.c.DB().ExecContext(r.ctx, s); err != nil {
			return err
		}
	}
	m, err := manager.New(r.c, manager.Config{}, manager.Serve("work", w, manager.Settings{Queues: workerQueues, ExecuteNumber: batch, FetchNumber: page}))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(r.ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	time.Sleep(settling)
	r.measure("a worker without items, per second", int(o.Rest.Seconds()), rested(o.Rest))
	w.busy.Store(true)
	time.Sleep(o.Rest / 30) // until its connections are open
	before := w.batches.Load()
	r.measure("a worker with items, per batch", 1, rested(o.Rest/10))
	r.costs[len(r.costs)-1].divide(float64(w.batches.Load() - before))
	stop()
	return <-ended
}

// rested returns a step that waits once, in the first of its repetitions.
func rested(d time.Duration) func() error {
	return func() error {
		time.Sleep(d)
		d = 0
		return nil
	}
}

// divide divides what was counted by the number of batches.
func (c *Cost) divide(by float64) {
	for _, figure := range []*float64{&c.Statements, &c.Commits, &c.Rows, &c.Sent, &c.Received, &c.Allocated} {
		*figure /= max(1, by)
	}
}
