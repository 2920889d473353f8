// Package processor has what you implement for a worker: a dealer, which is a TaskDealer with two methods. This is a
// whole worker without its imports (examples/worker):
//
//	type settle struct{ db *sql.DB }
//
//	// Select returns the next orders of one queue. It claims nothing.
//	func (s settle) Select(ctx context.Context, sel processor.Selection) ([]int64, error) {
//		return center.Column[int64](ctx, s.db, `SELECT id FROM orders WHERE state = 'NEW' AND `+
//			schema.Postgres.Mine("id", 1)+` ORDER BY id LIMIT $3`, sel.Total, sel.Queue.Index, sel.Limit)
//	}
//
//	// Execute settles them. The statement changes nothing if another worker owns the queue by now.
//	func (s settle) Execute(ctx context.Context, ids []int64) error {
//		return center.ExecFenced(ctx, s.db, `UPDATE orders SET state = 'SETTLED' WHERE id = ANY($1)`, pq.Array(ids))
//	}
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//		defer stop()
//		c, err := center.Open(ctx, postgres.URL(os.Getenv("ROTA_DATABASE")), center.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		settings := manager.Settings{Queues: 8, ExecuteNumber: 100}
//		m, err := manager.New(c, manager.Config{}, manager.Serve("settle", settle{c.DB()}, settings))
//		if err != nil {
//			log.Fatal(err)
//		}
//		if err := m.Run(ctx); err != nil { // until the signal; then it ends what it has begun
//			log.Fatal(err)
//		}
//	}
//
// Settings divide the rows of the task type "settle" into queues, 8 here. Start the program as often as you like: each
// worker owns some of the queues, and no queue has two owners. Select returns the next items of one queue, which the
// Selection names; what an item is, a key or a whole row, is up to you. Rota cuts them into batches of execute_number
// items, and calls Execute for each. An item is done when Select no longer returns it. So after a crash or an error the
// next Select, here or on another worker, returns what is left. Write what Execute does through center.ExecFenced, or
// center.InTx for several statements: it commits only while this worker owns the queue, so that no item takes effect
// twice.
//
// # What a dealer can do besides
//
// A dealer that implements more interfaces offers more, for example Keyed (items that fail one by one), Ordered (items
// of one key in order), Discarder (a place for dead items), Cursored and Paged. Execute says by Failures which items
// have failed, and by Permanent and RetryAfter whether and when to try them again. RunOf returns the run whose
// items Execute works on. A worker needs nothing else of this package.
//
// Hooks wrap the calls of a dealer, for metrics and spans. Stats are what a worker counts. The package knows no SQL,
// and imports nothing of Rota: internal/engine calls the dealer, and package manager lets it.
package processor
