package roster

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// View is a server's part of the roster, read in one statement.
type View struct {
	PlanVersion      int64
	PartitionVersion int64
	QueueTotal       int
	Removing         []string    // queues that are to be removed (N2)
	Queues           []ViewQueue // owned, or requested for this server; ordered by id
}

// View reads the queues that the server owns or that are requested for it, and the version of the plan that they
// belong to.
func (s Server) View(ctx context.Context) (View, error) {
	// An index finds the queues by the uuid. The statement does not sort, and the UNION is not part of another
	// SELECT: for either MariaDB would write the rows to a temporary file.
	const columns = `SELECT r.plan_version, r.partition_version, r.queue_total, r.removing, CASE WHEN q.task_type = r.task_type AND q.own_sign = r.own_sign THEN q.queue_id END,
		COALESCE(q.queue_index, 0), q.cur_server, q.req_server, COALESCE(q.epoch, 0), q.queue_parameter, q.cursor_value, q.window_done_at, COALESCE(q.crash_count, 0), q.failing_since, COALESCE(q.plan_version, 0),
		CASE WHEN q.req_since > {now} OR EXISTS (SELECT 1 FROM schedule_server s WHERE s.uuid = q.req_server AND s.heartbeat_time > q.req_since) THEN 1 ELSE 0 END
		FROM schedule_task_running r `
	var v View
	found := false
	err := s.roster.DB.Each(ctx, func(rows *sql.Rows) error {
		var q ViewQueue
		found = true
		var known int
		err := rows.Scan(sqldb.Targets(&v.PlanVersion, &v.PartitionVersion, &v.QueueTotal, (*sqldb.List)(&v.Removing), &q.ID, &q.Index, &q.Owner, &q.Requester,
			&q.Epoch, &q.Parameter, &q.Cursor, &q.WindowDone, &q.Crashes, &q.FailingSince, &q.PlanVersion, &known)...)
		q.RequesterInformed = known == 1
		q.Removing = slices.Contains(v.Removing, q.ID)
		if q.ID != "" {
			v.Queues = append(v.Queues, q)
		}
		return err
	}, columns+`LEFT JOIN schedule_queue q ON q.cur_server = ? AND q.`+validEpoch+` WHERE r.task_type = ? AND r.own_sign = ?
		UNION ALL `+columns+`JOIN schedule_queue q ON q.req_server = ? AND (q.cur_server IS NULL OR q.cur_server <> ?) AND q.`+validEpoch+` WHERE r.task_type = ? AND r.own_sign = ?`,
		s.uuid, s.taskType, s.roster.OwnSign, s.uuid, s.uuid, s.taskType, s.roster.OwnSign)
	if err == nil && !found {
		err = ErrUnknownTask
	}
	if err != nil {
		return View{}, fmt.Errorf("read the queues of %s: %w", s.uuid, err)
	}
	slices.SortFunc(v.Queues, func(a, b ViewQueue) int { return strings.Compare(a.ID, b.ID) })
	return v, nil
}

// Incoming sums up the queues that are requested for a server. It changes when a queue arrives, and when requests are
// made or withdrawn.
type Incoming struct {
	Queues      int64 // number of queues requested for the server that it does not own yet
	PlanVersion int64 // highest plan_version of these queues
}

// Incoming reads the sum of the queues that are requested for the server. It costs a fraction of View, for a caller
// that polls.
func (s Server) Incoming(ctx context.Context) (in Incoming, err error) {
	err = s.roster.DB.QueryRow(ctx, `SELECT COUNT(*), COALESCE(MAX(plan_version), 0) FROM schedule_queue
		WHERE req_server = ? AND (cur_server IS NULL OR cur_server <> ?) AND `+validEpoch, s.uuid, s.uuid).Scan(&in.Queues, &in.PlanVersion)
	if err != nil {
		return Incoming{}, fmt.Errorf("read the queues requested for %s: %w", s.uuid, err)
	}
	return in, nil
}

// Incoming returns what Server.Incoming would have returned when the view was read.
func (v View) Incoming(uuid string) (in Incoming) {
	for _, q := range v.Queues {
		if q.Owner != uuid {
			in.Queues, in.PlanVersion = in.Queues+1, max(in.PlanVersion, q.PlanVersion)
		}
	}
	return in
}

// Without returns the view without queues that the owner has released since: a Release that succeeded says all that
// would be new. Changes by other servers are not in it; the next heartbeat reply reports them.
func (v View) Without(released []string) View {
	v.Queues = slices.DeleteFunc(slices.Clone(v.Queues), func(q ViewQueue) bool { return slices.Contains(released, q.ID) })
	return v
}

// ViewQueue is a queue that this server owns or that is requested for it.
type ViewQueue struct {
	ID               string
	Index            int
	Owner, Requester string
	Epoch            int64
	// PlanVersion is the version of the plan that last changed the owner or the requester.
	PlanVersion int64
	Parameter   string
	Cursor      string
	// RequesterInformed says that the requester has sent a heartbeat since the request, so that it polls every 200 ms
	// whether the queue has arrived. If the clock was set back since, this is unknown, and the requester counts as
	// informed.
	RequesterInformed bool
	// WindowDone is the start of the last permit window in which the queue was found empty.
	WindowDone time.Time
	Crashes    int // owners in a row that were expired before a page of the queue was executed (S14)
	// FailingSince is when the calls of the queue began to do nothing but fail, if an owner has found that (X7); else zero.
	FailingSince time.Time
	Removing     bool // the owner drains the queue and gives it up with FinishRemoval (N2)
}
