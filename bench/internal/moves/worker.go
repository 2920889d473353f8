package moves

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// orderVariable makes this program a worker: it holds an order.
const orderVariable = "ROTA_BENCH_WORKER"

// order is what a worker process is told.
type order struct {
	URL      string
	Settings manager.Settings
	Item     time.Duration // how long an item takes, beside its UPDATE
}

// taskType is the one that the workers serve.
const taskType = "moves"

// IsWorker reports that this process was started to be a worker.
func IsWorker() bool { return os.Getenv(orderVariable) != "" }

// Work is the whole life of a worker process, until ctx is done.
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
	m, err := manager.New(c, manager.Config{}, manager.Serve(taskType, &dealer{c, o.Item}, o.Settings))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// endWithParent ends the process with its standard input: whoever started it is gone.
func endWithParent() {
	_, _ = os.Stdin.Read(make([]byte, 1)) // nothing is ever written to it
	os.Exit(3)
}

// dealer has an item for each queue at any time.
type dealer struct {
	c    *center.Center
	item time.Duration
}

// Select implements processor.TaskDealer.
func (d *dealer) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return []int{s.Queue.Index}, nil
}

// Execute implements processor.TaskDealer. It tells of each item with one write, so that what is told outlives the
// process.
func (d *dealer) Execute(ctx context.Context, items []int) error {
	begin := time.Now()
	query := map[bool]string{true: `UPDATE work SET items = items + 1 WHERE queue = $1`, false: `UPDATE work SET items = items + 1 WHERE queue = ?`}
	if _, err := d.c.DB().ExecContext(ctx, query[d.c.Dialect() == "postgres"], items[0]); err != nil {
		return err
	}
	time.Sleep(d.item)
	_, err := fmt.Fprintf(os.Stdout, "%d %d %d\n", items[0], begin.UnixNano(), time.Now().UnixNano())
	return err
}
