package main

import (
	"context"
	"database/sql"
	"strconv"
	"sync"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// event is a row of the outbox that is not sent.
type event struct {
	id, order int64
	payload   string
}

// relay is the dealer. Its queues divide the events by the order, so that one relay at a time has all events of it.
type relay struct {
	store
	to Sink
}

// Select returns events of a queue that are not sent, the oldest first. It claims nothing.
func (r relay) Select(ctx context.Context, s processor.Selection) ([]event, error) {
	query := `SELECT id, aggregate_id, payload FROM outbox WHERE sent_at IS NULL AND id > ? AND ABS(mod(aggregate_id, ?)) = ?`
	after, _ := strconv.ParseInt(s.After, 10, 64) // 0 at the start
	args := []any{after, s.Total, s.Queue.Index}
	if len(s.Held) > 0 { // orders whose events have to wait
		query += ` AND aggregate_id NOT IN (` + marks(len(s.Held)) + `)`
		for _, key := range s.Held {
			order, err := strconv.ParseInt(key, 10, 64)
			if err != nil {
				return nil, err
			}
			args = append(args, order)
		}
	}
	rows, err := r.db.QueryContext(ctx, r.bind(query+` ORDER BY id LIMIT ?`), append(args, s.Limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var events []event
	for rows.Next() {
		var e event
		if err := rows.Scan(&e.id, &e.order, &e.payload); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, rows.Err()
}

// Key identifies an event.
func (relay) Key(e event) string { return strconv.FormatInt(e.id, 10) }

// OrderKey makes Rota deliver the events of an order one after the other. An event that fails holds back those behind
// it, and no others.
func (relay) OrderKey(e event) string { return strconv.FormatInt(e.order, 10) }

// Position lets a select go on behind events that have failed.
func (relay) Position(e event) string { return strconv.FormatInt(e.id, 10) }

// Execute delivers events, all at the same time: they belong to different orders. Then it marks the delivered ones as
// sent. If the process ends in between, or has lost the queue, they are delivered once more.
func (r relay) Execute(ctx context.Context, events []event) error {
	batch, _ := center.BatchFrom(ctx)
	errs := make([]error, len(events))
	var calls sync.WaitGroup
	for i, e := range events {
		calls.Go(func() {
			errs[i] = r.to.Deliver(ctx, Message{e.id, e.order, batch.Queue.Epoch, e.payload})
		})
	}
	calls.Wait()
	var failed processor.Failures
	var sent []any
	for i, err := range errs {
		if err != nil {
			failed.Add(i, err)
		} else {
			sent = append(sent, events[i].id)
		}
	}
	if err := r.markSent(ctx, sent); err != nil {
		return err
	}
	return failed.Err()
}

// markSent marks events in one fenced transaction: nothing is marked if another relay owns the queue by now.
func (r relay) markSent(ctx context.Context, ids []any) error {
	if len(ids) == 0 {
		return nil
	}
	return center.InTx(ctx, r.db, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			r.bind(`UPDATE outbox SET sent_at = CURRENT_TIMESTAMP WHERE id IN (`+marks(len(ids))+`)`), ids...)
		return err
	})
}
