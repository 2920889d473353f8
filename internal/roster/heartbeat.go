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

// Heartbeat is one heartbeat of a process, for all its servers at once.
type Heartbeat struct {
	// Token replaces the tokens in the servers' rows. The caller makes it at random and uses it for one successful
	// heartbeat only. A heartbeat that failed is repeated with the same Token, because it may have been written
	// although its reply was lost.
	Token string
	// OldTokens are the last confirmed token of each server. A row with a token that is neither among them nor Token
	// belongs to another process.
	OldTokens []string

	Servers []ServerReport
}

// ServerReport is what one server reports with the heartbeat. It has many fields because most are columns of the
// server's row. Times are by the database's clock, as the caller estimates it; a zero time means never.
type ServerReport struct {
	UUID     string `db:"-"`
	TaskType string `db:"-"` // as the server was registered
	State    string `db:"-"` // SERVING or STANDBY; the heartbeat changes no other state

	FetchCount     int64         `db:"fetch_count"`
	FetchItemCount int64         `db:"fetch_item_count"`
	SuccessCount   int64         `db:"success_count"`
	FailureCount   int64         `db:"failure_count"`
	SkipCount      int64         `db:"skip_count"`
	ExecuteTime    time.Duration `db:"execute_ms"`
	InFlight       int64         `db:"in_hand"`
	LastFetch      time.Time     `db:"last_fetch_time"`
	OldestInFlight time.Time     `db:"oldest_in_hand_since"` // zero if nothing is in flight
	LastError      string        `db:"last_error"`
	LastErrorAt    time.Time     `db:"last_error_at"`
	FailingSince   time.Time     `db:"failing_since"`       // zero unless the calls of the dealer do nothing but fail
	FailedCalls    int64         `db:"failed_calls"`        // since an item last succeeded
	NextRunStart   time.Time     `db:"next_run_start_time"` // of the permit window
	NextRunEnd     time.Time     `db:"next_run_end_time"`
	// DrainedPartition is the partition version for which the server has nothing in flight and starts nothing (N1).
	// It is 0 if there is none.
	DrainedPartition int64 `db:"drained_partition"`

	// JudgeDeadInterval is the silence after which others may expire the server. Zero leaves what the row says.
	JudgeDeadInterval time.Duration `db:"-"`
	// WatchingSince is the time since which the server has observed every heartbeat interval of the roster (S7). If
	// the server's previous heartbeat is too old, the database writes its own time instead.
	WatchingSince time.Time `db:"-"`
	// WatchRange is the range of the last reply. The zero value watches all servers.
	WatchRange WatchRange `db:"-"`
	// InRuns says that the server works in runs. The reply then has OpenRuns, NextFire and NextBegin.
	InRuns bool `db:"-"`
	// Lowering lowers the server's share of max_in_flight (P10).
	Lowering InFlightLowering `db:"-"`
}

// SendHeartbeat renews the servers' leases and reads what has changed. It returns the replies by the servers' uuids.
// A server without a reply is gone. SendHeartbeat must not be called concurrently.
//
// On a Galera cluster it returns an error if the node that it reached has not applied the registration of a server
// (F7). It runs one UPDATE and one SELECT, whatever the number of servers, queues and task types. They run in
// autocommit on a connection of their own, and lock only the rows of this process, so that nothing delays them (S1). An
// acknowledged heartbeat is on disk (L9).
func (r *Roster) SendHeartbeat(ctx context.Context, b Heartbeat) (map[string]HeartbeatReply, error) {
	if len(b.Servers) == 0 {
		return map[string]HeartbeatReply{}, nil
	}
	query, args := b.update(r.DB.Dialect)
	err := r.DB.Retry(ctx, func() (bool, error) {
		_, err := r.DB.Heartbeat.ExecContext(ctx, r.DB.SQL(query), args...)
		return true, err // a repetition does no harm: it finds the token of the first attempt
	})
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	replies, err := b.readReplies(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("read the heartbeat's reply: %w", err)
	}
	if err := b.confirmGone(ctx, r, replies); err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	return replies, nil
}

// update returns an UPDATE that writes each column as a CASE over the servers: the one form of an UPDATE of
// several rows that all databases know. The column itself in ELSE gives the parameters their type. Most processes
// have one server; for one server the statement is half as long.
func (b Heartbeat) update(d *sqldb.Dialect) (query string, args []any) {
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
	// watching_since comes before heartbeat_time, because MySQL evaluates SET from left to right (L6). It is never set to
	// an earlier time: a heartbeat whose reply was lost may have noticed a gap.
	since := func(s ServerReport) any { return d.Time(s.WatchingSince) }
	set.WriteString(", watching_since = CASE WHEN heartbeat_time < {ago judge_dead_interval_ms / 2} THEN {now} WHEN " +
		"watching_since > ")
	value(since, "watching_since")
	set.WriteString(" THEN watching_since ELSE ")
	value(since, "watching_since")
	set.WriteString(" END, heartbeat_time = {now}")
	reports := make(map[string][]sqldb.Field, len(b.Servers)) // by uuid
	for _, s := range b.Servers {
		s.LastError = sqldb.Clean(s.LastError)
		reports[s.UUID] = sqldb.Fields(s)
	}
	for i, f := range reports[b.Servers[0].UUID] {
		set.WriteString(", " + f.Column + " = ")
		value(func(s ServerReport) any { return reports[s.UUID][i].Param(d) }, f.Column)
	}
	set.WriteString(", judge_dead_interval_ms = COALESCE(") // after watching_since, which reads it (L6)
	value(func(s ServerReport) any { return nullMillis(s.JudgeDeadInterval) }, "judge_dead_interval_ms")
	set.WriteString(", judge_dead_interval_ms)")
	b.lowering(&set, value)
	set.WriteString(", state = CASE WHEN " + keptStates + " THEN state ELSE ")
	value(func(s ServerReport) any { return s.State }, "state")
	set.WriteString(" END")
	uuids := b.uuids()
	args = append(args, sqldb.Args(uuids)...)
	args = append(args, sqldb.Args(b.OldTokens)...)
	args = append(args, b.Token)
	return `UPDATE schedule_server SET beat_count = beat_count + 1, beat_token = ?` + set.String() +
		` WHERE uuid IN (` + sqldb.Marks(len(uuids)) + `) AND beat_token IN (` + sqldb.Marks(len(b.OldTokens)+1) + `)` +
		d.Durable, args
}

// nullMillis returns a duration in milliseconds, or NULL for none.
func nullMillis(d time.Duration) any {
	if d == 0 {
		return nil
	}
	return d.Milliseconds()
}

func (b Heartbeat) uuids() []string {
	uuids := make([]string, len(b.Servers))
	for i, s := range b.Servers {
		uuids[i] = s.UUID
	}
	return uuids
}

// HeartbeatReply is what a server learns with the heartbeat. It has many fields because all of it comes from one
// statement (S2): a second one would be of another time. They stand in the order in which the statement reads them.
type HeartbeatReply struct {
	UUID string
	Now  time.Time // the database's clock

	// Unreadable says which value of the rows could not be read. Paused is then set: a server works nothing of a task type
	// whose row it does not understand (S13).
	Unreadable error `db:"-"`

	State             string
	SettingsVersion   int64 // -1 if the row of the task type is gone
	Paused            bool
	QueueTotal        int
	RequestedTotal    int  // if not 0, all servers drain, so that the number of queues can change (N1)
	AllDrained        bool // all servers have drained: any of them may change the number
	PartitionVersion  int64
	MembershipVersion int64
	EpochFloor        int64    // plans have raised the epochs of all queues above it (H8)
	PlanDue           bool     // the membership has changed since the last plan, or a plan that skipped rows is due again
	Skipped           []string // queues whose moves the last plan could not write, because their rows were locked (L5)
	PlanVersion       int64
	Removing          []string // queues that are to be removed (N2)
	ItemVersion       int64    // changes when an operator changes failed items
	AuditDue          bool
	// AnyDead says that a server in the watch range has been silent for its judge_dead_interval.
	AnyDead    bool
	WatchRange WatchRange `db:"-"` // the servers that this one watches, for its next heartbeat

	Owned            int64 // number of queues that this server owns
	EpochSum         int64 // sum of their epochs
	OwnedPlanVersion int64 // highest plan_version of their rows: the version of the last plan that changed one of them
	Requested        int64 // number of them that are requested for other servers
	Incoming         int64 // number of queues that are requested for this server

	Share     InFlightShare // the server's part of max_in_flight
	SharesDue bool          // the server has fewer calls than its target, and calls are free

	// OpenRuns, NextFire and NextBegin are for a server that works in runs: whether any run or backfill of its task type
	// has not ended, when the next trigger of the task type is due, and when the next run may begin that waits for its
	// time. Such a run does not count as open.
	OpenRuns  bool
	NextFire  time.Time
	NextBegin time.Time
}

// readReplies reads the replies for the servers whose rows have the heartbeat's token.
func (b Heartbeat) readReplies(ctx context.Context, r *Roster) (map[string]HeartbeatReply, error) {
	uuids := b.uuids()
	ends, anyDead, args := b.watchColumns(r)
	own := make([]string, len(uuids)) // one SELECT each, since MariaDB makes one more temporary table for a GROUP BY
	for i, uuid := range uuids {
		own[i] = `SELECT ? AS uuid, COUNT(*) AS owned, COALESCE(SUM(q.epoch), 0) AS epochs,
			COALESCE(MAX(q.plan_version), 0) AS newest, COUNT(q.req_server) AS requested
			FROM schedule_queue q WHERE q.cur_server = ? AND q.` + validEpoch
		args = append(args, uuid, uuid)
	}
	ranges := make(map[string]WatchRange, len(uuids))
	for _, s := range b.Servers {
		ranges[s.UUID] = s.WatchRange
	}
	replies := make(map[string]HeartbeatReply, len(uuids))
	type row struct {
		Last, First sqldb.Text // the ends of the watch range
		HeartbeatReply
	}
	err := r.DB.On(r.DB.Heartbeat).Each(ctx, func(rows *sql.Rows) error {
		p, unreadable, err := sqldb.Scan[row](rows)
		p.Unreadable, p.Paused = unreadable, p.Paused || unreadable != nil
		next := WatchRange{last: string(p.Last), first: string(p.First)}
		p.WatchRange = ranges[p.UUID].next(p.MembershipVersion, next)
		replies[p.UUID] = p.HeartbeatReply
		return err
	}, `SELECT `+ends+`, s.uuid, {now}, s.state, COALESCE(t.version, -1), r.paused, r.queue_total,
		COALESCE(r.requested_total, 0), `+b.allDrainedColumn()+`, r.partition_version, r.membership_version, r.epoch_floor,
		CASE WHEN `+planDue("r")+` THEN 1 ELSE 0 END, r.skipped, r.plan_version, r.removing, r.item_version,
		CASE WHEN `+auditDue("r.audited_at")+` THEN 1 ELSE 0 END, `+anyDead+`,
		o.owned, o.epochs, o.newest, o.requested,
		(SELECT COUNT(*) FROM schedule_queue q WHERE q.req_server = s.uuid AND q.`+validEpoch+`),
		s.max_in_flight, s.max_in_flight_target, s.max_in_flight_version, `+sharesDueColumn+`, `+b.runColumns()+`
		FROM schedule_server s
		JOIN schedule_task_running r ON r.task_type = s.task_type AND r.own_sign = s.own_sign
		LEFT JOIN schedule_task_type t ON t.task_type = s.task_type
		JOIN (`+strings.Join(own, ` UNION ALL `)+`) o ON o.uuid = s.uuid
		WHERE s.uuid IN (`+sqldb.Marks(len(uuids))+`) AND s.beat_token = ? ORDER BY s.uuid`,
		slices.Concat(args, sqldb.Args(uuids), []any{b.Token})...)
	return replies, err
}

// runColumns returns the three columns about runs. They are constants if no server of the process works in runs, to
// save the look-ups.
func (b Heartbeat) runColumns() string {
	if !slices.ContainsFunc(b.Servers, func(s ServerReport) bool { return s.InRuns }) {
		return `0, NULL, NULL`
	}
	const ofRuns, sleeps = `FROM schedule_run w WHERE w.task_type = s.task_type AND w.own_sign = s.own_sign
		AND w.state `, `w.not_before > {now} AND NOT w.cancel_requested`
	return `CASE WHEN EXISTS (SELECT 1 ` + ofRuns + `IN ('WAITING', 'RUNNING')) OR EXISTS (SELECT 1 ` + ofRuns +
		`= 'READY' AND (w.not_before IS NULL OR NOT (` + sleeps + `)))
			OR EXISTS (SELECT 1 FROM schedule_backfill b WHERE b.task_type = s.task_type
			AND b.own_sign = s.own_sign AND b.state = 'RUNNING' AND (NOT b.paused OR b.next_slot_at IS NULL)) THEN 1 ELSE 0 END,
		(SELECT MIN(g.next_fire_at) FROM schedule_trigger g WHERE g.own_sign = s.own_sign AND g.target = s.task_type
		AND g.status = 'ACTIVE'),
		(SELECT MIN(w.not_before) ` + ofRuns + `= 'READY' AND ` + sleeps + `)`
}

// sharesDueColumn is the column for HeartbeatReply.SharesDue. Without a limit the comparison is NULL. A CASE of its own
// then ends it. After AND, the database would read all servers of the task type, because NULL AND FALSE is FALSE.
var sharesDueColumn = `CASE WHEN s.max_in_flight < s.max_in_flight_target THEN CASE WHEN ` +
	callsFree("s", "t.max_in_flight") + ` THEN 1 ELSE 0 END ELSE 0 END`

// allDrainedColumn returns the column for HeartbeatReply.AllDrained. It is a constant while no server of the process
// has drained, to save the look-up.
func (b Heartbeat) allDrainedColumn() string {
	if !slices.ContainsFunc(b.Servers, func(s ServerReport) bool { return s.DrainedPartition != 0 }) {
		return `0`
	}
	return `CASE WHEN r.requested_total IS NULL OR EXISTS (SELECT 1 FROM schedule_server b WHERE b.task_type = s.task_type
		AND b.own_sign = s.own_sign
			AND b.drained_partition <> r.partition_version) THEN 0 ELSE 1 END`
}

// confirmGone returns an error if a server without a reply still has its row, under a token of this process. Heartbeats
// do not wait for the cluster, so that their node may lag: it does not know a row that this process has just written on
// another node. The store waits, and its answer counts (F7). Without a cluster, the reply of the heartbeat is enough.
func (b Heartbeat) confirmGone(ctx context.Context, r *Roster, replies map[string]HeartbeatReply) error {
	if !r.DB.WriteFence || len(replies) == len(b.Servers) {
		return nil
	}
	missing := slices.DeleteFunc(b.uuids(), func(uuid string) bool { _, ok := replies[uuid]; return ok })
	rows, err := sqldb.Value[int](ctx, r.DB, `SELECT COUNT(*) FROM schedule_server
		WHERE uuid IN (`+sqldb.Marks(len(missing))+`) AND beat_token IN (`+sqldb.Marks(len(b.OldTokens)+1)+`)`,
		slices.Concat(sqldb.Args(missing), sqldb.Args(b.OldTokens), []any{b.Token})...)
	if err != nil {
		return fmt.Errorf("look for servers without a reply: %w", err)
	}
	if rows > 0 {
		return errNodeLags
	}
	return nil
}
