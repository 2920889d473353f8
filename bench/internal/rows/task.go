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

// queues is by how many the rows are divided, for those who divide them.
const queues = 8

// block is how many neighbours go into one queue together, as the README advises: a page of rows is then on few of the
// database's, as it is for who takes whatever comes next. Queues of every eighth row, mod(id, 8), cost PostgreSQL a third.
const block = 100

// page is how many rows one statement marks.
func page(work time.Duration) int {
	if work > 0 {
		return 100 // several pages for each worker, although there are fewer rows
	}
	return 500
}

// The tables: each has the index that its users want, and no other.
const (
	sharded = "work_sharded"
	claimed = "work_claimed"
)

// dialect is the statements of the peers in one database. What is not in them is bound.
type dialect struct {
	create []string
	fill   string // the table and the number of rows are to be filled in
	vacuum string // the same for the table
	next   string // one queue's rows
	claim  string // anybody's
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
	stage.MySQL: {
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

// task is a table of rows and who is at it.
type task struct {
	db      *stage.Database
	sql     dialect
	table   string
	n       int
	workers int
	work    time.Duration // for each row

	begun atomic.Pointer[time.Time]
	count atomic.Int64
	done  chan struct{} // closed when all rows are marked,
	ended time.Time     // which was then
}

// fill makes all rows new.
func (t *task) fill(ctx context.Context) error {
	return t.db.Do(ctx, `TRUNCATE TABLE `+t.table, fmt.Sprintf(t.sql.fill, t.table, t.n), fmt.Sprintf(t.sql.vacuum, t.table))
}

// begin notes when the first select began.
func (t *task) begin() {
	if t.begun.Load() == nil {
		now := time.Now()
		t.begun.CompareAndSwap(nil, &now)
	}
}

// settled notes that n rows were marked.
func (t *task) settled(n int) {
	if t.count.Add(int64(n)) == int64(t.n) {
		t.ended = time.Now()
		close(t.done)
	}
}

// labour is the work for the rows.
func (t *task) labour(rows int) {
	if t.work > 0 {
		for range rows {
			time.Sleep(t.work)
		}
	}
}
