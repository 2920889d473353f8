package roster

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// PendingHandover is a server that owns queues which are requested for another server.
type PendingHandover struct {
	Owner             string        // uuid
	Queues            int           // number of its queues that the other server waits for
	FirstQueue        string        // the first of them
	RequestedFor      time.Duration // age of the oldest request
	SilentFor         time.Duration // age of the owner's last heartbeat
	JudgeDeadInterval time.Duration // silence after which the owner counts as dead
}

// PendingHandovers returns the owners of the queues that are requested for a server, the oldest request first. It is
// for people to read; no decision depends on it.
func (s Server) PendingHandovers(ctx context.Context) (pending []PendingHandover, err error) {
	err = s.roster.DB.Each(ctx, func(rows *sql.Rows) error {
		var w PendingHandover
		var requested, heartbeat, now time.Time
		err := rows.Scan(&w.Owner, &w.Queues, &w.FirstQueue, (*sqldb.Instant)(&requested), (*sqldb.Instant)(&heartbeat), (*sqldb.Millis)(&w.JudgeDeadInterval), (*sqldb.Instant)(&now))
		w.RequestedFor, w.SilentFor = now.Sub(requested), now.Sub(heartbeat)
		pending = append(pending, w)
		return err
	}, `SELECT q.cur_server, COUNT(*), MIN(q.queue_id), MIN(q.req_since),
		MAX(s.heartbeat_time), MAX(s.judge_dead_interval_ms), {now}
		FROM schedule_queue q JOIN schedule_server s ON s.uuid = q.cur_server
		WHERE q.req_server = ? GROUP BY q.cur_server ORDER BY MIN(q.req_since), q.cur_server`, s.uuid)
	if err != nil {
		return nil, fmt.Errorf("read the owners that %s waits for: %w", s.uuid, err)
	}
	return pending, nil
}

// String tells an operator what to expect.
func (w PendingHandover) String() string {
	what := "queue " + w.FirstQueue + " is"
	if w.Queues > 1 {
		what = fmt.Sprintf("queue %s and %d more are", w.FirstQueue, w.Queues-1)
	}
	if left := w.JudgeDeadInterval - w.SilentFor; w.SilentFor > w.JudgeDeadInterval/2 {
		return fmt.Sprintf("%s held by %s, last heartbeat %s ago; taken over in %s", what, ServerName(w.Owner),
			w.SilentFor.Round(time.Second), max(0, left).Round(time.Second))
	}
	return fmt.Sprintf("%s held by %s, which finishes what it has in flight; requested %s ago", what, ServerName(w.Owner), w.RequestedFor.Round(time.Second))
}
