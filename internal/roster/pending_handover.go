package roster

import (
	"context"
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
	Watched           time.Duration // how long the other server has watched without a gap, with its inherited watch (S7)
	Registered        time.Duration // how long ago the other server registered
}

// PendingHandovers returns the owners of the queues that are requested for a server, the oldest request first. It is
// for people to read; no decision depends on it.
func (s Server) PendingHandovers(ctx context.Context) (pending []PendingHandover, err error) {
	type owner struct {
		UUID                      string
		Queues                    int
		First                     string
		Requested, Heartbeat      time.Time
		JudgeDeadInterval         time.Duration
		WatchingSince, Registered time.Time
		Now                       time.Time
	}
	owners, err := sqldb.Records[owner](ctx, s.roster.DB, `SELECT q.cur_server, COUNT(*), MIN(q.queue_id), MIN(q.req_since),
		MAX(s.heartbeat_time), MAX(s.judge_dead_interval_ms), MAX(w.watching_since), MAX(w.register_time), {now}
		FROM schedule_queue q JOIN schedule_server s ON s.uuid = q.cur_server JOIN schedule_server w ON w.uuid = q.req_server
		WHERE q.req_server = ? GROUP BY q.cur_server ORDER BY MIN(q.req_since), q.cur_server`, s.uuid)
	if err != nil {
		return nil, fmt.Errorf("read the owners that %s waits for: %w", s.uuid, err)
	}
	for _, o := range owners {
		w := PendingHandover{
			Owner: o.UUID, Queues: o.Queues, FirstQueue: o.First, JudgeDeadInterval: o.JudgeDeadInterval,
			RequestedFor: o.Now.Sub(o.Requested), SilentFor: o.Now.Sub(o.Heartbeat), Registered: o.Now.Sub(o.Registered),
		}
		if !o.WatchingSince.IsZero() {
			w.Watched = o.Now.Sub(o.WatchingSince)
		}
		pending = append(pending, w)
	}
	return pending, nil
}

// String describes to an operator what to expect.
func (w PendingHandover) String() string {
	what := "queue " + w.FirstQueue + " is"
	if w.Queues > 1 {
		what = fmt.Sprintf("queue %s and %d more are", w.FirstQueue, w.Queues-1)
	}
	if w.SilentFor > w.JudgeDeadInterval/2 {
		return fmt.Sprintf("%s held by %s, last heartbeat %s ago; taken over %s", what, ServerName(w.Owner), w.SilentFor.Round(time.Second), w.takenOver())
	}
	return fmt.Sprintf("%s held by %s, which finishes what it has in flight; requested %s ago", what, ServerName(w.Owner), w.RequestedFor.Round(time.Second))
}

// takenOver returns when the waiting server may expire the owner at the latest. Another server may do so earlier. The
// rule is that of expired: with an inherited watch the owner must be silent for half as long again, and the server's
// own watch begins when it registers (S7).
func (w PendingHandover) takenOver() string {
	own := w.JudgeDeadInterval - min(w.SilentFor, w.Watched, w.Registered)
	inherited := max(w.JudgeDeadInterval+w.JudgeDeadInterval/2-w.SilentFor, w.JudgeDeadInterval-w.Watched)
	if left := min(own, inherited); left > 0 {
		return fmt.Sprintf("in %s", max(left, time.Second).Round(time.Second))
	}
	return "with the next heartbeat"
}
