package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Runs reads, submits and operates runs. It has about 20 methods, because each is one request of a user or an operator.
type Runs struct {
	core
	closer *closer
	wake   WakeInTx
}

// Filter selects runs. Empty fields select all.
type Filter struct {
	RunID    string
	TaskType string
	State    string // one of the Run constants
	Backfill string // the id of a backfill
	Trigger  string // the name of a trigger
	Name     string // the name of a graph
	Key      string // of the run; a task type has one run per key
}

// Record is a run and its progress. While the run is RUNNING, ItemsDone and ItemsFailed are sums over its queues,
// and Message is what one of them waits for, or why its last attempt failed.
type Record struct {
	Run

	// The number of its queues in each state. All are zero before it is opened.
	QueuesPending   int64 `json:"queues_pending"`
	QueuesRunning   int64 `json:"queues_running"`
	QueuesDone      int64 `json:"queues_done"`
	QueuesFailed    int64 `json:"queues_failed"`
	QueuesCancelled int64 `json:"queues_cancelled"`

	SweptDone   int64     `json:"-" db:"swept_done"`
	SweptFailed int64     `json:"-" db:"swept_failed"`
	SweptLoose  int64     `json:"-" db:"swept_at_least"` // above 0 if SweptDone and SweptFailed are lower bounds
	QueueError  string    `json:"-" db:"queue_error"`    // of an open queue: its last error, or what it waits for
	Now         time.Time `json:"-" db:"database_time"`  // by the database's clock, when this was read
}

// Queues returns the number of queues that the run sweeps, 0 before it is opened.
func (r Record) Queues() int64 {
	return r.QueuesPending + r.QueuesRunning + r.QueuesDone + r.QueuesFailed + r.QueuesCancelled
}

// List lists the latest runs of this own_sign that the filter selects, the newest first, at most limit. It is one
// statement.
func (rs *Runs) List(ctx context.Context, f Filter, limit int) ([]Record, error) {
	query, args := rs.listQuery(f, limit)
	list, err := sqldb.Records[Record](ctx, rs.db, query, args...)
	for i := range list {
		if r := &list[i]; r.State == Running {
			r.ItemsDone, r.ItemsFailed, r.ItemsAtLeast = r.SweptDone, r.SweptFailed, r.SweptLoose > 0
			r.Message = cmp.Or(r.Message, r.QueueError)
		}
	}
	return list, sqldb.Wrap(err, "list the runs")
}

func (rs *Runs) listQuery(f Filter, limit int) (query string, args []any) {
	w := sqldb.Where{Args: []any{rs.ownSign}}
	w.Equal("run_id", f.RunID)
	w.Equal("task_type", f.TaskType)
	w.Equal("state", f.State)
	w.Equal("backfill_id", f.Backfill)
	w.Equal("trigger_name", f.Trigger)
	w.Equal("graph_name", f.Name)
	w.Equal("run_key", f.Key)
	return fmt.Sprintf(`SELECT {columns} FROM (
		SELECT r.*, t.queues_pending, t.queues_running, t.queues_done, t.queues_failed, t.queues_cancelled,
			t.swept_done, t.swept_failed, t.swept_at_least, t.queue_error, {now} AS database_time
		FROM schedule_run r JOIN (SELECT p.run_id,
				COUNT(CASE WHEN q.state = 'PENDING' THEN 1 END) AS queues_pending,
				COUNT(CASE WHEN q.state = 'RUNNING' THEN 1 END) AS queues_running,
				COUNT(CASE WHEN q.state = 'DONE' THEN 1 END) AS queues_done,
				COUNT(CASE WHEN q.state = 'FAILED' THEN 1 END) AS queues_failed,
				COUNT(CASE WHEN q.state = 'CANCELLED' THEN 1 END) AS queues_cancelled,
				`+sqldb.SumOf("q.items_done")+` AS swept_done, `+sqldb.SumOf("q.items_failed")+` AS swept_failed,
				MAX(CASE WHEN q.items_at_least THEN 1 ELSE 0 END) AS swept_at_least,
				COALESCE(MAX(CASE WHEN q.state IN ('PENDING', 'RUNNING') THEN q.last_error END), '') AS queue_error
			FROM (SELECT run_id FROM schedule_run WHERE own_sign = ?%s ORDER BY run_id DESC LIMIT %d) p
			LEFT JOIN schedule_run_queue q ON q.run_id = p.run_id GROUP BY p.run_id) t ON t.run_id = r.run_id
		) x ORDER BY run_id DESC`, w.Text, max(limit, 1)), w.Args
}

// Find returns the run with the given id, or the newest run of the task type or else of the graphs with the given name.
// It returns ErrNoRunOrTask if there is none of these, and ErrNoRunYet if the task type has had no run. It refuses a
// task type of mode CONTINUOUS.
func (rs *Runs) Find(ctx context.Context, name string) (Record, error) {
	run, err := rs.Get(ctx, name)
	if !errors.Is(err, ErrUnknownRun) {
		return run, err
	}
	run, err = rs.Latest(ctx, name)
	switch {
	case errors.Is(err, roster.ErrUnknownTask):
		named, listErr := rs.List(ctx, Filter{Name: name}, 1)
		if listErr != nil || len(named) > 0 && name != "" {
			return slices.Concat(named, []Record{{}})[0], listErr
		}
		err = fmt.Errorf("find run %s in own_sign %s: %w", name, rs.ownSign, ErrNoRunOrTask)
	case errors.Is(err, ErrUnknownRun):
		err = fmt.Errorf("find the newest run of %s$%s: %w", name, rs.ownSign, ErrNoRunYet)
	}
	return run, err
}

// Get returns the run with the given id, or ErrUnknownRun if there is none.
func (rs *Runs) Get(ctx context.Context, runID string) (Record, error) {
	list, err := rs.List(ctx, Filter{RunID: runID}, 1)
	if err != nil {
		return Record{}, err
	}
	if len(list) == 0 || runID == "" { // an empty id selects any
		return Record{}, fmt.Errorf("read run %s: %w", runID, ErrUnknownRun)
	}
	return list[0], nil
}

// Latest returns the newest run of a task type. It returns ErrUnknownTask if the task type has no row, ErrNoRuns if its
// mode is CONTINUOUS, and ErrUnknownRun if it has no run yet.
func (rs *Runs) Latest(ctx context.Context, taskType string) (Record, error) {
	list, err := rs.List(ctx, Filter{TaskType: taskType}, 1)
	if err == nil && len(list) > 0 && taskType != "" { // an empty name selects any
		return list[0], nil
	}
	if err == nil {
		err = cmp.Or(checkMode(ctx, rs.db, taskType), ErrUnknownRun)
	}
	return Record{}, fmt.Errorf("read the newest run of %s$%s: %w", taskType, rs.ownSign, err)
}

// Queues returns the queues of a run in natural order. A run has none before it is opened.
func (rs *Runs) Queues(ctx context.Context, runID string) ([]Queue, error) {
	queues, err := sqldb.Records[Queue](ctx, rs.db, `SELECT {columns} FROM schedule_run_queue WHERE run_id = ?
		ORDER BY queue_id`, runID)
	slices.SortStableFunc(queues, func(a, b Queue) int { return plan.CompareIDs(a.QueueID, b.QueueID) })
	return queues, sqldb.Wrap(err, "read the queues of run %s", runID)
}

// Day counts the runs of a task type in one state that were scheduled on one day.
type Day struct {
	TaskType string `json:"task_type"`
	Day      string `json:"day"` // of UTC: 2026-11-22
	State    string `json:"state"`
	Runs     int64  `json:"runs"`
}

// Days counts the runs of today and of the given number of days before, by task type, day and state.
func (rs *Runs) Days(ctx context.Context, days int) ([]Day, error) {
	now, err := rs.db.Clock(ctx)
	if err != nil {
		return nil, err
	}
	first := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -days)
	list, err := sqldb.Records[Day](ctx, rs.db, `SELECT {columns} FROM (
		SELECT task_type, `+rs.db.ScheduledDay+` AS day, state, COUNT(*) AS runs FROM schedule_run
		WHERE own_sign = ? AND scheduled_at >= ? GROUP BY task_type, `+rs.db.ScheduledDay+`, state
		) x ORDER BY task_type, day, state`, rs.ownSign, rs.db.Time(first))
	return list, sqldb.Wrap(err, "count the runs by day")
}

// QueueRun is a queue in one of the runs of its task type.
type QueueRun struct {
	RunID string `json:"run_id"`
	Queue
}

// OfQueue returns what a queue did in the latest runs of its task type, the newest first. Runs that were not opened, or
// that had no such queue, are left out.
func (rs *Runs) OfQueue(ctx context.Context, taskType, queueID string, limit int) ([]QueueRun, error) {
	list, err := sqldb.Records[QueueRun](ctx, rs.db, fmt.Sprintf(`SELECT {columns} FROM (SELECT q.* FROM
		(SELECT run_id FROM schedule_run WHERE own_sign = ? AND task_type = ? ORDER BY run_id DESC LIMIT %d) r
		JOIN schedule_run_queue q ON q.run_id = r.run_id WHERE q.queue_id = ?) x ORDER BY run_id DESC`, max(limit, 1)),
		rs.ownSign, taskType, queueID)
	return list, sqldb.Wrap(err, "read the runs of queue %s of %s", queueID, taskType)
}
