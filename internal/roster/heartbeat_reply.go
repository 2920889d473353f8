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

// HeartbeatReply is what a server learns with the heartbeat. It has many fields because all of it comes from one
// statement (S2): a second one would be of another time.
type HeartbeatReply struct {
	UUID string
	Now  time.Time // the database's clock

	// Unreadable says which value of the rows could not be read. Paused is then set: a server works nothing of a task type
	// whose row it does not understand (S13).
	Unreadable error

	State             string
	SettingsVersion   int64 // -1 if the row of the task type is gone
	Paused            bool
	QueueTotal        int
	RequestedTotal    int  // if not 0, all servers drain, so that the number of queues can change (N1)
	AllDrained        bool // all servers have drained: any of them may change the number
	PartitionVersion  int64
	MembershipVersion int64
	PlanDue           bool     // the membership has changed since the last plan, or a plan that skipped rows is due again
	Skipped           []string // queues whose moves the last plan could not write, because their rows were locked (L5)
	PlanVersion       int64
	Removing          []string // queues that are to be removed (N2)
	ItemVersion       int64    // changes when an operator changes failed items
	AuditDue          bool
	// AnyDead says that a server in the watch range has been silent for its judge_dead_interval.
	AnyDead    bool
	WatchRange WatchRange // the servers that this one watches, for its next heartbeat

	Owned            int64 // number of queues that this server owns
	EpochSum         int64 // sum of their epochs
	OwnedPlanVersion int64 // highest plan_version of their rows: the version of the last plan that changed one of them
	Requested        int64 // number of them that are requested for other servers
	Incoming         int64 // number of queues that are requested for this server

	Share     InFlightShare // the server's part of max_in_flight
	SharesDue bool          // the server has fewer calls than its target, and calls are free

	// OpenRuns, NextFire and NextBegin are for a server that works in runs: whether any run or backfill of its task type has
	// not ended, when the next trigger of the task type is due, and when the next run may begin that waits for its time. Such
	// a run does not count as open.
	OpenRuns  bool
	NextFire  time.Time
	NextBegin time.Time
}

// readReplies reads the replies for the servers whose rows have the heartbeat's token.
func (b Heartbeat) readReplies(ctx context.Context, r *Roster) (map[string]HeartbeatReply, error) {
	uuids := b.uuids()
	watch, args := b.watchColumns(r)
	own := make([]string, len(uuids)) // one SELECT each, since MariaDB makes one more temporary table for a GROUP BY
	for i, uuid := range uuids {
		own[i] = `SELECT ? AS uuid, COUNT(*) AS owned, COALESCE(SUM(q.epoch), 0) AS epochs, COALESCE(MAX(q.plan_version), 0) AS newest, COUNT(q.req_server) AS requested
			FROM schedule_queue q WHERE q.cur_server = ? AND q.` + validEpoch
		args = append(args, uuid, uuid)
	}
	ranges := make(map[string]WatchRange, len(uuids))
	for _, s := range b.Servers {
		ranges[s.UUID] = s.WatchRange
	}
	replies := make(map[string]HeartbeatReply, len(uuids))
	err := r.DB.EachOn(ctx, r.DB.Heartbeat, func(rows *sql.Rows) error {
		var p HeartbeatReply
		var next WatchRange
		var due, audit, anyDead, drained, runs, shares int
		columns := []any{
			&p.UUID, (*sqldb.Instant)(&p.Now), &p.State, &p.SettingsVersion, (*sqldb.Flag)(&p.Paused), &p.QueueTotal,
			&p.RequestedTotal, &p.PartitionVersion, &p.MembershipVersion, &due, (*sqldb.List)(&p.Skipped), &p.PlanVersion, (*sqldb.List)(&p.Removing), &p.ItemVersion,
			&audit, &anyDead, (*sqldb.Text)(&next.last), (*sqldb.Text)(&next.first), &drained, &p.Owned, &p.EpochSum, &p.OwnedPlanVersion, &p.Requested, &p.Incoming,
			&runs, (*sqldb.Instant)(&p.NextFire), (*sqldb.Instant)(&p.NextBegin), &shares,
		}
		columns = append(columns, p.Share.targets()...)
		err := rows.Scan(columns...)
		if err != nil {
			p.Unreadable, err = err, rows.Scan(sqldb.Targets(columns...)...)
			p.Paused = true
		}
		p.PlanDue, p.AuditDue, p.AnyDead, p.AllDrained, p.OpenRuns, p.SharesDue = due == 1, audit == 1, anyDead == 1, drained == 1, runs == 1, shares == 1
		p.WatchRange = ranges[p.UUID].next(p.MembershipVersion, next)
		replies[p.UUID] = p
		return err
	}, `SELECT s.uuid, {now}, s.state, COALESCE(t.version, -1), r.paused, r.queue_total,
		COALESCE(r.requested_total, 0), r.partition_version, r.membership_version, CASE WHEN `+planDue+` THEN 1 ELSE 0 END, r.skipped, r.plan_version, r.removing, r.item_version,
		CASE WHEN r.audited_at IS NULL OR r.audited_at > {now} OR r.audited_at < {ago `+fmt.Sprint(AuditInterval.Milliseconds())+`} THEN 1 ELSE 0 END,
		`+watch+`,
		`+b.allDrainedColumn()+`,
		o.owned, o.epochs, o.newest, o.requested,
		(SELECT COUNT(*) FROM schedule_queue q WHERE q.req_server = s.uuid AND q.`+validEpoch+`), `+b.runColumns()+`,
		`+sharesDueColumn+`, s.max_in_flight, s.max_in_flight_target, s.max_in_flight_version
		FROM schedule_server s
		JOIN schedule_task_running r ON r.task_type = s.task_type AND r.own_sign = s.own_sign
		LEFT JOIN schedule_task_type t ON t.task_type = s.task_type
		JOIN (`+strings.Join(own, ` UNION ALL `)+`) o ON o.uuid = s.uuid
		WHERE s.uuid IN (`+sqldb.Marks(len(uuids))+`) AND s.beat_token = ? ORDER BY s.uuid`, slices.Concat(args, sqldb.Args(uuids), []any{b.Token})...)
	return replies, err
}

// runColumns returns the three columns about runs. They are constants if no server of the process works in runs, to
// save the look-ups.
func (b Heartbeat) runColumns() string {
	if !slices.ContainsFunc(b.Servers, func(s ServerReport) bool { return s.InRuns }) {
		return `0, NULL, NULL`
	}
	const ofTask, sleeps = `FROM schedule_run w WHERE w.task_type = s.task_type AND w.own_sign = s.own_sign AND w.state `, `w.not_before > {now} AND NOT w.cancel_requested`
	return `CASE WHEN EXISTS (SELECT 1 ` + ofTask + `IN ('WAITING', 'RUNNING')) OR EXISTS (SELECT 1 ` + ofTask + `= 'READY' AND (w.not_before IS NULL OR NOT (` + sleeps + `)))
			OR EXISTS (SELECT 1 FROM schedule_backfill b WHERE b.task_type = s.task_type
			AND b.own_sign = s.own_sign AND b.state = 'RUNNING' AND (NOT b.paused OR b.next_slot_at IS NULL)) THEN 1 ELSE 0 END,
		(SELECT MIN(g.next_fire_at) FROM schedule_trigger g WHERE g.own_sign = s.own_sign AND g.target = s.task_type AND g.status = 'ACTIVE'),
		(SELECT MIN(w.not_before) ` + ofTask + `= 'READY' AND ` + sleeps + `)`
}

// sharesDueColumn is the column for HeartbeatReply.SharesDue. Without a limit the comparison is NULL. A CASE of its own
// then ends it. After AND, the database would read all servers of the task type, because NULL AND FALSE is FALSE.
var sharesDueColumn = `CASE WHEN s.max_in_flight < s.max_in_flight_target THEN CASE WHEN ` + callsFree("s", "t.max_in_flight") + ` THEN 1 ELSE 0 END ELSE 0 END`

// allDrainedColumn returns the column for HeartbeatReply.AllDrained. It is a constant while no server of the process
// has drained, to save the look-up.
func (b Heartbeat) allDrainedColumn() string {
	if !slices.ContainsFunc(b.Servers, func(s ServerReport) bool { return s.DrainedPartition != 0 }) {
		return `0`
	}
	return `CASE WHEN r.requested_total IS NULL OR EXISTS (SELECT 1 FROM schedule_server b WHERE b.task_type = s.task_type AND b.own_sign = s.own_sign
			AND b.drained_partition <> r.partition_version) THEN 0 ELSE 1 END`
}
