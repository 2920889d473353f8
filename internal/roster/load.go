package roster

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// What can be even among the servers of a task type.
const (
	BalanceQueues = "QUEUES" // the numbers of queues
	BalanceLoad   = "LOAD"   // the loads of the queues (P16)
)

// A plan by load begins to move queues when the busiest server has a quarter more than its part, and ends within 15 percent.
const (
	loadStart = 0.25
	loadStop  = 0.15
)

// budgetTime is the time to which load_moves_per_hour belongs.
const budgetTime = time.Hour

// LoadsOf returns the input for a plan by load that may move any number of queues (P16). A load has no age: while a new owner has
// not measured it, or counts fail, the last one is the best that is known.
func (r Reader) LoadsOf(ctx context.Context) (*plan.Loads, error) {
	loads := &plan.Loads{Of: map[string]float64{}, Start: loadStart, Stop: loadStop, Budget: -1}
	err := r.Dialect.EachOn(ctx, r.DB, func(rows *sql.Rows) error {
		var id string
		var demand float64
		err := rows.Scan(&id, &demand)
		loads.Of[id] = demand
		return err
	}, `SELECT queue_id, demand FROM schedule_backlog WHERE task_type = ? AND own_sign = ? AND demand IS NOT NULL ORDER BY queue_id`, r.TaskType, r.OwnSign)
	if err != nil {
		return nil, fmt.Errorf("read the loads: %w", err)
	}
	return loads, nil
}

// loads returns the input for a plan by load within the budget.
func (r Reader) loads(ctx context.Context, perHour int) (*plan.Loads, error) {
	loads, err := r.LoadsOf(ctx)
	if err != nil {
		return nil, err
	}
	var now, until time.Time
	err = r.DB.QueryRowContext(ctx, r.Dialect.SQL(`SELECT {now}, load_moves_until FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`), r.TaskType, r.OwnSign).
		Scan((*sqldb.Instant)(&now), (*sqldb.Instant)(&until))
	if err != nil && !sqldb.NoRows(err) {
		return nil, fmt.Errorf("read the moves of the last hour: %w", err)
	}
	loads.Budget = movesLeft(perHour, now, until)
	return loads, nil
}

// movesLeft returns how many queues may move to even the load. Each move adds its part of an hour to until, or to now if that is
// later. A time that is later than an hour was written before the clock was set back.
func movesLeft(perHour int, now, until time.Time) int {
	used := min(max(0, until.Sub(now)), budgetTime)
	return int((budgetTime - used) / moveTime(perHour))
}

func moveTime(perHour int) time.Duration { return budgetTime / time.Duration(max(1, perHour)) }

// countLoadMoves counts the changes that only even the load in the budget of the hour.
func countLoadMoves(ctx context.Context, l *LockTx, perHour int, changes []plan.Change) error {
	moves := 0
	for _, c := range changes {
		if c.ByLoad {
			moves++
		}
	}
	if moves == 0 {
		return nil
	}
	until := l.Now.Add(time.Duration(moves) * moveTime(perHour))
	if used := l.loadMovesUntil.Sub(l.Now); used > 0 {
		until = until.Add(min(used, budgetTime))
	}
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET load_moves_until = ? WHERE task_type = ? AND own_sign = ?`, l.Dialect.Time(until), l.TaskType, l.OwnSign)
	if err != nil {
		return fmt.Errorf("count the moves that even the load: %w", err)
	}
	return nil
}
