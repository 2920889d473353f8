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

// newFor is how long a server counts as new: longer than a plan takes to be repeated because it skipped rows (L5).
const newFor = 10 * time.Second

// isNew is a column of schedule_server, 1 if the server counts as new. A time in the future was written before the clock was
// set back, when the server was there already. A server whose name another server had within the longest return is a
// restart: it has got back its queues, or other servers have had them long enough.
var isNew = fmt.Sprintf(`CASE WHEN register_time > {ago %d} AND register_time <= {now} THEN
	CASE WHEN name <> '' AND EXISTS (SELECT 1 FROM schedule_server_history h WHERE h.task_type = schedule_server.task_type
		AND h.own_sign = schedule_server.own_sign AND h.name = schedule_server.name AND h.left_time > {ago %d}) THEN 0 ELSE 1 END
	ELSE 0 END`, newFor.Milliseconds(), MaxReturn.Milliseconds())

// budgetTime is the time to which load_moves_per_hour belongs.
const budgetTime = time.Hour

// LoadsOf returns the input for a plan by load that may move any number of queues (P16). A load has no age: while a new owner has
// not measured it, or counts fail, the last one is the best that is known.
func (r Reader) LoadsOf(ctx context.Context) (*plan.Loads, error) {
	loads := &plan.Loads{Of: map[string]float64{}, Start: plan.LoadStart, Stop: plan.LoadStop, Budget: -1}
	err := r.dialect.EachOn(ctx, r.db, func(rows *sql.Rows) error {
		var id string
		var demand any // SQLite keeps any text that was written by hand (S13)
		err := rows.Scan(&id, &demand)
		if load, ok := demand.(float64); ok {
			loads.Of[id] = load
		}
		return err
	}, `SELECT queue_id, demand FROM schedule_backlog WHERE task_type = ? AND own_sign = ? AND demand IS NOT NULL ORDER BY queue_id`, r.taskType, r.ownSign)
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
	err = r.db.QueryRowContext(ctx, r.dialect.SQL(`SELECT {now}, load_moves_until FROM schedule_task_running WHERE task_type = ? AND own_sign = ?`), r.taskType, r.ownSign).
		Scan((*sqldb.Instant)(&now), (*sqldb.Instant)(&until))
	if err != nil && !sqldb.NoRows(err) {
		return nil, fmt.Errorf("read the moves of the last hour: %w", err)
	}
	loads.Budget = movesLeft(perHour, now, until)
	return loads, nil
}

// movesLeft returns how many queues may move to even the load. Each move adds its part of an hour to until, or to now if that is
// later.
func movesLeft(perHour int, now, until time.Time) int {
	return int((budgetTime - budgetUsed(now, until)) / moveTime(perHour))
}

// budgetUsed returns how much of the hour is used up. A time that is over an hour away was written by hand, or before the clock
// was set back: as much as possible is used up, so that a step of the clock gives no moves. The next audit writes the end
// of the hour.
func budgetUsed(now, until time.Time) time.Duration { return max(0, min(until.Sub(now), budgetTime)) }

// moveTime returns the part of an hour of one move. maxMoves bounds a number that was written by hand.
func moveTime(perHour int) time.Duration {
	return budgetTime / time.Duration(min(max(1, perHour), maxMoves))
}

const maxMoves = 1_000_000

// countLoadMoves counts the changes that only even the load in the budget of the hour.
func countLoadMoves(ctx context.Context, l *LockTx, perHour int, changes []plan.Change) error {
	moves := 0
	for _, c := range changes {
		if c.Rule == plan.Load {
			moves++
		}
	}
	if moves == 0 {
		return nil
	}
	until := l.Now.Add(budgetUsed(l.Now, l.loadMovesUntil) + time.Duration(moves)*moveTime(perHour))
	_, err := l.Exec(ctx, `UPDATE schedule_task_running SET load_moves_until = ? WHERE task_type = ? AND own_sign = ?`, l.Dialect.Time(until), l.TaskType, l.OwnSign)
	if err != nil {
		return fmt.Errorf("count the moves that even the load: %w", err)
	}
	return nil
}
