package sqldealer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// BenchmarkParked measures how much of its rate a queue keeps if 100,000 dead rows are ahead of 100,000 healthy ones, with
// {{after}} in the select: rate-with/rate-without from the first healthy row on, of the faster of two runs each, and
// ms-first, the time until that row is executed. Each select asks for the records of its page, and the work is as little
// as an UPDATE of a hundred rows. The goal is 0.6. With -short there are a tenth of the rows.
func BenchmarkParked(b *testing.B) {
	rows := 100_000
	if testing.Short() {
		rows /= 10
	}
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		b.Run(kind, func(b *testing.B) {
			s := openShop(b, testdb.URL(b, kind))
			for b.Loop() {
				without, with := time.Duration(math.MaxInt64), parked{}
				with.took = without
				for range 2 {
					p := parked{shop: s, healthy: rows}
					p.run()
					without = min(without, p.took)
					p = parked{shop: s, healthy: rows, dead: rows}
					if p.run(); p.took < with.took {
						with = p
					}
				}
				b.ReportMetric(float64(without)/float64(with.took), "rate-with/rate-without")
				b.ReportMetric(float64(with.first.Milliseconds()), "ms-first")
			}
		})
	}
}

// parked is a queue of dead rows and of healthy rows behind them.
type parked struct {
	shop
	dead, healthy int

	first, took time.Duration // until the first healthy row is executed, and from then on until all are
}

// parkedJobs is as docs/sql-dealer.md advises. Without FORCE INDEX, MariaDB reads all rows before {{after}} too.
var parkedJobs = config.SQLDealer{
	Select:  "SELECT id FROM jobs FORCE INDEX (jobs_work) WHERE state = 'NEW' AND id > {{after}} AND {{index}} = 1 ORDER BY id LIMIT {{limit}}",
	Execute: "UPDATE jobs SET state = 'DONE' WHERE state = 'NEW' AND id IN ({{keys}})",
	Key:     []string{"id"}, AfterStart: []string{"-1"},
}

// run executes all healthy rows.
func (p *parked) run() {
	p.Helper()
	p.fill()
	c := parkedJobs
	if p.Dialect() != schema.MySQL {
		c.Select = strings.Replace(c.Select, " FORCE INDEX (jobs_work)", "", 1)
	}
	task := p.dealer(c).Use(p.DB())
	ctx, cancel := context.WithCancel(p.Context())
	defer cancel()
	counted := &countedDealer{TaskDealer: task, Paged: task, Keyed: task, finish: cancel}
	counted.left.Store(int64(p.healthy))
	run, err := engine.New(processor.TaskDealer[Row](counted), engine.Env{
		Items: p, Bind: func(ctx context.Context, _ processor.Queue, _ *string) context.Context {
			return p.Bind(ctx, center.Batch{Server: owner, TaskType: "settle", Queue: center.QueueEpoch{ID: "1", Epoch: 7}})
		},
	}, engine.Settings{
		ThreadNumber: 4, FetchNumber: 500, ExecuteNumber: 100, ItemMaxAttempts: 3,
		SleepTimeNoData: 500 * time.Millisecond, Retry: time.Second, RetryMax: time.Second,
	})
	if err != nil {
		p.Fatal(err)
	}
	if err := run.Grant(processor.Queue{ID: "1", Index: 1, Epoch: 7}, 2); err != nil {
		p.Fatal(err)
	}
	begin := time.Now()
	if err := run.Run(ctx); err != nil {
		p.Fatal(err)
	}
	p.first = counted.first.Sub(begin)
	p.took = time.Since(counted.first)
	p.want("SELECT COUNT(*), MIN(id) FROM jobs WHERE state = 'DONE'", fmt.Sprint(p.healthy, " ", p.dead))
}

// fill makes the rows of the user's table and the records of the dead ones. As many rows are done: the databases choose a
// plan by the part of the rows that is open.
func (p *parked) fill() {
	p.Helper()
	p.exec("DROP TABLE IF EXISTS jobs", "DROP TABLE IF EXISTS digits", "DELETE FROM schedule_failed_item", "CREATE TABLE digits (n BIGINT)",
		"CREATE TABLE jobs (id BIGINT PRIMARY KEY, state VARCHAR(9) NOT NULL)", "CREATE INDEX jobs_work ON jobs (state, id)",
		"INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	const number = "a.n + 10*b.n + 100*c.n + 1000*d.n + 10000*e.n + 100000*f.n"
	const from = " FROM digits a, digits b, digits c, digits d, digits e, digits f WHERE " + number + " < "
	open := p.dead + p.healthy
	p.exec(fmt.Sprint("INSERT INTO jobs SELECT ", number, ", CASE WHEN ", number, " < ", open, " THEN 'NEW' ELSE 'OLD' END", from, 2*open))
	now := map[schema.Dialect]string{schema.Postgres: "now()", schema.MySQL: "utc_timestamp(6)"}[p.Dialect()]
	key := "CONCAT(" + number + ", '')"
	hash := map[schema.Dialect]string{schema.Postgres: "encode(sha256(" + key + "::bytea), 'hex')", schema.MySQL: "SHA2(" + key + ", 256)"}[p.Dialect()]
	p.exec(fmt.Sprint(`INSERT INTO schedule_failed_item (task_type, own_sign, item_hash, item_key, queue_id, partition_version, state, attempts, last_error, first_failed_at)
		SELECT 'settle', 'TEST', `, hash, `, `, key, `, '1', (SELECT COALESCE(MAX(partition_version), 0) FROM schedule_task_running), 'DEAD', 3, 'violates a constraint', `, now, from, p.dead))
	analyze := map[schema.Dialect]string{schema.Postgres: "ANALYZE jobs, schedule_failed_item", schema.MySQL: "ANALYZE TABLE jobs, schedule_failed_item"}
	p.exec(analyze[p.Dialect()]) // as the databases do by themselves within a minute
}

// Any implements engine.ItemStore.
func (p *parked) Any(ctx context.Context, q processor.Queue) (bool, error) {
	return failures.Of(p.Roster()).Any(ctx, "settle", q.ID)
}

// Started implements engine.ItemStore. The queue has not crashed.
func (*parked) Started(context.Context, processor.Queue) ([]engine.FailedItem, error) {
	return nil, nil
}

// Find implements engine.ItemStore.
func (p *parked) Find(ctx context.Context, q processor.Queue, keys []string) ([]engine.FailedItem, error) {
	rows, err := failures.Of(p.Roster()).OfPage(ctx, "settle", q.ID, keys)
	return failedItems(rows), err
}

func failedItems(rows []failures.Item) []engine.FailedItem {
	list := make([]engine.FailedItem, len(rows))
	for i, r := range rows {
		list[i] = engine.FailedItem{Key: r.Key, Queue: r.QueueID, Attempts: r.Attempts, Dead: r.State == ops.ItemDead, LastError: r.LastError}
	}
	return list
}

// Save implements engine.ItemStore. No row fails.
func (p *parked) Save(context.Context, processor.Queue, []engine.FailedItem) error {
	return errors.New("a row has failed")
}

// Delete implements engine.ItemStore.
func (p *parked) Delete(context.Context, processor.Queue, []string) error { return nil }

// countedDealer ends the run when all healthy rows are executed.
type countedDealer struct {
	processor.TaskDealer[Row]
	processor.Paged[Row]
	processor.Keyed[Row]
	finish context.CancelFunc
	left   atomic.Int64
	began  sync.Once
	first  time.Time // when the first row was executed
}

func (d *countedDealer) Execute(ctx context.Context, rows []Row) error {
	d.began.Do(func() { d.first = time.Now() })
	err := d.TaskDealer.Execute(ctx, rows)
	if err == nil && d.left.Add(-int64(len(rows))) == 0 {
		d.finish()
	}
	return err
}
