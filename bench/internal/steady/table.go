package steady

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/schema"
)

// The layout is that of the README, with the times at which a row arrived and was settled.
const (
	queues  = 8
	fetched = 500
	batch   = 100
)

// dialect has the statements for one database.
type dialect struct {
	create string            // the table
	index  map[string]string // for each peer that needs one
	now    string
	mark   func(n int) string // the nth parameter
	mine   string             // the condition of the select of a queue; its parameters are 1 and 2
	micros string             // from arrived_at to settled_at, in microseconds
	period string             // from the first to the last settled_at, likewise
	pile   string             // inserts %d rows above the id %d

	analyze string
}

var ofPostgres = `CREATE INDEX orders_work ON orders (state, (` + schema.Postgres.MineIndex("id", queues) + `), id)`

const ofMariaDB = `CREATE INDEX orders_work ON orders (state, id)`

var dialects = map[string]dialect{
	stage.Postgres: {
		create: `CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL, note text NOT NULL, ` +
			`arrived_at timestamptz NOT NULL, settled_at timestamptz)`,
		index:  map[string]string{hand: ofPostgres, rota: ofPostgres, skip: `CREATE INDEX orders_work ON orders (id) WHERE state = 'NEW'`},
		now:    `clock_timestamp()`,
		mark:   func(n int) string { return fmt.Sprint("$", n) },
		mine:   schema.Postgres.Mine("id", 1),
		micros: `EXTRACT(EPOCH FROM settled_at - arrived_at) * 1000000`,
		period: `EXTRACT(EPOCH FROM MAX(settled_at) - MIN(settled_at)) * 1000000`,
		pile:   `SELECT g, 'NEW', 'something that makes a row', clock_timestamp() FROM generate_series(%[2]d + 1, %[2]d + %[1]d) g`,

		analyze: `VACUUM ANALYZE orders`,
	},
	stage.MariaDB: {
		create: `CREATE TABLE orders (id bigint PRIMARY KEY, state varchar(10) NOT NULL, note varchar(100) NOT NULL, ` +
			`arrived_at datetime(6) NOT NULL, settled_at datetime(6))`,
		index:  map[string]string{hand: ofMariaDB, rota: ofMariaDB, skip: ofMariaDB},
		now:    `SYSDATE(6)`,
		mark:   func(int) string { return "?" },
		mine:   schema.MySQL.Mine("id", 1),
		micros: `TIMESTAMPDIFF(MICROSECOND, arrived_at, settled_at)`,
		period: `TIMESTAMPDIFF(MICROSECOND, MIN(settled_at), MAX(settled_at))`,
		pile:   `SELECT seq, 'NEW', 'something that makes a row', SYSDATE(6) FROM seq_1_to_1000000 WHERE seq > %[2]d AND seq <= %[2]d + %[1]d`,

		analyze: `ANALYZE TABLE orders`,
	},
}

// next is the select of a queue. Its parameters are the number of queues, the queue and the limit.
func (d dialect) next() string {
	return `SELECT id FROM orders WHERE state = 'NEW' AND ` + d.mine + ` ORDER BY id LIMIT ` + d.mark(3)
}

// claim selects rows of any worker.
func (d dialect) claim() string {
	return `SELECT id FROM orders WHERE state = 'NEW' ORDER BY id LIMIT ` + d.mark(1) + ` FOR UPDATE SKIP LOCKED`
}

// settle settles rows with given ids.
func (d dialect) settle(ids []int64) (query string, args []any) {
	marks, args := make([]string, len(ids)), make([]any, len(ids))
	for i, id := range ids {
		marks[i], args[i] = d.mark(i+1), id
	}
	return `UPDATE orders SET state = 'SETTLED', settled_at = ` + d.now + ` WHERE id IN (` + strings.Join(marks, ", ") +
		`) AND (state = 'NEW') IS TRUE`, args
}

// table is the table of a turn, in a database of its own.
type table struct {
	db   *stage.Database
	sql  dialect
	last int64 // id

	// Of a peer whose jobs are inserted with their rows.
	jobs *river.Client[pgx.Tx]
	pool *pgxpool.Pool
}

func newTable(ctx context.Context, s *stage.Server, p peer) (*table, error) {
	db, err := s.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	t := &table{db: db, sql: dialects[s.Kind]}
	err = db.Do(ctx, t.sql.create)
	if index := t.sql.index[p.name]; err == nil && index != "" {
		err = db.Do(ctx, index)
	}
	if err == nil && p.jobs {
		t.jobs, t.pool, err = insertOnly(ctx, db.URL)
	}
	if err != nil {
		t.close(ctx)
		return nil, err
	}
	return t, nil
}

func (t *table) close(ctx context.Context) {
	if t.pool != nil {
		t.pool.Close()
	}
	t.db.Close(ctx)
}

// analyze makes the statistics of the table, as a server does by itself from time to time.
func (t *table) analyze(ctx context.Context) error { return t.db.Do(ctx, t.sql.analyze) }

// arrive inserts rows at a steady rate for some time.
func (t *table) arrive(ctx context.Context, o Options, d time.Duration) error {
	n := int(float64(o.Rate) * o.Every.Seconds())
	beat := time.NewTicker(o.Every)
	defer beat.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
		}
		if err := t.insert(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// insert inserts the next n rows, with a job for each if the peer has jobs.
func (t *table) insert(ctx context.Context, n int) error {
	rows, args := make([]string, n), make([]any, n)
	for i := range n {
		rows[i] = `(` + t.sql.mark(i+1) + `, 'NEW', 'something that makes a row', ` + t.sql.now + `)`
		args[i] = t.last + int64(i) + 1
	}
	query := `INSERT INTO orders (id, state, note, arrived_at) VALUES ` + strings.Join(rows, ", ")
	if err := t.write(ctx, n, query, args...); err != nil {
		return err
	}
	t.last += int64(n)
	return nil
}

// pile inserts n rows in one transaction.
func (t *table) pile(ctx context.Context, n int) error {
	query := `INSERT INTO orders (id, state, note, arrived_at) ` + fmt.Sprintf(t.sql.pile, n, t.last)
	if err := t.write(ctx, n, query); err != nil {
		return err
	}
	t.last += int64(n)
	return nil
}

func (t *table) write(ctx context.Context, n int, query string, args ...any) error {
	if t.jobs == nil {
		_, err := t.db.ExecContext(ctx, query, args...)
		return err
	}
	params := make([]river.InsertManyParams, n)
	for i := range params {
		params[i].Args = rowJob{ID: t.last + int64(i) + 1}
	}
	return pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, query, args...); err != nil {
			return err
		}
		_, err := t.jobs.InsertManyFastTx(ctx, tx, params)
		return err
	})
}

// settled waits until the last row is settled, and no other is left. It looks at the last ones by their keys, because
// to look for any row that is left would be work that counts as the peer's.
func (t *table) settled(ctx context.Context) error {
	for above := t.last - queues; ; {
		n, err := t.db.Number(ctx, fmt.Sprintf(`SELECT COUNT(*) FROM orders WHERE id > %d AND state = 'NEW'`, max(0, above)))
		switch {
		case err != nil:
			return err
		case n == 0 && above <= 0:
			return nil
		case n == 0:
			above = 0
			continue
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d rows of the last ones are not settled: %w", n, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// waits returns how many milliseconds each row above an id has waited.
func (t *table) waits(ctx context.Context, above int64) (list []float64, err error) {
	micros, err := center.Column[float64](ctx, t.db.DB, fmt.Sprintf(`SELECT %s FROM orders WHERE id > %d`, t.sql.micros, above))
	for _, m := range micros {
		list = append(list, m/1_000)
	}
	return list, err
}

// took returns how long the last n rows took, from the first that was settled to the last.
func (t *table) took(ctx context.Context, n int) (time.Duration, error) {
	var micros float64
	err := t.db.QueryRowContext(ctx, fmt.Sprintf(`SELECT %s FROM orders WHERE id > %d`, t.sql.period, t.last-int64(n))).Scan(&micros)
	return time.Duration(micros) * time.Microsecond, err
}
