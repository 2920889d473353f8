package rotatest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/rotatest"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// settle is the dealer under test. Each order takes effect once: a fenced transaction changes what Select looks for, and
// books the payment.
type settle struct{ db *sql.DB }

func (s settle) Select(ctx context.Context, sel processor.Selection) (ids []int64, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id FROM orders WHERE state = 'NEW' AND id % $1 = $2 ORDER BY id LIMIT $3`,
		sel.Total, sel.Queue.Index, sel.Limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

func (s settle) Execute(ctx context.Context, ids []int64) error {
	return center.InTx(ctx, s.db, func(tx *sql.Tx) error {
		var amount int
		if err := tx.QueryRowContext(ctx, `UPDATE orders SET state = 'SETTLED' WHERE id = $1 RETURNING amount`, ids[0]).Scan(&amount); err != nil {
			return err
		}
		if amount < 0 {
			return errors.New("the amount is negative")
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO payments (order_id, amount) VALUES ($1, $2)`, ids[0], amount)
		return err
	})
}

func (settle) Key(id int64) string { return strconv.FormatInt(id, 10) }

// dealer is a dealer of orders: settle, or a broken one that each of these tests must refuse (TestBrokenDealers).
type dealer interface {
	processor.TaskDealer[int64]
	processor.Keyed[int64]
}

var newSettle = func(db *sql.DB) dealer { return settle{db} }

// t is the t of the test in which these lines would stand.
var t = &exampleTB{}

// exampleTB lets the examples run without a test. Their outputs are compared all the same.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (*exampleTB) Helper()                  {}
func (*exampleTB) Context() context.Context { return context.Background() }
func (*exampleTB) Output() io.Writer        { return io.Discard }
func (e *exampleTB) Cleanup(f func())       { e.cleanups = append(e.cleanups, f) }
func (*exampleTB) Fatal(args ...any)        { panic(fmt.Sprint(args...)) }
func (*exampleTB) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
func (*exampleTB) Errorf(format string, args ...any) { fmt.Printf(format, args...) }

func TestMain(m *testing.M) {
	if name := os.Getenv(brokenDealer); name != "" {
		newSettle = brokenDealers[name]
	}
	code := m.Run()
	for _, cleanup := range slices.Backward(t.cleanups) {
		cleanup()
	}
	os.Exit(code)
}

// createOrders makes the tables of the dealer, and orders 1 to n with an amount of 10. bad have a negative one.
func createOrders(db *sql.DB, n int, bad ...int) {
	exec := func(query string, args ...any) {
		if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
			panic(err)
		}
	}
	exec(`CREATE TABLE orders (id BIGINT PRIMARY KEY, amount INTEGER NOT NULL, state VARCHAR(10) NOT NULL)`)
	exec(`CREATE TABLE payments (order_id BIGINT NOT NULL, amount INTEGER NOT NULL)`)
	for i := range n {
		exec(`INSERT INTO orders VALUES ($1, 10, 'NEW')`, i+1)
	}
	for _, id := range bad {
		exec(`UPDATE orders SET amount = -10 WHERE id = $1`, id)
	}
}

// count returns the one number that a query returns.
func count(db *sql.DB, query string) (n int) {
	if err := db.QueryRowContext(context.Background(), query).Scan(&n); err != nil {
		panic(err)
	}
	return n
}

// A dealer settles each order that it selects, once.
func ExampleRoster_Work() {
	r := rotatest.Open(t, rotatest.Options{})
	createOrders(r.DB(), 100)

	r.Work(manager.Serve("settle", newSettle(r.DB()), manager.Settings{Queues: 4}))

	fmt.Println("new:", count(r.DB(), `SELECT COUNT(*) FROM orders WHERE state = 'NEW'`))
	fmt.Println("payments:", count(r.DB(), `SELECT COUNT(*) FROM payments`))
	// Output:
	// new: 0
	// payments: 100
}

// An order that fails three times is dead, its effects are rolled back, and the others are settled. In a bubble of
// testing/synctest the pauses between the attempts may be those of production.
func ExampleRoster_FailedItems() {
	r := rotatest.Open(t, rotatest.Options{})
	createOrders(r.DB(), 10, 7)

	r.Work(manager.Serve("settle", newSettle(r.DB()), manager.Settings{
		Queues: 4, ItemMaxAttempts: 3, ItemRetry: time.Millisecond,
	}))

	for _, i := range r.FailedItems("settle") {
		fmt.Println(i.ItemKey, i.State, i.Attempts, i.LastError)
	}
	fmt.Println("payments:", count(r.DB(), `SELECT COUNT(*) FROM payments`))
	// Output:
	// 7 DEAD 3 the amount is negative
	// payments: 9
}

// A run ends when all its queues are swept. An order that fails alone fails the run, and the others are settled.
func ExampleRoster_Run() {
	r := rotatest.Open(t, rotatest.Options{})
	createOrders(r.DB(), 10, 7)

	nightly := manager.Serve("nightly", newSettle(r.DB()), manager.Settings{
		Queues: 2, Mode: center.ModeRun, QueueMaxAttempts: 1,
	})
	run := r.Run("nightly", "2026-10-01", "", nightly)

	fmt.Println(run.State, run.Message)
	items, err := ops.New(r.Center()).Runs().FailedItems(t.Context(), runs.FailedItemFilter{RunID: run.ID}, 10)
	for _, i := range items {
		fmt.Println(i.Key, i.LastError, err)
	}
	fmt.Println("payments:", count(r.DB(), `SELECT COUNT(*) FROM payments`))
	// Output:
	// FAILED 1 of 2 queues failed, first queue 1: execute 1 item of queue 1: the amount is negative; items failed: 1
	// 7 the amount is negative <nil>
	// payments: 9
}

// takenOver takes the queues from the worker in the middle of its first Execute.
type takenOver struct {
	dealer
	r   *rotatest.Roster
	err chan error // of the first Execute
}

func (d takenOver) Execute(ctx context.Context, ids []int64) error {
	if len(d.err) > 0 {
		return d.dealer.Execute(ctx, ids)
	}
	if err := d.r.TakeOver(ctx); err != nil {
		return err
	}
	err := d.dealer.Execute(ctx, ids)
	d.err <- err
	return err
}

// The fence rejects the transaction of a worker that has lost its queues. The next owner settles the order.
func ExampleRoster_TakeOver() {
	r := rotatest.Open(t, rotatest.Options{})
	createOrders(r.DB(), 10)

	d := takenOver{newSettle(r.DB()), r, make(chan error, 1)}
	r.Work(manager.Serve("settle", d, manager.Settings{Queues: 1, ThreadNumber: 1}))

	fmt.Println("fenced:", errors.Is(<-d.err, center.ErrFenced))
	fmt.Println("payments:", count(r.DB(), `SELECT COUNT(*) FROM payments`))
	// Output:
	// fenced: true
	// payments: 10
}
