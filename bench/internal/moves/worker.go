package moves

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// orderVariable is the environment variable that holds the order of a worker process.
const orderVariable = "ROTA_BENCH_WORKER"

// order tells a worker process what to do.
type order struct {
	URL      string
	Settings manager.Settings
	Item     time.Duration // the time of an item without its UPDATE
	Fenced   bool          // items are executed in fenced transactions
	Witness  string        // the witness directory; empty: none
	NoHints  bool          // the worker listens for no hints
	Parts    int           // the items are rows, each of one of so many parts; 0: each queue always has an item
	Name     string        // for which the worker reserves its queues when it leaves; empty: not at all
}

// taskType is the task type that the workers serve.
const taskType = "moves"

// IsWorker reports whether this process is a worker.
func IsWorker() bool { return os.Getenv(orderVariable) != "" }

// Work runs a worker until ctx is done.
func Work(ctx context.Context) error {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(orderVariable)), &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	c, err := center.Open(ctx, anydb.URL(o.URL), center.Options{Schema: center.SchemaRequire})
	if err != nil {
		return err
	}
	defer c.Close()
	go endWithParent()
	cfg := manager.Config{Alerter: alerts{}, WitnessDir: o.Witness, Name: o.Name, NoHints: o.NoHints}
	if o.Name != "" {
		cfg.ReturnWithin = patience
	}
	served := manager.Serve(taskType, &dealer{c: c, took: o.Item, fenced: o.Fenced}, o.Settings)
	if o.Parts > 0 {
		served = manager.Serve(taskType, &rowDealer{db: c.DB(), postgres: c.Dialect() == "postgres", took: o.Item, parts: o.Parts}, o.Settings)
	}
	m, err := manager.New(c, cfg, served)
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// alerts prints alerts, because a measurement with an alert has to be explained.
type alerts struct{}

// Alert implements manager.Alerter.
func (alerts) Alert(a manager.Alert) { fmt.Fprintf(os.Stderr, "alert %s: %s\n", a.Kind, a.Text) }

// endWithParent ends the process when its standard input is closed: the benchmark has ended.
func endWithParent() {
	_, _ = os.Stdin.Read(make([]byte, 1)) // the benchmark writes nothing
	os.Exit(3)
}

// item is one of the endless items of a queue. No two are equal: a dealer that returns the items that it has executed
// is paused (NO_EFFECT).
type item struct {
	queue int
	total int
	n     int64
}

// dealer always has an item for each queue.
type dealer struct {
	c      *center.Center
	took   time.Duration // of an item without its UPDATE
	fenced bool
	n      atomic.Int64
}

// Select implements processor.TaskDealer.
func (d *dealer) Select(_ context.Context, s processor.Selection) ([]item, error) {
	return []item{{s.Queue.Index, s.Total, d.n.Add(1)}}, nil
}

// execer is a pool or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Execute implements processor.TaskDealer.
func (d *dealer) Execute(ctx context.Context, items []item) error {
	begin := time.Now()
	work := func(db execer) error {
		query := map[bool]string{true: `UPDATE work SET items = items + 1 WHERE queue = $1`, false: `UPDATE work SET items = items + 1 WHERE queue = ?`}
		if _, err := db.ExecContext(ctx, query[d.c.Dialect() == "postgres"], items[0].queue); err != nil {
			return err
		}
		time.Sleep(d.took)
		return nil
	}
	var err error
	if d.fenced {
		err = center.InTx(ctx, d.c.DB(), func(tx *sql.Tx) error { return work(tx) })
	} else {
		err = work(d.c.DB())
	}
	if err == nil {
		err = items[0].report(begin)
	}
	return err
}

// report tells the benchmark that an item is done, with one write, so that a kill loses no report.
func (i item) report(begin time.Time) error {
	_, err := fmt.Fprintf(os.Stdout, "%d %d %d %d\n", i.queue, i.total, begin.UnixNano(), time.Now().UnixNano())
	return err
}
