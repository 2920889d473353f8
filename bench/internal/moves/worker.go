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

// orderVariable is the environment variable that holds the order of a worker process.
const orderVariable = "ROTA_BENCH_WORKER"

// order tells a worker process what to do.
type order struct {
	URL      string
	Settings manager.Settings
	Item     time.Duration // the time of an item without its UPDATE
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
	m, err := manager.New(c, manager.Config{}, manager.Serve(taskType, &dealer{c, o.Item}, o.Settings))
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

// endWithParent ends the process when its standard input is closed: the benchmark has ended.
func endWithParent() {
	_, _ = os.Stdin.Read(make([]byte, 1)) // the benchmark writes nothing
	os.Exit(3)
}

// dealer always has an item for each queue.
type dealer struct {
	c    *center.Center
	item time.Duration
}

// Select implements processor.TaskDealer.
func (d *dealer) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return []int{s.Queue.Index}, nil
}

// Execute implements processor.TaskDealer. It reports each item with one write, so that a kill loses no report.
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
