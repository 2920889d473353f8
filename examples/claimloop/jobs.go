package main

import (
	"context"
	"database/sql"
	"time"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// total is the number of Rota's queues. A tenant belongs to the queue tenant % total.
const total = 8

// tables are the jobs, and the effects of the jobs: nothing but the code keeps a job from having two.
const tables = `
	CREATE TABLE jobs (id bigserial PRIMARY KEY, tenant bigint NOT NULL, name text NOT NULL UNIQUE,
		run_at timestamptz NOT NULL DEFAULT now(), state text NOT NULL DEFAULT 'NEW');
	CREATE INDEX jobs_new ON jobs (run_at, id) WHERE state = 'NEW';
	CREATE TABLE effects (job bigint NOT NULL)`

// enqueue adds a job in the transaction of what causes it. A job whose name exists is not added again.
func enqueue(ctx context.Context, tx *sql.Tx, tenant int64, name string, runAt time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO jobs (tenant, name, run_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`,
		tenant, name, runAt)
	return err
}

// do does the given jobs, except those that are done already. The loop and Rota share it.
func do(ctx context.Context, tx *sql.Tx, ids []int64) error {
	_, err := tx.ExecContext(ctx, `WITH done AS (UPDATE jobs SET state = 'DONE' WHERE id = ANY($1) AND (state = 'NEW') IS TRUE RETURNING id)
		INSERT INTO effects (job) SELECT id FROM done`, pq.Array(ids))
	return err
}

// loop is the claim loop as it was, but for the condition on the tenant: it leaves the queues below from to Rota.
type loop struct {
	db   *sql.DB
	page int
	from int // 0: the loop does all jobs
}

// run does jobs until ctx ends.
func (l loop) run(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := l.claim(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if n == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// claim does a page of jobs in one transaction, and returns their number.
func (l loop) claim(ctx context.Context) (n int, err error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // after a commit it does nothing
	ids, err := center.Column[int64](ctx, tx, `SELECT id FROM jobs WHERE state = 'NEW' AND run_at <= now()
		AND abs(mod(tenant, $1)) >= $2 ORDER BY run_at, id LIMIT $3 FOR UPDATE SKIP LOCKED`, total, l.from, l.page)
	if err != nil {
		return 0, err
	}
	if err := do(ctx, tx, ids); err != nil {
		return 0, err
	}
	return len(ids), tx.Commit()
}

// dealer does the same jobs with Rota. While loops run, it leaves the queues from below on to them.
type dealer struct {
	db    *sql.DB
	below int // total: Rota does all jobs
}

// Select returns the jobs of a queue that are due. It claims nothing.
func (d dealer) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	if s.Queue.Index >= d.below {
		return nil, nil
	}
	return center.Column[int64](ctx, d.db, `SELECT id FROM jobs WHERE state = 'NEW' AND run_at <= now()
		AND abs(mod(tenant, $1)) = $2 ORDER BY run_at, id LIMIT $3`, s.Total, s.Queue.Index, s.Limit)
}

// Execute does jobs in one fenced transaction.
func (d dealer) Execute(ctx context.Context, ids []int64) error {
	return center.InTx(ctx, d.db, func(tx *sql.Tx) error { return do(ctx, tx, ids) })
}
