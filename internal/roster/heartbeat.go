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

// Heartbeat is the heartbeat of a process: of all its servers at once.
type Heartbeat struct {
	// Token replaces the tokens in the servers' rows. Those that may stand there are the ones in
	// OldTokens, each server's last that was confirmed, and Token itself, which a beat whose reply was lost
	// may have written: so a beat that failed is repeated with the same Token. A row with any other
	// token is another process's. Tokens are random, and never used for two beats that succeeded.
	Token     string
	OldTokens []string

	Servers []ServerReport
}

// ServerReport is what one server tells with the heartbeat.
type ServerReport struct {
	UUID     string
	TaskType string // as it was registered
	State    string // SERVING or STANDBY; PAUSED and DRAINING are left as they are

	FetchCount     int64
	FetchItemCount int64
	SuccessCount   int64
	FailureCount   int64
	SkipCount      int64
	ExecuteTime    time.Duration
	InFlight       int64
	LastFetch      time.Time // by the database's clock, as the caller estimates it; zero: never
	OldestInFlight time.Time // the same; zero: nothing is in hand
	LastError      string
	LastErrorAt    time.Time // as LastFetch; zero: never
	NextRunStart   time.Time // of the permit window, by the database's clock; zero: never
	NextRunEnd     time.Time

	// WatchingSince is since when the server has seen every heartbeat interval of the roster, by the
	// database's clock (S7). If the heartbeat before this one is too old, the database writes its own
	// time instead.
	WatchingSince time.Time
	// WatchRange is that of the last pulse; the zero value watches everybody.
	WatchRange WatchRange
	// InRuns says that the server works in runs: then the pulse tells of them.
	InRuns bool
	// DrainedPartition is the partition version for which the server has nothing in hand and starts
	// nothing (N1); 0 if none.
	DrainedPartition int64
}

// HeartbeatReply is what a server learns with the heartbeat. All of it comes from one statement (S2).
type HeartbeatReply struct {
	UUID string
	Now  time.Time // the database's clock

	State             string
	SettingsVersion   int64 // -1 if the task type's row is gone
	Paused            bool
	QueueTotal        int
	RequestedTotal    int  // not 0: everybody drains, so that the number of queues can be changed (N1)
	AllDrained        bool // everybody has, and somebody may change it
	PartitionVersion  int64
	MembershipVersion int64
	PlannedVersion    int64
	PlanVersion       int64
	Removing          []string // queues that are to be removed (N2)
	ItemVersion       int64    // changes when an operator has changed failed items
	AuditDue          bool
	// AnyDead says that a server that this one watches has been silent for its judge_dead_interval.
	AnyDead    bool
	WatchRange WatchRange // whom the server watches from now on: for its next heartbeat

	Owned            int64 // queues that this server owns,
	EpochSum         int64 // the sum of their epochs,
	OwnedPlanVersion int64 // the highest plan_version of their rows: of the plan that last changed one of them,
	Requested        int64 // and how many of them others wait for
	Incoming         int64 // queues that this server waits for

	// Of a server that works in runs: whether any run of its task type has not ended, and when its next trigger is due.
	OpenRuns bool
	NextFire time.Time
}

// Heartbeat renews the servers' leases and reads what has changed: one UPDATE and one SELECT,
// whatever the number of servers, queues and task types. They run on a connection of their own,
// in autocommit, and touch no rows but the process's, so that nothing can queue in front of
// them (S1). A server without a pulse in the result is gone. Not for concurrent use.
func (r *Roster) SendHeartbeat(ctx context.Context, b Heartbeat) (map[string]HeartbeatReply, error) {
	if len(b.Servers) == 0 {
		return map[string]HeartbeatReply{}, nil
	}
	query, args := r.heartbeatUpdate(b)
	err := r.DB.Retry(ctx, func() (bool, error) {
		_, err := r.DB.Heartbeat.ExecContext(ctx, r.DB.SQL(query), args...)
		return true, err // twice does no harm: the second finds the first's token
	})
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	pulses, err := r.heartbeatReplies(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("heartbeat: read: %w", err)
	}
	return pulses, nil
}

// heartbeatColumn is a column of schedule_server and its value for each server.
type heartbeatColumn struct {
	name  string
	value func(ServerReport) any
}

func (r *Roster) heartbeatColumns() []heartbeatColumn {
	moment := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return r.DB.Time(t)
	}
	return []heartbeatColumn{
		{"fetch_count", func(s ServerReport) any { return s.FetchCount }},
		{"fetch_item_count", func(s ServerReport) any { return s.FetchItemCount }},
		{"success_count", func(s ServerReport) any { return s.SuccessCount }},
		{"failure_count", func(s ServerReport) any { return s.FailureCount }},
		{"skip_count", func(s ServerReport) any { return s.SkipCount }},
		{"execute_ms", func(s ServerReport) any { return s.ExecuteTime.Milliseconds() }},
		{"in_hand", func(s ServerReport) any { return s.InFlight }},
		{"last_fetch_time", func(s ServerReport) any { return moment(s.LastFetch) }},
		{"oldest_in_hand_since", func(s ServerReport) any { return moment(s.OldestInFlight) }},
		{"next_run_start_time", func(s ServerReport) any { return moment(s.NextRunStart) }},
		{"next_run_end_time", func(s ServerReport) any { return moment(s.NextRunEnd) }},
		{"last_error", func(s ServerReport) any { return sqldb.Clean(s.LastError) }},
		{"last_error_at", func(s ServerReport) any { return moment(s.LastErrorAt) }},
		{"drained_partition", func(s ServerReport) any { return s.DrainedPartition }},
	}
}

// heartbeatUpdate writes each column as a CASE over the servers: the one form of an UPDATE of several
// rows that all databases know. The column itself in ELSE gives the parameters its type. Most processes have
// one server, whose statement is half as long.
func (r *Roster) heartbeatUpdate(b Heartbeat) (query string, args []any) {
	var set strings.Builder
	value := func(of func(ServerReport) any, otherwise string) {
		if len(b.Servers) == 1 {
			set.WriteString("?")
			args = append(args, of(b.Servers[0]))
			return
		}
		set.WriteString("CASE uuid")
		for _, s := range b.Servers {
			set.WriteString(" WHEN ? THEN ?")
			args = append(args, s.UUID, of(s))
		}
		set.WriteString(" ELSE " + otherwise + " END")
	}
	args = append(args, b.Token)
	// Before heartbeat_time is overwritten: MySQL evaluates SET from left to right (L6). The watch never
	// begins earlier than the row says: a beat whose reply was lost may have noticed a gap.
	since := func(s ServerReport) any { return r.DB.Time(s.WatchingSince) }
	set.WriteString(", watching_since = CASE WHEN heartbeat_time < {ago judge_dead_interval_ms / 2} THEN {now} WHEN watching_since > ")
	value(since, "watching_since")
	set.WriteString(" THEN watching_since ELSE ")
	value(since, "watching_since")
	set.WriteString(" END, heartbeat_time = {now}")
	for _, col := range r.heartbeatColumns() {
		set.WriteString(", " + col.name + " = ")
		value(col.value, col.name)
	}
	set.WriteString(", state = CASE WHEN state IN ('PAUSED', 'DRAINING') THEN state ELSE ")
	value(func(s ServerReport) any { return s.State }, "state")
	set.WriteString(" END")
	uuids := b.uuids()
	args = append(args, sqldb.Args(uuids)...)
	args = append(args, sqldb.Args(b.OldTokens)...)
	args = append(args, b.Token)
	return `UPDATE schedule_server SET beat_count = beat_count + 1, beat_token = ?` + set.String() +
		` WHERE uuid IN (` + sqldb.Marks(len(uuids)) + `) AND beat_token IN (` + sqldb.Marks(len(b.OldTokens)+1) + `)`, args
}

func (b Heartbeat) uuids() []string {
	uuids := make([]string, len(b.Servers))
	for i, s := range b.Servers {
		uuids[i] = s.UUID
	}
	return uuids
}

// runs are the two columns about runs: nobody pays for them who has none.
func (b Heartbeat) runColumns() string {
	if !slices.ContainsFunc(b.Servers, func(s ServerReport) bool { return s.InRuns }) {
		return `0, NULL`
	}
	return `CASE WHEN EXISTS (SELECT 1 FROM schedule_run w WHERE w.task_type = s.task_type AND w.own_sign = s.own_sign
			AND w.state IN ('WAITING', 'READY', 'RUNNING')) THEN 1 ELSE 0 END,
		(SELECT MIN(g.next_fire_at) FROM schedule_trigger g WHERE g.own_sign = s.own_sign AND g.target = s.task_type AND g.status = 'ACTIVE')`
}

// allDrainedColumn is the column for HeartbeatReply.AllDrained. Who has not drained need not ask for the others.
func (b Heartbeat) allDrainedColumn() string {
	if !slices.ContainsFunc(b.Servers, func(s ServerReport) bool { return s.DrainedPartition != 0 }) {
		return `0`
	}
	return `CASE WHEN r.requested_total IS NULL OR EXISTS (SELECT 1 FROM schedule_server b WHERE b.task_type = s.task_type AND b.own_sign = s.own_sign
			AND b.drained_partition <> r.partition_version) THEN 0 ELSE 1 END`
}

func (r *Roster) heartbeatReplies(ctx context.Context, b Heartbeat) (map[string]HeartbeatReply, error) {
	uuids := b.uuids()
	watch, args := r.watchColumns(b.Servers)
	own := make([]string, len(uuids)) // rather than GROUP BY, for which MariaDB would make one more temporary table
	for i, uuid := range uuids {
		own[i] = `SELECT ? AS uuid, COUNT(*) AS owned, COALESCE(SUM(q.epoch), 0) AS epochs, COALESCE(MAX(q.plan_version), 0) AS newest, COUNT(q.req_server) AS requested
			FROM schedule_queue q WHERE q.cur_server = ?`
		args = append(args, uuid, uuid)
	}
	rings := make(map[string]WatchRange, len(uuids))
	for _, s := range b.Servers {
		rings[s.UUID] = s.WatchRange
	}
	pulses := make(map[string]HeartbeatReply, len(uuids))
	err := r.DB.EachOn(ctx, r.DB.Heartbeat, func(rows *sql.Rows) error {
		var p HeartbeatReply
		var next WatchRange
		var audit, anyDead, drained, runs int
		err := rows.Scan(&p.UUID, (*sqldb.Instant)(&p.Now), &p.State, &p.SettingsVersion, &p.Paused, &p.QueueTotal,
			&p.RequestedTotal, &p.PartitionVersion, &p.MembershipVersion, &p.PlannedVersion, &p.PlanVersion, (*sqldb.List)(&p.Removing), &p.ItemVersion,
			&audit, &anyDead, (*sqldb.Text)(&next.last), (*sqldb.Text)(&next.first), &drained, &p.Owned, &p.EpochSum, &p.OwnedPlanVersion, &p.Requested, &p.Incoming,
			&runs, (*sqldb.Instant)(&p.NextFire))
		p.AuditDue, p.AnyDead, p.AllDrained, p.OpenRuns = audit == 1, anyDead == 1, drained == 1, runs == 1
		p.WatchRange = rings[p.UUID].next(p.MembershipVersion, next)
		pulses[p.UUID] = p
		return err
	}, `SELECT s.uuid, {now}, s.state, COALESCE(t.version, -1), r.paused, r.queue_total,
		COALESCE(r.requested_total, 0), r.partition_version, r.membership_version, r.planned_version, r.plan_version, r.removing, r.item_version,
		CASE WHEN r.audited_at IS NULL OR r.audited_at > {now} OR r.audited_at < {ago `+fmt.Sprint(auditInterval.Milliseconds())+`} THEN 1 ELSE 0 END,
		`+watch+`,
		`+b.allDrainedColumn()+`,
		o.owned, o.epochs, o.newest, o.requested,
		(SELECT COUNT(*) FROM schedule_queue q WHERE q.req_server = s.uuid), `+b.runColumns()+`
		FROM schedule_server s
		JOIN schedule_task_running r ON r.task_type = s.task_type AND r.own_sign = s.own_sign
		LEFT JOIN schedule_task_type t ON t.task_type = s.task_type
		JOIN (`+strings.Join(own, ` UNION ALL `)+`) o ON o.uuid = s.uuid
		WHERE s.uuid IN (`+sqldb.Marks(len(uuids))+`) AND s.beat_token = ? ORDER BY s.uuid`, slices.Concat(args, sqldb.Args(uuids), []any{b.Token})...)
	return pulses, err
}
