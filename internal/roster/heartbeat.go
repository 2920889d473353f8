package roster

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
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

	// JudgeDeadInterval is the silence after which others may expire the server. Zero leaves what the row says.
	JudgeDeadInterval time.Duration
	// WatchingSince is the time since which the server has observed every heartbeat interval of the roster (S7). If
	// the server's previous heartbeat is too old, the database writes its own time instead.
	WatchingSince time.Time
	// WatchRange is the range of the last reply. The zero value watches all servers.
	WatchRange WatchRange
	// ReadPlanVersion and ReadSum are the View's NewestPlan and QueueSum when the server has read its queues last. The
	// owners of the queues that it requests go by the first (H4). An audit finds edits by hand with the second.
	ReadPlanVersion, ReadSum int64
	// InRuns says that the server works in runs. The reply then has Runs.
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
	ID        sqldb.Key `db:"id"`
	Token     sqldb.Key `db:"token"`
	OldToken  sqldb.Key `db:"old_token"`
	State     sqldb.Key `db:"next_state"`
	Since     time.Time `db:"since"`
	ReadPlan  int64     `db:"plan_read"`
	ReadSum   int64     `db:"queues_sum"`
	JudgeDead int64     `db:"judge_dead"` // in milliseconds; 0 leaves what the row says
	Lowering  loweringRow
}

func newLeaseRow(token string, s ServerReport) leaseRow {
	return leaseRow{
		ID: sqldb.Key(s.UUID), Token: sqldb.Key(token), OldToken: sqldb.Key(s.OldToken), State: sqldb.Key(s.State),
		Since:    s.WatchingSince,
		ReadPlan: s.ReadPlanVersion, ReadSum: s.ReadSum, JudgeDead: s.JudgeDeadInterval.Milliseconds(),
		Lowering: s.Lowering.row(),
	}
}

// mostBeats is the largest beat_count. A row whose count is as large, which only a program writes that is not ours,
// begins again: an overflow would fail the statement for all servers of the process (S13).
const mostBeats = 1_000_000_000_000_000_000

// renewLease is the SET clause of the heartbeat. MySQL evaluates it from left to right (L6): watching_since, which
// reads the old heartbeat_time and judge_dead_interval_ms, stands before them. It is never set to an earlier time: a
// heartbeat whose reply was lost may have noticed a gap. A time that the clock has not reached was written before the
// clock was set back (S17), and is no such time.
var renewLease = fmt.Sprintf(`beat_token = v.token,
	beat_count = CASE WHEN beat_count < %d THEN beat_count + 1 ELSE 0 END,
	watching_since = CASE WHEN heartbeat_time < {ago judge_dead_interval_ms / 2} THEN {now}
		WHEN watching_since > v.since AND NOT watching_since > %s THEN watching_since ELSE v.since END,
	heartbeat_time = {now}, read_plan_version = v.plan_read, read_sum = v.queues_sum,
	judge_dead_interval_ms = CASE WHEN v.judge_dead > 0 THEN v.judge_dead ELSE judge_dead_interval_ms END,
	state = CASE WHEN `+keptStates+` THEN state ELSE v.next_state END`, mostBeats, soon(ClockSlack))

// update returns the UPDATE of the heartbeat. Its text is one for one server and one for any number of them, so that
// the database and the driver prepare it once. It writes no share that no server lowers: SQLite checks what is written,
// so a value that an edit by hand has left in one row would cost all servers of the process their leases.
func (b Heartbeat) update(d *sqldb.Dialect) (query string, args []any, err error) {
	rows := make([]leaseRow, len(b.Servers))
	for i, s := range b.Servers {
		rows[i] = newLeaseRow(b.Token, s)
	}
	set := renewLease
	if slices.ContainsFunc(b.Servers, func(s ServerReport) bool { return s.Lowering.Version > 0 }) {
		set += ", " + lowerShare
	}
	return sqldb.UpdateServers(d, rows, set, `s.beat_token IN (v.old_token, v.token)`+d.Durable)
}

// HeartbeatReply is what a server learns with the heartbeat. All of it comes from one statement (S2), because a second
// one would be of another time. First stands what the lease and the hand-over need, in the order of coreColumns. Each
// field after that belongs to an option, whose file has its type with its columns.
type HeartbeatReply struct {
	Now time.Time // the database's clock

	// Unreadable says which value of the rows could not be read. Paused is then set: a server works nothing of a task
	// type whose row it does not understand (S13).
	Unreadable error `db:"-"`

	State             string
	SettingsVersion   int64 // -1 if the row of the task type is gone
	Paused            bool
	QueueTotal        int
	PartitionVersion  int64
	MembershipVersion int64
	PlanDue           bool     // the membership has changed since the last plan, or another one is due
	Skipped           []string // queues whose moves the last plan could not write: their rows were locked (L5)
	AuditDue          bool

	// QueueVersion says whether the server's queues have changed since it read them (S2). It is below 0 if it is
	// unknown: the server then reads its queues.
	QueueVersion int64

	Watch   WatchReply
	History HistoryReply
	Items   ItemsReply
	Share   ShareReply
	Runs    RunsReply
}

// coreColumns returns the columns of the fields of HeartbeatReply that belong to no option.
func coreColumns() string {
	return `{now}, s.state, COALESCE(t.version, -1), r.paused, r.queue_total, r.partition_version, r.membership_version,
		CASE WHEN ` + planDue("r") + ` THEN 1 ELSE 0 END, r.skipped,
		CASE WHEN ` + auditDue("r.audited_at") + ` THEN 1 ELSE 0 END,
		` + queueVersionColumn("s.task_type", "s.own_sign", "s.uuid")
}

// replyOption is the field of an option in HeartbeatReply.
type replyOption interface {
	// columns returns the columns of the option's fields, in their order. They are about the row s of the server, its
	// lock row r, the row t of its task type, which may be missing, and what the heartbeat asks for, v ([replyRow]). A
	// column that looks at more is a constant where no server of the heartbeat needs it, to save the look-ups.
	columns(b Heartbeat) string
}

// replyColumns returns the columns of HeartbeatReply, in the order of its fields.
func (b Heartbeat) replyColumns() string {
	list := []string{coreColumns()}
	for field := range reflect.TypeFor[HeartbeatReply]().Fields() {
		if option, ok := reflect.TypeAssert[replyOption](reflect.Zero(field.Type)); ok {
			list = append(list, option.columns(b))
		}
	}
	return strings.Join(list, ", ")
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
		UUID string
		HeartbeatReply
	}
	return replies, r.DB.On(r.DB.Heartbeat).Each(ctx, func(rows *sql.Rows) error {
		p, unreadable, err := sqldb.Scan[row](rows)
		p.Unreadable, p.Paused = unreadable, p.Paused || unreadable != nil
		p.Watch.Range = ranges[p.UUID].next(p.MembershipVersion, p.UUID, p.Watch.list())
		replies[p.UUID] = p.HeartbeatReply
		return err
	}, query, args...)
}

// query returns the SELECT of the heartbeat, whose texts are as few as those of the UPDATE.
func (b Heartbeat) query(d *sqldb.Dialect) (text string, args []any, err error) {
	asked := make([]replyRow, len(b.Servers))
	for i, s := range b.Servers {
		asked[i] = replyRow{ID: sqldb.Key(s.UUID), Token: sqldb.Key(b.Token), Watch: s.WatchRange.row()}
	}
	return sqldb.SelectServers(d, asked, `s.uuid, `+b.replyColumns(), `s.beat_token = v.token`,
		d.JoinInOrder+`schedule_task_running r ON r.task_type = s.task_type AND r.own_sign = s.own_sign
		LEFT JOIN schedule_task_type t ON t.task_type = s.task_type`)
}

// replyRow is what the heartbeat asks for one server.
type replyRow struct {
	ID    sqldb.Key `db:"id"`
	Token sqldb.Key `db:"token"`
	Watch watchRow
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
	query, args, err := sqldb.SelectServers(r.DB.Dialect, missing, `COUNT(*)`,
		`s.beat_token IN (v.old_token, v.token)`, ``)
	if err != nil {
		return err
	}
	rows, err := sqldb.Value[int](ctx, r.DB, query, args...)
	if err != nil {
		return fmt.Errorf("look for workers without a reply: %w", err)
	}
	if rows > 0 {
		return errNodeLags
	}
	return nil
}
