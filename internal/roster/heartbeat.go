package roster

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// Heartbeat is one heartbeat of a process, for all its servers at once.
type Heartbeat struct {
	// Token replaces the tokens in the servers' rows. The caller makes it at random and uses it for one successful
	// heartbeat only. A heartbeat that failed is repeated with the same Token, because it may have been written
	// although its reply was lost.
	Token string

	Servers []ServerReport
}

// ServerReport is what one server reports with the heartbeat: what its lease and the ownership of its queues depend on,
// and nothing else (S1). What people read about the server is in Statistics. Times are by the database's clock, as the
// caller estimates it.
type ServerReport struct {
	UUID     string
	TaskType string // as the server was registered
	State    string // SERVING or STANDBY; the heartbeat changes no other state

	// OldToken is the server's last confirmed token. A row with a token that is neither OldToken nor the heartbeat's
	// belongs to another process.
	OldToken string

	// DrainedPartition is the partition version for which the server has nothing in flight and starts nothing (N1).
	// It is 0 if there is none.
	DrainedPartition int64
	// JudgeDeadInterval is the silence after which others may expire the server. Zero leaves what the row says.
	JudgeDeadInterval time.Duration
	// WatchingSince is the time since which the server has observed every heartbeat interval of the roster (S7). If
	// the server's previous heartbeat is too old, the database writes its own time instead.
	WatchingSince time.Time
	// WatchRange is the range of the last reply. The zero value watches all servers.
	WatchRange WatchRange
	// ReadVersion and ReadSum are the number under which the server has read its queues last, and the View's QueueSum: an
	// audit finds edits by hand with them.
	ReadVersion, ReadSum int64
	// InRuns says that the server works in runs. The reply then has OpenRuns, NextFire and NextBegin.
	InRuns bool
	// Lowering lowers the server's share of max_in_flight (P10).
	Lowering InFlightLowering
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
	query, args, err := b.update(r.DB.Dialect)
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	err = r.DB.Retry(ctx, func() (bool, error) {
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

// leaseRow is what the heartbeat writes for one server.
type leaseRow struct {
	ID           sqldb.Key `db:"id"`
	Token        sqldb.Key `db:"token"`
	OldToken     sqldb.Key `db:"old_token"`
	State        sqldb.Key `db:"next_state"`
	Since        time.Time `db:"since"`
	Drained      int64     `db:"drained"`
	Read         int64     `db:"read_number"`
	ReadSum      int64     `db:"queues_sum"`
	JudgeDead    int64     `db:"judge_dead"`    // in milliseconds; 0 leaves what the row says
	Calls        int64     `db:"calls"`         // lowers max_in_flight, if the share has this version:
	CallsVersion int64     `db:"calls_version"` // -1 lowers nothing, because no share has it
}

func newLeaseRow(token string, s ServerReport) leaseRow {
	row := leaseRow{
		ID: sqldb.Key(s.UUID), Token: sqldb.Key(token), OldToken: sqldb.Key(s.OldToken), State: sqldb.Key(s.State),
		Since: s.WatchingSince, Drained: s.DrainedPartition,
		Read: s.ReadVersion, ReadSum: s.ReadSum, JudgeDead: s.JudgeDeadInterval.Milliseconds(),
		CallsVersion: -1,
	}
	if s.Lowering.Version != 0 {
		row.Calls, row.CallsVersion = int64(s.Lowering.To), s.Lowering.Version
	}
	return row
}

// mostBeats is the largest beat_count. A row whose count is as large, which only a program writes that is not ours,
// begins again: an overflow would fail the statement for all servers of the process (S13).
const mostBeats = 1_000_000_000_000_000_000

// renewLease is the SET clause of the heartbeat. MySQL evaluates it from left to right (L6): watching_since, which
// reads the old heartbeat_time and judge_dead_interval_ms, stands before them. It is never set to an earlier time: a
// heartbeat whose reply was lost may have noticed a gap. A time that the clock has not reached was written before the
// clock was set back (S17), and is no such time.
//
// A heartbeat that arrives after a plan has written the share of calls lowers nothing, because the share has another
// version: the server may have more calls in flight by then.
var renewLease = fmt.Sprintf(`beat_token = v.token,
	beat_count = CASE WHEN beat_count < %d THEN beat_count + 1 ELSE 0 END,
	watching_since = CASE WHEN heartbeat_time < {ago judge_dead_interval_ms / 2} THEN {now}
		WHEN watching_since > v.since AND NOT watching_since > %s THEN watching_since ELSE v.since END,
	heartbeat_time = {now}, drained_partition = v.drained, read_version = v.read_number, read_sum = v.queues_sum,
	judge_dead_interval_ms = CASE WHEN v.judge_dead > 0 THEN v.judge_dead ELSE judge_dead_interval_ms END,
	max_in_flight = CASE WHEN max_in_flight_version = v.calls_version AND COALESCE(max_in_flight, %d) > v.calls
		THEN v.calls ELSE max_in_flight END,
	state = CASE WHEN `+keptStates+` THEN state ELSE v.next_state END`, mostBeats, soon(ClockSlack), NoLimit)

// update returns the UPDATE of the heartbeat. Its text does not grow with the servers, so that the database and the
// driver prepare it once.
func (b Heartbeat) update(d *sqldb.Dialect) (query string, args []any, err error) {
	rows := make([]leaseRow, len(b.Servers))
	for i, s := range b.Servers {
		rows[i] = newLeaseRow(b.Token, s)
	}
	return sqldb.UpdateServers(d, rows, renewLease, `s.beat_token IN (v.old_token, v.token)`+d.Durable)
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
	ItemVersion       int64 // changes when an operator changes failed items
	AuditDue          bool
	// AnyDead says that a server in the watch range has been silent for its judge_dead_interval.
	AnyDead    bool
	WatchRange WatchRange `db:"-"` // the servers that this one watches, for its next heartbeat

	// QueueVersion says whether the server's queues have changed since it read them (S2). It is below 0 if it is unknown:
	// the server then reads its queues.
	QueueVersion int64

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
	ranges := make(map[string]WatchRange, len(b.Servers))
	for _, s := range b.Servers {
		ranges[s.UUID] = s.WatchRange
	}
	query, args, err := b.query(r.DB.Dialect)
	if err != nil {
		return nil, err
	}
	replies := make(map[string]HeartbeatReply, len(b.Servers))
	type row struct {
		Next1, Next2, Next3, Next4     sqldb.Text // that follow
		First1, First2, First3, First4 sqldb.Text // of the roster
		HeartbeatReply
	}
	return replies, r.DB.On(r.DB.Heartbeat).Each(ctx, func(rows *sql.Rows) error {
		p, unreadable, err := sqldb.Scan[row](rows)
		p.Unreadable, p.Paused = unreadable, p.Paused || unreadable != nil
		p.WatchRange = ranges[p.UUID].next(p.MembershipVersion, p.UUID, []string{
			string(p.Next1), string(p.Next2), string(p.Next3), string(p.Next4),
			string(p.First1), string(p.First2), string(p.First3), string(p.First4),
		})
		replies[p.UUID] = p.HeartbeatReply
		return err
	}, query, args...)
}

// query returns the SELECT of the heartbeat. Its text does not grow with the servers, as that of the UPDATE.
func (b Heartbeat) query(d *sqldb.Dialect) (text string, args []any, err error) {
	asked := make([]replyRow, len(b.Servers))
	for i, s := range b.Servers {
		asked[i] = newReplyRow(b.Token, s)
	}
	values, args, err := sqldb.Values(d, asked)
	return `SELECT ` + b.followingColumns() + `, s.uuid, {now}, s.state, COALESCE(t.version, -1), r.paused, r.queue_total,
		COALESCE(r.requested_total, 0), ` + b.allDrainedColumn() + `, r.partition_version, r.membership_version,
		r.epoch_floor, CASE WHEN ` + planDue("r") + ` THEN 1 ELSE 0 END, r.skipped, r.plan_version, r.item_version,
		CASE WHEN ` + auditDue("r.audited_at") + ` THEN 1 ELSE 0 END, ` + anyDeadColumn + `,
		` + queueVersionColumn("s.task_type", "s.own_sign", "s.uuid") + `,
		s.max_in_flight, s.max_in_flight_target, s.max_in_flight_version, ` + sharesDueColumn + `, ` + b.runColumns() +
		` FROM ` + values + d.JoinInOrder + `schedule_server s ON s.uuid = v.id AND s.beat_token = v.token` +
		d.JoinInOrder + `schedule_task_running r ON r.task_type = s.task_type AND r.own_sign = s.own_sign
		LEFT JOIN schedule_task_type t ON t.task_type = s.task_type`, args, err
}

// replyRow is what the heartbeat asks for one server.
type replyRow struct {
	ID       sqldb.Key `db:"id"`
	Token    sqldb.Key `db:"token"`
	Asks     int64     `db:"asks"` // 1 asks for the servers that follow
	Watched1 sqldb.Key `db:"watched_1"`
	Watched2 sqldb.Key `db:"watched_2"`
	Watched3 sqldb.Key `db:"watched_3"`
	Watched4 sqldb.Key `db:"watched_4"`
}

func newReplyRow(token string, s ServerReport) replyRow {
	w := s.WatchRange.servers
	row := replyRow{
		ID: sqldb.Key(s.UUID), Token: sqldb.Key(token), Watched1: sqldb.Key(w[0]), Watched2: sqldb.Key(w[1]),
		Watched3: sqldb.Key(w[2]), Watched4: sqldb.Key(w[3]),
	}
	if !s.WatchRange.current {
		row.Asks = 1
	}
	return row
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
			OR EXISTS (SELECT 1 FROM schedule_submission u WHERE u.task_type = s.task_type AND u.own_sign = s.own_sign)
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
	var missing []leaseRow
	for _, s := range b.Servers {
		if _, ok := replies[s.UUID]; !ok {
			missing = append(missing, newLeaseRow(b.Token, s))
		}
	}
	values, args, err := sqldb.Values(r.DB.Dialect, missing)
	if err != nil {
		return err
	}
	rows, err := sqldb.Value[int](ctx, r.DB, `SELECT COUNT(*) FROM `+values+r.DB.JoinInOrder+`
		schedule_server s ON s.uuid = v.id AND s.beat_token IN (v.old_token, v.token)`, args...)
	if err != nil {
		return fmt.Errorf("look for workers without a reply: %w", err)
	}
	if rows > 0 {
		return errNodeLags
	}
	return nil
}
