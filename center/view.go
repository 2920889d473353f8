package center

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// View is a server's part of the roster, read in one statement.
type View struct {
	PlanVersion int64
	QueueTotal  int
	Queues      []ViewQueue // owned, or requested for this server; ordered by id
}

// View reads the queues that the server owns or waits for, together with the version of the plan
// that they belong to.
func (c *Center) View(ctx context.Context, taskType, uuid string) (View, error) {
	const columns = `task_type, own_sign, queue_id, queue_index, cur_server, req_server, epoch, queue_parameter, cursor_value, window_done_at,
		CASE WHEN req_since > {now} OR EXISTS (SELECT 1 FROM schedule_server s WHERE s.uuid = req_server AND s.heartbeat_time > req_since) THEN 1 ELSE 0 END AS known`
	rows, err := c.store.QueryContext(ctx, c.dialect.sql(`SELECT r.plan_version, r.queue_total, r.removing,
		q.queue_id, COALESCE(q.queue_index, 0), q.cur_server, q.req_server, COALESCE(q.epoch, 0), q.queue_parameter, q.cursor_value, q.window_done_at,
		COALESCE(q.known, 0)
		FROM schedule_task_running r LEFT JOIN (
			SELECT `+columns+` FROM schedule_queue WHERE cur_server = ?
			UNION ALL
			SELECT `+columns+` FROM schedule_queue WHERE req_server = ? AND (cur_server IS NULL OR cur_server <> ?)
		) q ON q.task_type = r.task_type AND q.own_sign = r.own_sign
		WHERE r.task_type = ? AND r.own_sign = ? ORDER BY q.queue_id`), uuid, uuid, uuid, taskType, c.ownSign)
	var v View
	found := false
	err = each(rows, err, func(rows *sql.Rows) error {
		var q ViewQueue
		found = true
		var removing list
		var known int
		err := rows.Scan(&v.PlanVersion, &v.QueueTotal, &removing, (*text)(&q.ID), &q.Index, (*text)(&q.Cur), (*text)(&q.Req),
			&q.Epoch, (*text)(&q.Parameter), (*text)(&q.Cursor), (*instant)(&q.WindowDone), &known)
		q.Known = known == 1
		q.Removing = slices.Contains(removing, q.ID)
		if q.ID != "" {
			v.Queues = append(v.Queues, q)
		}
		return err
	})
	if err == nil && !found {
		err = ErrUnknownTask
	}
	if err != nil {
		return View{}, fmt.Errorf("read the queues of %s: %w", uuid, err)
	}
	return v, nil
}

// ViewQueue is a queue that this server owns or waits for.
type ViewQueue struct {
	ID        string
	Index     int
	Cur, Req  string
	Epoch     int64
	Parameter string
	Cursor    string
	// Known says that the requester has beaten since it was named, so that it looks every 200 ms whether the
	// queue is there. If the clock was set back since then, nobody can tell, and it counts as known.
	Known bool
	// WindowDone is when the last permit window began in which the queue was found empty.
	WindowDone time.Time
	Removing   bool // shall be drained and given up with FinishRemoval (N2)
}
