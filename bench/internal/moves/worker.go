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
	m, err := manager.New(c, cfg, manager.Serve(taskType, &dealer{c: c, took: o.Item, fenced: o.Fenced}, o.Settings))
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
	return []item{{s.Queue.Index, d.n.Add(1)}}, nil
}

// execer is a pool or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Execute implements processor.TaskDealer. It reports each item with one write, so that a kill loses no report.
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
		_, err = fmt.Fprintf(os.Stdout, "%d %d %d\n", items[0].queue, begin.UnixNano(), time.Now().UnixNano())
	}
	return err
}
