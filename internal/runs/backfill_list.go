package runs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// BackfillFilter selects backfills. Empty fields select all.
type BackfillFilter struct {
	ID       string
	TaskType string
	State    string // one of the Backfill constants
}

// BackfillRecord is a backfill and the numbers of its runs.
type BackfillRecord struct {
	Backfill

	RunsOpen      int64 `json:"runs_open"` // runs of the task type that have not ended
	RunsSuccess   int64 `json:"runs_success"`
	RunsFailed    int64 `json:"runs_failed"`
	RunsCancelled int64 `json:"runs_cancelled"`

	DependantsOpen   int64 `json:"dependants_open"`   // runs of dependants that have not ended
	DependantsFailed int64 `json:"dependants_failed"` // runs of dependants that have failed or were cancelled

	Now time.Time `json:"-" db:"database_time"` // by the database's clock, when this was read
}

// List lists the latest backfills of this own_sign that the filter selects, the newest first, at most limit. It is one
// statement.
func (bs *Backfills) List(ctx context.Context, f BackfillFilter, limit int) ([]BackfillRecord, error) {
	w := sqldb.Where{Args: []any{bs.ownSign}}
	w.Equal("backfill_id", f.ID)
	w.Equal("task_type", f.TaskType)
	w.Equal("state", f.State)
	list, err := sqldb.Records[BackfillRecord](ctx, bs.db, fmt.Sprintf(`SELECT {columns} FROM (
		SELECT b.*, t.runs_open, t.runs_success, t.runs_failed, t.runs_cancelled, t.dependants_open, t.dependants_failed, {now} AS database_time
		FROM schedule_backfill b JOIN (SELECT p.backfill_id,
				COUNT(CASE WHEN r.task_type = p.task_type AND r.state IN %[1]s THEN 1 END) AS runs_open,
				COUNT(CASE WHEN r.task_type = p.task_type AND r.state = 'SUCCESS' THEN 1 END) AS runs_success,
				COUNT(CASE WHEN r.task_type = p.task_type AND r.state IN %[2]s THEN 1 END) AS runs_failed,
				COUNT(CASE WHEN r.task_type = p.task_type AND r.state = 'CANCELLED' THEN 1 END) AS runs_cancelled,
				COUNT(CASE WHEN r.task_type <> p.task_type AND r.state IN %[1]s THEN 1 END) AS dependants_open,
				COUNT(CASE WHEN r.task_type <> p.task_type AND (r.state IN %[2]s OR r.state = 'CANCELLED') THEN 1 END) AS dependants_failed
			FROM (SELECT backfill_id, task_type FROM schedule_backfill WHERE own_sign = ?%[3]s ORDER BY backfill_id DESC LIMIT %[4]d) p
			LEFT JOIN schedule_run r ON r.backfill_id = p.backfill_id GROUP BY p.backfill_id) t ON t.backfill_id = b.backfill_id
		) x ORDER BY backfill_id DESC`, openStates, failedStates, w.Text, max(limit, 1)), w.Args...)
	if err != nil {
		return nil, fmt.Errorf("list the backfills: %w", err)
	}
	return list, nil
}

// Get returns the backfill with that id, or ErrUnknownBackfill if there is none.
func (bs *Backfills) Get(ctx context.Context, id string) (BackfillRecord, error) {
	if id == "" { // the filter would select any
		return BackfillRecord{}, ErrUnknownBackfill
	}
	list, err := bs.List(ctx, BackfillFilter{ID: id}, 1)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s: %w", id, ErrUnknownBackfill)
	}
	if err != nil {
		return BackfillRecord{}, err
	}
	return list[0], nil
}

// Slots returns all slots of a backfill, the oldest first, each with its run if it has one.
func (bs *Backfills) Slots(ctx context.Context, id string) ([]BackfillSlot, error) {
	b, err := bs.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	s, err := b.schedule()
	if err != nil {
		return nil, fmt.Errorf("read the slots of backfill %s: %w", id, err)
	}
	return bs.slotRuns(ctx, b.Backfill, firstSlots(s, b.From, b.To, false, maxBackfillSlots))
}

// BackfillQueue is a queue in the run of a slot.
type BackfillQueue struct {
	RunID   string `json:"run_id"`
	QueueID string `json:"queue_id"`
	State   string `json:"state"` // one of the RunQueue constants
}

// Queues returns the queues of the runs of slots, in the order of the slots and in natural order of the queues.
func (bs *Backfills) Queues(ctx context.Context, list []BackfillSlot) (queues []BackfillQueue, err error) {
	var ids []string
	for _, s := range list {
		if s.RunID != "" {
			ids = append(ids, s.RunID)
		}
	}
	for part := range slices.Chunk(ids, roster.InsertRows) {
		found, err := sqldb.Records[BackfillQueue](ctx, bs.db, `SELECT {columns} FROM schedule_run_queue
			WHERE run_id IN (`+sqldb.Marks(len(part))+`) ORDER BY run_id, queue_id`, sqldb.Args(part)...)
		if err != nil {
			return nil, fmt.Errorf("read the queues of the runs: %w", err)
		}
		queues = append(queues, found...)
	}
	at := map[string]int{}
	for i, id := range ids {
		at[id] = i
	}
	slices.SortStableFunc(queues, func(a, b BackfillQueue) int {
		if a.RunID != b.RunID {
			return at[a.RunID] - at[b.RunID]
		}
		return plan.CompareIDs(a.QueueID, b.QueueID)
	})
	return queues, nil
}
