package roster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Handover is a queue that its owner has drained for a requester.
type Handover struct {
	QueueID   string
	Epoch     int64  // the epoch under which it was drained
	Requester string // the server that it was drained for
}

// Release hands queues over to their requesters, in one transaction under the lock row (H2), and returns the ones
// that moved. A queue moves only if this server still owns it under that epoch, the requester is still the same and
// may get the queue (P9, P14), and no transaction holds its row. The other queues do not change, and the caller reads
// its rows again. Whatever the reply, the server must not work a queue of the call again under the old epoch: to keep
// it, it calls Retake (H3). Its own queue_version does not rise (S2): the caller knows from the reply what is new, or
// reads its queues.
func (s Server) Release(ctx context.Context, queues []Handover) (released []string, err error) {
	err = s.roster.underLockWith(ctx, s.taskType, (*LockTx).lockForPlanChange, func(ctx context.Context, l *LockTx) error {
		released = nil
		changes, version, err := releasable(ctx, l, s.uuid, queues)
		if err != nil || len(changes) == 0 {
			return err
		}
		if err := writeChanges(ctx, l, changes, version, s.uuid); err != nil {
			return err
		}
		var events []Event
		for _, c := range changes {
			released = append(released, c.QueueID)
			events = append(events, Event{
				Kind: EventReleased, queue: c.QueueID, from: s.uuid, to: c.Owner, epoch: c.OldEpoch + 1, Actor: s.uuid,
			})
		}
		return l.Record(ctx, events...)
	})
	if err != nil {
		return nil, fmt.Errorf("release %w", err)
	}
	return released, nil
}

// releasable locks the free rows of the queues. It returns the changes of the queues that may move, by id, and the
// version of the plan. It skips a queue if a stalled transaction holds its row, so that no other queue waits for it.
// The lock row keeps other transactions from removing the requester meanwhile. The requester's own row is read and
// not locked, because a lock would delay its heartbeat.
func releasable(ctx context.Context, l *LockTx, uuid string,
	queues []Handover,
) (changes []plan.Change, version int64, err error) {
	wanted := make(map[string]Handover, len(queues))
	for _, q := range queues {
		wanted[q.QueueID] = q
	}
	rows, err := lockFree[requested](ctx, l, `q.queue_id, q.epoch, q.req_server, q.cur_server,
		(SELECT s.state FROM schedule_server s WHERE s.uuid = q.req_server),
		(SELECT s.host_name FROM schedule_server s WHERE s.uuid = q.req_server),
		(SELECT s.labels FROM schedule_server s WHERE s.uuid = q.req_server),
		(SELECT s.hung_queues FROM schedule_server s WHERE s.uuid = q.req_server),
		(SELECT t.require_labels FROM schedule_task_type t WHERE t.task_type = q.task_type),
		(SELECT p.labels FROM schedule_queue_setting p WHERE p.task_type = q.task_type AND p.own_sign = q.own_sign
			AND p.queue_id = q.queue_id),
		(SELECT r.plan_version FROM schedule_task_running r WHERE r.task_type = q.task_type
			AND r.own_sign = q.own_sign),
		CASE WHEN `+mayRelease()+` THEN 1 ELSE 0 END`, slices.Sorted(maps.Keys(wanted)))
	for _, q := range rows {
		if q.Owner == uuid && q.Handover == wanted[q.QueueID] && q.may() {
			changes = append(changes, plan.Change{
				QueueID: q.QueueID, OldOwner: uuid, OldEpoch: q.Epoch, Owner: q.Requester,
			})
		}
		version = q.Version
	}
	return changes, version, err
}

// requested is a queue that may have a requester, with what says whether the requester may get it.
type requested struct {
	Handover
	Owner        string
	State, Host  string // of the requester
	Labels       plan.Labels
	Hung         []string
	Require, Pin plan.Selector
	Version      int64 // of the plan
	Free         bool  // mayRelease
}

// mayRelease returns the condition of the extensions on the row q of a queue that its owner may hand over.
func mayRelease() string {
	may := []string{`1 = 1`}
	for _, e := range extensions() {
		if e.release != nil {
			may = append(may, e.release("q"))
		}
	}
	return strings.Join(may, ` AND `)
}

// may reports whether the requester may get the queue (P9, P14): the rules may have changed since the request.
func (q requested) may() bool {
	queue, limits := plan.Queue{ID: q.QueueID, Pin: q.Pin}, plan.Limits{Require: q.Require}
	server := plan.Server{Host: q.Host, Labels: q.Labels, Eligible: MayOwn(q.State), HungQueues: q.Hung}
	return q.Free && limits.Forbids(&queue, server) == plan.Stays
}

// Retake keeps a queue that this server was about to release. It raises the epoch, so that a release that is perhaps
// still on its way matches no row (H3). It reports whether it kept the queue: it does not if the queue has moved,
// if a transaction holds its row, or if a plan is to raise its epoch (H8).
func (s Server) Retake(ctx context.Context, queueID string, epoch int64) (kept bool, err error) {
	err = s.roster.UnderLock(ctx, s.taskType, func(ctx context.Context, l *LockTx) error {
		if kept = false; l.isLow(epoch) {
			return nil // a plan raises the epoch first (H8)
		}
		if free, err := lockQueueRows(ctx, l, []string{queueID}); err != nil || !free[queueID] {
			return err
		}
		n, err := l.Exec(ctx, `UPDATE schedule_queue SET epoch = epoch + 1, cur_since = {now}, plan_version = ?,
			gmt_modified = {now} WHERE `+ofOwner,
			append([]any{l.versions.plan + 1}, s.ofOwner(QueueEpoch{queueID, epoch})...)...)
		kept = n > 0
		if err != nil || !kept {
			return err
		}
		if err := l.planChanged(ctx); err != nil {
			return err
		}
		if err := l.queuesChangedFor(ctx, s.uuid); err != nil {
			return err
		}
		return l.Record(ctx, Event{
			Kind: EventRetaken, queue: queueID, from: s.uuid, to: s.uuid, epoch: epoch + 1, Actor: s.uuid,
		})
	})
	return kept && err == nil, sqldb.Prefix(err, "retake queue %s of", queueID)
}

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
	type owner struct {
		UUID                 string
		Queues               int
		First                string
		Requested, Heartbeat time.Time
		JudgeDeadInterval    time.Duration
		Now                  time.Time
	}
	owners, err := sqldb.Records[owner](ctx, s.roster.DB,
		`SELECT q.cur_server, COUNT(*), MIN(q.queue_id), MIN(q.req_since),
		MAX(s.heartbeat_time), MAX(s.judge_dead_interval_ms), {now}
		FROM schedule_queue q JOIN schedule_server s ON s.uuid = q.cur_server
		WHERE q.req_server = ? GROUP BY q.cur_server ORDER BY MIN(q.req_since), q.cur_server`, s.uuid)
	if err != nil {
		return nil, fmt.Errorf("read the owners that %s waits for: %w", s.uuid, err)
	}
	for _, o := range owners {
		pending = append(pending, PendingHandover{
			Owner: o.UUID, Queues: o.Queues, FirstQueue: o.First, JudgeDeadInterval: o.JudgeDeadInterval,
			RequestedFor: o.Now.Sub(o.Requested), SilentFor: o.Now.Sub(o.Heartbeat),
		})
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
		return fmt.Sprintf("%s held by %s, last heartbeat %s ago; judge_dead_interval %s", what, ServerName(w.Owner),
			w.SilentFor.Round(time.Second), w.JudgeDeadInterval)
	}
	return fmt.Sprintf("%s held by %s, which finishes what it has in flight; requested %s ago", what, ServerName(w.Owner),
		w.RequestedFor.Round(time.Second))
}
