package rows

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/bench/internal/stage"
)

// queues is the number of queues of the peers that divide the rows.
const queues = 8

// block is the number of neighbouring rows in the same queue, as the README advises. The rows of a statement are then on
// few pages of the database, as they are for the SKIP LOCKED loop. Queues with every eighth row, mod(id, 8), cost
// PostgreSQL a third.
const block = 100

// page returns the number of rows that one statement marks.
func page(work time.Duration) int {
	if work > 0 {
		return 100 // so that each worker has several pages of the fewer rows
	}
	return 500
}

// The tables. Each has only the index for the peers that use it.
const (
	sharded = "work_sharded"
	claimed = "work_claimed"
)

// dialect has the statements of the peers for one database.
type dialect struct {
	create []string
	fill   string // with placeholders for the table and the number of rows
	vacuum string // with a placeholder for the table
	next   string // the rows of one queue
	claim  string // rows of any worker
	settle func(table string, ids []int64) (query string, args []any)
}

var dialects = map[string]dialect{
	stage.Postgres: {
		create: []string{
			`CREATE TABLE work_sharded (id bigint PRIMARY KEY, state smallint NOT NULL DEFAULT 0, note text NOT NULL) WITH (fillfactor = 70)`,
			fmt.Sprintf(`CREATE INDEX work_sharded_new ON work_sharded (mod(id / %d, %d), id) WHERE state = 0`, block, queues),
			`CREATE TABLE work_claimed (id bigint PRIMARY KEY, state smallint NOT NULL DEFAULT 0, note text NOT NULL) WITH (fillfactor = 70)`,
			`CREATE INDEX work_claimed_new ON work_claimed (id) WHERE state = 0`,
		},
		fill:   `INSERT INTO %s (id, note) SELECT i, 'something that makes a row' FROM generate_series(1, %d) i`,
		vacuum: `VACUUM ANALYZE %s`,
		next:   fmt.Sprintf(`SELECT id FROM work_sharded WHERE state = 0 AND mod(id / %d, %d) = $1 ORDER BY id LIMIT $2`, block, queues),
		claim:  `SELECT id FROM work_claimed WHERE state = 0 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED`,
		settle: func(table string, ids []int64) (string, []any) {
			return `UPDATE ` + table + ` SET state = 1 WHERE state = 0 AND id = ANY($1)`, []any{pq.Array(ids)}
		},
	},
	stage.MariaDB: {
		create: []string{
			fmt.Sprintf(`CREATE TABLE work_sharded (id bigint PRIMARY KEY, state smallint NOT NULL DEFAULT 0, note varchar(100) NOT NULL,
				part bigint AS (mod(id DIV %d, %d)) VIRTUAL, INDEX (state, part, id))`, block, queues),
			`CREATE TABLE work_claimed (id bigint PRIMARY KEY, state smallint NOT NULL DEFAULT 0, note varchar(100) NOT NULL, INDEX (state, id))`,
		},
		fill:   `INSERT INTO %s (id, note) SELECT seq, 'something that makes a row' FROM seq_1_to_%d`,
		vacuum: `ANALYZE TABLE %s`,
		next:   `SELECT id FROM work_sharded WHERE state = 0 AND part = ? ORDER BY id LIMIT ?`,
		claim:  `SELECT id FROM work_claimed WHERE state = 0 ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED`,
		settle: func(table string, ids []int64) (string, []any) {
			args := make([]any, len(ids))
			for i, id := range ids {
				args[i] = id
			}
			return `UPDATE ` + table + ` SET state = 1 WHERE state = 0 AND id IN (?` + strings.Repeat(", ?", len(ids)-1) + `)`, args
		},
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

// task is a table of rows that a peer marks.
type task struct {
	db      *stage.Database
	sql     dialect
	table   string
	n       int
	workers int
	work    time.Duration // per row

	begun atomic.Pointer[time.Time]
	count atomic.Int64
	done  chan struct{} // closed when all rows are marked
	ended time.Time     // when all rows were marked
}

// fill makes n new rows.
func (t *task) fill(ctx context.Context) error {
	return t.db.Do(ctx, `TRUNCATE TABLE `+t.table, fmt.Sprintf(t.sql.fill, t.table, t.n), fmt.Sprintf(t.sql.vacuum, t.table))
}

// begin records the time of the first select.
func (t *task) begin() {
	if t.begun.Load() == nil {
		now := time.Now()
		t.begun.CompareAndSwap(nil, &now)
	}
}

// settled records that n rows were marked.
func (t *task) settled(n int) {
	if t.count.Add(int64(n)) == int64(t.n) {
		t.ended = time.Now()
		close(t.done)
	}
}

// labour simulates the work for the rows.
func (t *task) labour(rows int) {
	if t.work > 0 {
		for range rows {
			time.Sleep(t.work)
		}
	}
}
