package demo

import (
	"context"
	"database/sql"
	"fmt"
)

// watch looks at the tables, as anybody could.
type watch struct{ db *sql.DB }

// seen is what one look saw.
type seen struct {
	queues  []queue
	settled map[string]int // orders by server
	events  []event        // all, oldest first
}

// queue is a row of schedule_assignment.
type queue struct {
	id, owner, requester, status string
	epoch                        int64
}

// event is a row of schedule_event.
type event struct {
	kind, queue, from, to, reason string
	epoch                         int64
}

func (w watch) look(ctx context.Context) (seen, error) {
	s := seen{settled: map[string]int{}}
	err := w.each(ctx, `SELECT queue_id, COALESCE(cur_server, ''), COALESCE(req_server, ''), status, epoch
		FROM schedule_assignment ORDER BY queue_id`, func(scan func(...any) error) error {
		var q queue
		defer func() { s.queues = append(s.queues, q) }()
		return scan(&q.id, &q.owner, &q.requester, &q.status, &q.epoch)
	})
	if err != nil {
		return seen{}, fmt.Errorf("read schedule_assignment: %w", err)
	}
	err = w.each(ctx, `SELECT COALESCE(settled_by, ''), COUNT(*) FROM orders WHERE state = 'SETTLED' GROUP BY settled_by ORDER BY settled_by`,
		func(scan func(...any) error) error {
			var server string
			var n int
			err := scan(&server, &n)
			s.settled[server] = n
			return err
		})
	if err != nil {
		return seen{}, fmt.Errorf("read orders: %w", err)
	}
	err = w.each(ctx, `SELECT kind, COALESCE(queue_id, ''), COALESCE(from_server, ''), COALESCE(to_server, ''), reason, COALESCE(epoch, 0)
		FROM schedule_event ORDER BY event_id`, func(scan func(...any) error) error {
		var e event
		defer func() { s.events = append(s.events, e) }()
		return scan(&e.kind, &e.queue, &e.from, &e.to, &e.reason, &e.epoch)
	})
	if err != nil {
		return seen{}, fmt.Errorf("read schedule_event: %w", err)
	}
	return s, nil
}

func (w watch) each(ctx context.Context, query string, row func(scan func(...any) error) error) error {
	rows, err := w.db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
