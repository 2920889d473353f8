package choices

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// threads is the default of thread_number.
const threads = 5

// dialect has the statements for one database.
type dialect struct {
	create, fill, index, drop, analyze, next string
	mark                                     func(ids []int64) (query string, args []any)
}

// create makes the table with the index that docs/choosing.md advises. The queue is not in it.
var dialects = map[string]dialect{
	stage.Postgres: {
		create:  `CREATE TABLE work (id bigint PRIMARY KEY, state varchar(10) NOT NULL, note text NOT NULL) WITH (fillfactor = 70)`,
		fill:    `INSERT INTO work (id, state, note) SELECT i, CASE WHEN mod(i, %d) = 0 THEN 'NEW' ELSE 'DONE' END, 'something that makes a row' FROM generate_series(1, %d) i`,
		index:   `CREATE INDEX IF NOT EXISTS work_new ON work (state, id)`,
		drop:    `DROP INDEX IF EXISTS work_new`,
		analyze: `VACUUM ANALYZE work`,
		next:    `SELECT id FROM work WHERE state = 'NEW' AND mod(id, $1) = $2 ORDER BY id LIMIT $3`,
		mark: func(ids []int64) (string, []any) {
			return `UPDATE work SET state = 'DONE' WHERE id = ANY($1) AND (state = 'NEW') IS TRUE`, []any{pq.Array(ids)}
		},
	},
	stage.MariaDB: {
		create:  `CREATE TABLE work (id bigint PRIMARY KEY, state varchar(10) NOT NULL, note varchar(100) NOT NULL)`,
		fill:    `INSERT INTO work (id, state, note) SELECT seq, IF(mod(seq, %d) = 0, 'NEW', 'DONE'), 'something that makes a row' FROM seq_1_to_%d`,
		index:   `CREATE INDEX IF NOT EXISTS work_new ON work (state, id)`,
		drop:    `DROP INDEX IF EXISTS work_new ON work`,
		analyze: `ANALYZE TABLE work`,
		next:    `SELECT id FROM work WHERE state = 'NEW' AND mod(id, ?) = ? ORDER BY id LIMIT ?`,
		mark: func(ids []int64) (string, []any) {
			args := make([]any, len(ids))
			for i, id := range ids {
				args[i] = id
			}
			return `UPDATE work SET state = 'DONE' WHERE id IN (?` + strings.Repeat(", ?", len(ids)-1) +
				`) AND (state = 'NEW') IS TRUE`, args
		},
	},
}

// fillTable makes a table of n rows, of which one in some is new, with or without the index.
func fillTable(ctx context.Context, db *stage.Database, n, oneIn int, indexed bool) error {
	d := dialects[db.Server.Kind]
	index := d.drop
	if indexed {
		index = d.index
	}
	return db.Do(ctx, `TRUNCATE TABLE work`, index, fmt.Sprintf(d.fill, oneIn, n), d.analyze)
}

// marker marks rows.
type marker struct {
	dialect
	db    *sql.DB
	begun atomic.Pointer[time.Time] // the first select
	left  atomic.Int64
	done  chan time.Time // gets the time when no row is left
}

// Select implements processor.TaskDealer.
func (m *marker) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	if m.begun.Load() == nil {
		now := time.Now()
		m.begun.CompareAndSwap(nil, &now)
	}
	return center.Column[int64](ctx, m.db, m.next, s.Total, s.Queue.Index, s.Limit)
}

// Execute implements processor.TaskDealer.
func (m *marker) Execute(ctx context.Context, ids []int64) error {
	err := center.InTx(ctx, m.db, func(tx *sql.Tx) error {
		query, args := m.mark(ids)
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
	if err == nil && m.left.Add(int64(-len(ids))) == 0 {
		m.done <- time.Now()
	}
	return err
}

// markRate returns how many of n rows a worker marks in a second, from its first select to the last row.
func markRate(ctx context.Context, db *stage.Database, n, batch, queues int) (float64, error) {
	if err := fillTable(ctx, db, n, 1, true); err != nil {
		return 0, err
	}
	d := &marker{dialect: dialects[db.Server.Kind], db: db.DB, done: make(chan time.Time, 1)}
	d.left.Store(int64(n))
	// The settings in the database win over those in the code, so each choice has a task type of its own.
	m, err := manager.New(db.Center, manager.Config{}, manager.Serve(fmt.Sprintf("choices-%d-%d", batch, queues), d,
		manager.Settings{Queues: queues, ThreadNumber: threads, ExecuteNumber: batch}))
	if err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	select {
	case at := <-d.done:
		stop()
		return float64(n) / at.Sub(*d.begun.Load()).Seconds(), <-ended
	case err := <-ended:
		if err == nil {
			err = ctx.Err()
		}
		return 0, err
	}
}

// searchRate returns how many selects a second find the new rows of one queue in a large table.
func searchRate(ctx context.Context, db *stage.Database, o Options, index string) (float64, error) {
	if err := fillTable(ctx, db, o.Table, o.Table/o.Waiting, index != "none"); err != nil {
		return 0, err
	}
	next := dialects[db.Server.Kind].next
	start := time.Now()
	for range o.Searches {
		if _, err := center.Column[int64](ctx, db.DB, next, 1, 0, o.Waiting); err != nil {
			return 0, err
		}
	}
	return float64(o.Searches) / time.Since(start).Seconds(), nil
}
