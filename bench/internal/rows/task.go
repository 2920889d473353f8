package rows

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/schema"
)

// The layout is that of the README: its table with its index, its select and its UPDATE, a page of fetch_number rows and
// batches of its execute_number. Each peer that divides the rows has the same statements.
const (
	queues  = 8
	fetched = 500
	batch   = 100
)

// The tables. Each has only the index for the peers that use it, which is the best one for them.
const (
	divided = "orders"
	claimed = "orders_claimed"
)

// dialect has the statements of the peers for one database.
type dialect struct {
	create []string
	vacuum string // with a placeholder for the table
	next   string // the rows of one queue, for the total, the number of the queue and the limit
	claim  string // rows of any worker
	settle func(table string, ids []int64) (query string, args []any)
}

var dialects = map[string]dialect{
	stage.Postgres: {
		create: []string{
			`CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL, settled_by text, note text NOT NULL)`,
			`CREATE INDEX orders_work ON orders (state, (` + schema.Postgres.MineIndex("id", queues) + `), id)`,
			`CREATE TABLE orders_claimed (id bigint PRIMARY KEY, state text NOT NULL, settled_by text, note text NOT NULL)`,
			`CREATE INDEX orders_claimed_work ON orders_claimed (id) WHERE state = 'NEW'`,
		},
		vacuum: `VACUUM ANALYZE %s`,
		next:   `SELECT id FROM orders WHERE state = 'NEW' AND ` + schema.Postgres.Mine("id", 1) + ` ORDER BY id LIMIT $3`,
		claim:  `SELECT id FROM orders_claimed WHERE state = 'NEW' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED`,
		settle: func(table string, ids []int64) (string, []any) {
			return `UPDATE ` + table + ` SET state = 'SETTLED', settled_by = 'me' WHERE id = ANY($1) AND (state = 'NEW') IS TRUE`, []any{pq.Array(ids)}
		},
	},
	stage.MariaDB: ofMySQL,
	stage.MySQL:   ofMySQL,
}

var ofMySQL = dialect{
	create: []string{
		`CREATE TABLE orders (id bigint PRIMARY KEY, state varchar(10) NOT NULL, settled_by varchar(100), note varchar(100) NOT NULL,
			INDEX orders_work (state, id))`,
		`CREATE TABLE orders_claimed LIKE orders`,
	},
	vacuum: `ANALYZE TABLE %s`,
	next:   `SELECT id FROM orders WHERE state = 'NEW' AND ` + schema.MySQL.Mine("id", 1) + ` ORDER BY id LIMIT ?`,
	claim:  `SELECT id FROM orders_claimed WHERE state = 'NEW' ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED`,
	settle: func(table string, ids []int64) (string, []any) {
		args := make([]any, len(ids))
		for i, id := range ids {
			args[i] = id
		}
		return `UPDATE ` + table + ` SET state = 'SETTLED', settled_by = 'me' WHERE id IN (?` + strings.Repeat(", ?", len(ids)-1) +
			`) AND (state = 'NEW') IS TRUE`, args
	},
}

func prepare(ctx context.Context, db *stage.Database) error {
	if err := db.Do(ctx, dialects[db.Server.Kind].create...); err != nil {
		return err
	}
	if db.Server.Kind == stage.Postgres {
		return migrateRiver(ctx, db.URL)
	}
	return nil
}

// task is a table of rows that a peer settles.
type task struct {
	db      *stage.Database
	sql     dialect
	program string // rota
	table   string
	n       int
	workers int

	begun  atomic.Pointer[time.Time]
	count  atomic.Int64
	done   chan struct{} // closed when all rows are settled
	ended  time.Time     // when all rows were settled
	client time.Duration // processor time of a program of its own that has settled them; else 0
}

// fill makes n new rows.
func (t *task) fill(ctx context.Context) error {
	if err := t.db.Do(ctx, `TRUNCATE TABLE `+t.table); err != nil {
		return err
	}
	const chunk = 1_000
	for first := 1; first <= t.n; first += chunk {
		var rows []string
		for id := first; id <= min(t.n, first+chunk-1); id++ {
			rows = append(rows, fmt.Sprintf("(%d, 'NEW', 'something that makes a row')", id))
		}
		if err := t.db.Do(ctx, `INSERT INTO `+t.table+` (id, state, note) VALUES `+strings.Join(rows, ", ")); err != nil {
			return err
		}
	}
	return t.db.Do(ctx, fmt.Sprintf(t.sql.vacuum, t.table))
}

// begin records the time of the first select.
func (t *task) begin() {
	if t.begun.Load() == nil {
		now := time.Now()
		t.begun.CompareAndSwap(nil, &now)
	}
}

// settled records that n rows were settled.
func (t *task) settled(n int) {
	if t.count.Add(int64(n)) == int64(t.n) {
		t.ended = time.Now()
		close(t.done)
	}
}
