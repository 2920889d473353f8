package roster

import (
	"context"
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

// loadExtension counts the moves that even the load: load_moves_per_hour bounds them (P16).
func loadExtension() extension { return extension{after: countLoadMoves} }

// budgetTime is the time to which load_moves_per_hour belongs.
const budgetTime = time.Hour

// LoadsOf returns the input for a plan by load that may move any number of queues (P16). A load has no age: while a
// new owner has not measured it, or counts fail, the last one is the best that is known.
func (r Reader) LoadsOf(ctx context.Context) (*plan.Loads, error) {
	loads := &plan.Loads{Of: map[string]float64{}, Start: plan.LoadStart, Stop: plan.LoadStop, Budget: -1}
	type row struct {
		Queue  string
		Demand any // SQLite keeps any text that was written by hand (S13)
	}
	rows, err := sqldb.Records[row](ctx, r, `SELECT queue_id, demand FROM schedule_backlog
		WHERE `+ofTask+` AND demand IS NOT NULL ORDER BY queue_id`, r.taskType, r.ownSign)
	for _, q := range rows {
		if load, ok := q.Demand.(float64); ok {
			loads.Of[q.Queue] = load
		}
	}
	return loads, sqldb.Wrap(err, "read the loads")
}

// loads returns the input for a plan by load within the budget.
func (r Reader) loads(ctx context.Context, perHour int) (*plan.Loads, error) {
	loads, err := r.LoadsOf(ctx)
	if err != nil {
		return nil, err
	}
	type budget struct{ Now, Until time.Time }
	b, err := sqldb.Value[budget](ctx, r, `SELECT {now}, load_moves_until FROM schedule_task_running WHERE `+ofTask,
		r.taskType, r.ownSign)
	if err != nil {
		return nil, fmt.Errorf("read the moves of the last hour: %w", err)
	}
	loads.Budget = movesLeft(perHour, b.Now, b.Until)
	return loads, nil
}

// movesLeft returns how many queues may move to even the load. Each move adds its part of an hour to until, or to now
// if that is later.
func movesLeft(perHour int, now, until time.Time) int {
	return int((budgetTime - budgetUsed(now, until)) / moveTime(perHour))
}

// budgetUsed returns how much of the hour is used up. A time that is over an hour away was written by hand, or before
// the clock was set back: as much as possible is used up, so that a step of the clock gives no moves. The next audit
// writes the end of the hour.
func budgetUsed(now, until time.Time) time.Duration { return max(0, min(until.Sub(now), budgetTime)) }

// moveTime returns the part of an hour of one move. maxMoves bounds a number that was written by hand.
func moveTime(perHour int) time.Duration {
	return budgetTime / time.Duration(min(max(1, perHour), maxMoves))
}

const maxMoves = 1_000_000

// countLoadMoves counts the changes that only even the load in the budget of the hour.
func countLoadMoves(ctx context.Context, p *planning) error {
	l, moves := p.l, 0
	for _, c := range p.written {
		if c.Rule == plan.Load {
			moves++
		}
	}
	if moves == 0 {
		return nil
	}
	until := l.Now.Add(budgetUsed(l.Now, l.loadMovesUntil) + time.Duration(moves)*moveTime(p.in.loadMoves))
	err := l.setLockRow(ctx, `load_moves_until = ?`, l.Dialect.Time(until))
	return sqldb.Wrap(err, "count the moves that even the load")
}
