package roster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// View is a server's part of the roster, read in one statement.
type View struct {
	Version          int64 // of the server's queues: rises with each change of them, below 0 if it is unknown (S2)
	PlanVersion      int64
	PartitionVersion int64
	QueueTotal       int
	Changes          Changes     // of queues, that wait until these have no owner (N1, N2, N3)
	Queues           []ViewQueue `db:"-"` // owned, or requested for this server; ordered by id
}

// View reads the queues that the server owns or that are requested for it, and the version of the plan that they
// belong to. given are the queues that the server has given up to be merged (MarkChanging).
func (s Server) View(ctx context.Context, given ...ViewQueue) (View, error) {
	// An index finds the queues by the uuid. The statement does not sort, and the UNION is not part of another
	// SELECT: for either MariaDB would write the rows to a temporary file.
	columns := `SELECT ` + queueVersionColumn("r.task_type", "r.own_sign", "?") + `,
		r.plan_version, r.partition_version, r.queue_total, r.queue_changes,
		CASE WHEN q.task_type = r.task_type AND q.own_sign = r.own_sign THEN q.queue_id END,
		COALESCE(q.queue_index, 0), COALESCE(q.queue_total, 0), q.cur_server, q.req_server, COALESCE(q.epoch, 0),
		COALESCE(q.plan_version, 0),
		q.queue_parameter, q.cursor_value,
		CASE WHEN EXISTS (SELECT 1 FROM schedule_server s WHERE s.uuid = q.req_server
			AND s.read_plan_version >= q.plan_version) THEN 1 ELSE 0 END,
		q.window_done_at, COALESCE(q.crash_count, 0), q.failing_since, q.division,
		p.rate_per_second, p.max_in_flight, p.weight
		FROM schedule_task_running r `
	type row struct {
		View
		Queue ViewQueue
	}
	const settings = ` LEFT JOIN schedule_queue_setting p ON p.task_type = q.task_type AND p.own_sign = q.own_sign
		AND p.queue_id = q.queue_id`
	rows, err := sqldb.Records[row](ctx, s.roster.DB, columns+`LEFT JOIN schedule_queue q ON q.cur_server = ? AND q.`+
		validEpoch+settings+` WHERE r.task_type = ? AND r.own_sign = ?
		UNION ALL `+columns+`JOIN schedule_queue q ON q.req_server = ? AND (q.cur_server IS NULL OR q.cur_server <> ?)
		AND q.`+validEpoch+settings+` WHERE r.task_type = ? AND r.own_sign = ?`,
		s.uuid, s.uuid, s.taskType, s.roster.OwnSign, s.uuid, s.uuid, s.uuid, s.taskType, s.roster.OwnSign)
	if err == nil && len(rows) == 0 {
		err = ErrUnknownTask
	}
	if err != nil {
		return View{}, fmt.Errorf("read the queues of %s: %w", s.uuid, err)
	}
	v := rows[0].View
	for _, r := range rows {
		if q := r.Queue; q.ID != "" {
			v.Queues = append(v.Queues, q)
		}
	}
	slices.SortFunc(v.Queues, func(a, b ViewQueue) int { return strings.Compare(a.ID, b.ID) })
	v.MarkChanging(s.uuid, given)
	return v, nil
}

// NewestPlan returns the plan_version up to which the view has what concerns the server. Only an edit by hand can give
// a queue a higher one than the lock row has.
func (v View) NewestPlan() int64 {
	newest := v.PlanVersion
	for _, q := range v.Queues {
		newest = max(newest, q.PlanVersion)
	}
	return newest
}

// NewestRequest returns the highest plan_version of the queues that the server waits for, and 0 if there is none.
func (v View) NewestRequest(uuid string) (version int64) {
	for _, q := range v.Queues {
		if q.Owner != uuid {
			version = max(version, q.PlanVersion)
		}
	}
	return version
}

// Without returns the view without queues that the owner has released since: a Release that succeeded says all that
// would be new. Changes by other servers are not in it; the next heartbeat reply reports them.
func (v View) Without(released []string) View {
	v.Queues = slices.DeleteFunc(slices.Clone(v.Queues), func(q ViewQueue) bool { return slices.Contains(released, q.ID) })
	return v
}

// ViewQueue is a queue that this server owns or that is requested for it, in the order in which View reads it.
type ViewQueue struct {
	ID               string
	Index            int
	Total            int // of a numbered queue: it has the items with mod(id, Total) = Index; 0 for a name
	Owner, Requester string
	Epoch            int64
	// PlanVersion is the version of the plan that last changed the owner or the requester.
	PlanVersion int64
	Parameter   string
	Cursor      string
	// RequesterInformed says that the requester has read the request, so that it polls whether the queue has arrived (S8).
	RequesterInformed bool
	// WindowDone is the start of the last permit window in which the queue was found empty.
	WindowDone time.Time
	Crashes    int // owners in a row that were expired before a page of the queue was executed (S14)
	// FailingSince is when the calls of the queue began to do nothing but fail, if an owner has found that (X7); else
	// zero.
	FailingSince time.Time
	Division     string // of the items among the queues, for Fence.Raise
	QueueLimits
	// Changing says that the owner drains the queue and calls GiveUp: it waits for a change (N1, N2, N3).
	Changing bool `db:"-"`
}

// Items returns which items the queue has.
func (q ViewQueue) Items() Items { return Items{q.Division, q.Index, q.Total} }

func (q ViewQueue) ownership() Ownership { return Ownership{q.Owner, q.Epoch, q.Items()} }
