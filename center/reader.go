package center

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// reader reads what the planner needs to know of one roster, locked or not.
type reader struct {
	q        querier
	d        *sqldb.Dialect
	taskType string
	ownSign  string
}

// serverRow is what the planner and the expiry look at.
type serverRow struct {
	uuid       string
	state      string
	registered time.Time
	heartbeat  time.Time
	judgeDead  time.Duration
}

func (s serverRow) planServer() plan.Server {
	return plan.Server{UUID: s.uuid, RegisterTime: s.registered, Eligible: mayOwn(s.state)}
}

func (r reader) servers(ctx context.Context) (servers []serverRow, err error) {
	err = r.d.EachOn(ctx, r.q, func(rows *sql.Rows) error {
		var s serverRow
		err := rows.Scan(&s.uuid, &s.state, (*sqldb.Instant)(&s.registered), (*sqldb.Instant)(&s.heartbeat), (*sqldb.Millis)(&s.judgeDead))
		servers = append(servers, s)
		return err
	}, `SELECT uuid, state, register_time, heartbeat_time, judge_dead_interval_ms
		FROM schedule_server WHERE task_type = ? AND own_sign = ? ORDER BY register_time, uuid`, r.taskType, r.ownSign)
	if err != nil {
		return nil, fmt.Errorf("read the servers: %w", err)
	}
	return servers, nil
}

// removing returns the queues that are to go. A roster that is not there has none.
func (r reader) removing(ctx context.Context) (removing sqldb.List, err error) {
	err = r.q.QueryRowContext(ctx, r.d.SQL(`SELECT removing FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`),
		r.taskType, r.ownSign).Scan(&removing)
	if err != nil && !sqldb.NoRows(err) {
		return nil, fmt.Errorf("read the queues that are to go: %w", err)
	}
	return removing, nil
}

// plan reads the queues and plans over the servers.
func (r reader) plan(ctx context.Context, servers []serverRow, removing []string) ([]plan.Change, error) {
	limit, err := r.limit(ctx)
	if err != nil {
		return nil, err
	}
	queues, err := r.queues(ctx, removing)
	if err != nil {
		return nil, err
	}
	live := make([]plan.Server, len(servers))
	for i, s := range servers {
		live[i] = s.planServer()
	}
	return plan.Plan(queues, live, limit), nil
}

// limit is the most queues that one server may own, 0 for no limit.
func (r reader) limit(ctx context.Context) (limit int, err error) {
	err = r.q.QueryRowContext(ctx, r.d.SQL(`SELECT max_queues_per_server FROM schedule_task_type WHERE task_type = ?`), r.taskType).Scan(&limit)
	if err != nil && !sqldb.NoRows(err) { // somebody deleted the row: the roster goes on without its settings
		return 0, fmt.Errorf("read max_queues_per_server: %w", err)
	}
	return limit, nil
}

func (r reader) queues(ctx context.Context, removing []string) (queues []plan.Queue, err error) {
	err = r.d.EachOn(ctx, r.q, func(rows *sql.Rows) error {
		var q plan.Queue
		err := rows.Scan(&q.ID, (*sqldb.Text)(&q.Owner), (*sqldb.Text)(&q.Requester), &q.Epoch)
		q.Removing = slices.Contains(removing, q.ID)
		queues = append(queues, q)
		return err
	}, `SELECT queue_id, cur_server, req_server, epoch FROM schedule_queue
		WHERE task_type = ? AND own_sign = ? ORDER BY queue_id`, r.taskType, r.ownSign)
	if err != nil {
		return nil, fmt.Errorf("read the queues: %w", err)
	}
	return queues, nil
}
