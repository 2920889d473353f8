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
	PlanVersion int64
	QueueTotal  int
	Removing    []string    // queues that are to be removed (N2)
	Queues      []ViewQueue // owned, or requested for this server; ordered by id
}

// View reads the queues that the server owns or waits for, together with the version of the plan
// that they belong to.
func (r *Roster) View(ctx context.Context, taskType, uuid string) (View, error) {
	// The queues are found by the uuid alone, for which there is an index. And nothing is sorted here, nor is the UNION a
	// part of another SELECT: for either MariaDB would write the rows to a file first.
	const columns = `SELECT r.plan_version, r.queue_total, r.removing, CASE WHEN q.task_type = r.task_type AND q.own_sign = r.own_sign THEN q.queue_id END,
		COALESCE(q.queue_index, 0), q.cur_server, q.req_server, COALESCE(q.epoch, 0), q.queue_parameter, q.cursor_value, q.window_done_at, COALESCE(q.plan_version, 0),
		CASE WHEN q.req_since > {now} OR EXISTS (SELECT 1 FROM schedule_server s WHERE s.uuid = q.req_server AND s.heartbeat_time > q.req_since) THEN 1 ELSE 0 END
		FROM schedule_task_running r `
	var v View
	found := false
	err := r.DB.Each(ctx, func(rows *sql.Rows) error {
		var q ViewQueue
		found = true
		var known int
		err := rows.Scan(&v.PlanVersion, &v.QueueTotal, (*sqldb.List)(&v.Removing), (*sqldb.Text)(&q.ID), &q.Index, (*sqldb.Text)(&q.Owner), (*sqldb.Text)(&q.Requester),
			&q.Epoch, (*sqldb.Text)(&q.Parameter), (*sqldb.Text)(&q.Cursor), (*sqldb.Instant)(&q.WindowDone), &q.PlanVersion, &known)
		q.RequesterInformed = known == 1
		q.Removing = slices.Contains(v.Removing, q.ID)
		if q.ID != "" {
			v.Queues = append(v.Queues, q)
		}
		return err
	}, columns+`LEFT JOIN schedule_queue q ON q.cur_server = ? WHERE r.task_type = ? AND r.own_sign = ?
		UNION ALL `+columns+`JOIN schedule_queue q ON q.req_server = ? AND (q.cur_server IS NULL OR q.cur_server <> ?) WHERE r.task_type = ? AND r.own_sign = ?`,
		uuid, taskType, r.OwnSign, uuid, uuid, taskType, r.OwnSign)
	if err == nil && !found {
		err = ErrUnknownTask
	}
	if err != nil {
		return View{}, fmt.Errorf("read the queues of %s: %w", uuid, err)
	}
	slices.SortFunc(v.Queues, func(a, b ViewQueue) int { return strings.Compare(a.ID, b.ID) })
	return v, nil
}

// Incoming is what a server waits for, in short: it changes when a queue arrives, and when others are to come or no more.
type Incoming struct {
	Queues      int64 // of others, or of nobody, that are to be the server's
	PlanVersion int64 // the highest of those that have named it
}

// Incoming reads what the server waits for. It is a fraction of a View, for who looks again and again.
func (r *Roster) Incoming(ctx context.Context, uuid string) (a Incoming, err error) {
	err = r.DB.QueryRow(ctx, `SELECT COUNT(*), COALESCE(MAX(plan_version), 0) FROM schedule_queue
		WHERE req_server = ? AND (cur_server IS NULL OR cur_server <> ?)`, uuid, uuid).Scan(&a.Queues, &a.PlanVersion)
	if err != nil {
		return Incoming{}, fmt.Errorf("read what %s waits for: %w", uuid, err)
	}
	return a, nil
}

// Incoming is what the server waited for when the view was read.
func (v View) Incoming(uuid string) (a Incoming) {
	for _, q := range v.Queues {
		if q.Owner != uuid {
			a.Queues, a.PlanVersion = a.Queues+1, max(a.PlanVersion, q.PlanVersion)
		}
	}
	return a
}

// Without is the view when the owner has released queues since: a Release that has succeeded says all that would be new.
// What others have changed meanwhile is not in it; the next pulse tells.
func (v View) Without(released []string) View {
	v.Queues = slices.DeleteFunc(slices.Clone(v.Queues), func(q ViewQueue) bool { return slices.Contains(released, q.ID) })
	return v
}

// ViewQueue is a queue that this server owns or waits for.
type ViewQueue struct {
	ID               string
	Index            int
	Owner, Requester string
	Epoch            int64
	// PlanVersion is that of the plan that last changed the owner or the requester.
	PlanVersion int64
	Parameter   string
	Cursor      string
	// RequesterInformed says that the requester has beaten since it was named, so that it looks every 200 ms whether the
	// queue is there. If the clock was set back since then, nobody can tell, and it counts as known.
	RequesterInformed bool
	// WindowDone is when the last permit window began in which the queue was found empty.
	WindowDone time.Time
	Removing   bool // shall be drained and given up with FinishRemoval (N2)
}
