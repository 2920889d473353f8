package roster

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// NoLimit is the number of calls of a share without a limit.
const NoLimit = plan.NoLimit

// InFlightShare is a server's part of max_in_flight, as its row has it (P10). Without a limit, the calls are NoLimit.
type InFlightShare struct {
	Granted CallLimit // the most calls of Execute that the server may have in flight; other servers count on no more
	Target  CallLimit // what Granted is to become: the server starts no call beyond it
	Version int64     // rises whenever a plan writes one of these
}

// shareColumns are the columns of InFlightShare.
const shareColumns = `max_in_flight, max_in_flight_target, max_in_flight_version`

// ShareReply is what a heartbeat's reply says about the server's part of max_in_flight.
type ShareReply struct {
	InFlightShare
	Due bool // the server has fewer calls than its target, and calls are free: RaiseShares
}

// columns implements replyOption. Without a limit the first comparison is NULL, and a CASE of its own ends the last
// column there. After AND, the database would read all servers of the task type, because NULL AND FALSE is FALSE.
func (ShareReply) columns(Heartbeat) string {
	return `s.max_in_flight, s.max_in_flight_target, s.max_in_flight_version,
		CASE WHEN s.max_in_flight < s.max_in_flight_target THEN CASE WHEN ` + callsFree("s", "t.max_in_flight") +
		` THEN 1 ELSE 0 END ELSE 0 END`
}

// InFlightLowering lowers the share of a server to To, if the share has that version. From this report on, and until
// the server learns of a later version, it has at most To calls in flight. The zero value lowers nothing.
type InFlightLowering struct {
	To      int
	Version int64
}

// loweringRow is what a heartbeat writes for an InFlightLowering.
type loweringRow struct {
	Calls   int64 `db:"calls"`
	Version int64 `db:"calls_version"` // -1 lowers nothing, because no share has it
}

func (l InFlightLowering) row() loweringRow {
	if l.Version == 0 {
		return loweringRow{Version: -1}
	}
	return loweringRow{int64(l.To), l.Version}
}

// lowerShare is the part of a heartbeat's SET clause that lowers the share. A heartbeat that arrives after a plan has
// written the share lowers nothing, because the share has another version: the server may have more calls in flight by
// then.
var lowerShare = fmt.Sprintf(`max_in_flight = CASE
	WHEN max_in_flight_version = v.calls_version AND COALESCE(max_in_flight, %d) > v.calls THEN v.calls
	ELSE max_in_flight END`, NoLimit)

// callsFree is a condition on a row of schedule_server or schedule_task_running, whose alias is row: its servers may
// have fewer calls in flight than limit.
func callsFree(row, limit string) string {
	return fmt.Sprintf(`(SELECT SUM(COALESCE(b.max_in_flight, %d)) FROM schedule_server b
		WHERE b.task_type = %[2]s.task_type AND b.own_sign = %[2]s.own_sign) < %[3]s`, NoLimit, row, limit)
}

// sharesDue is a condition on the lock row, whose alias is q: calls are free, and a server has fewer than it is to
// have.
var sharesDue = `EXISTS (SELECT 1 FROM schedule_server d WHERE d.task_type = q.task_type AND d.own_sign = q.own_sign
	AND d.max_in_flight < d.max_in_flight_target) AND ` +
	callsFree("q", `(SELECT t.max_in_flight FROM schedule_task_type t WHERE t.task_type = q.task_type)`)

// shareChange is what a plan writes to the share of a server.
type shareChange struct {
	uuid            string
	granted, target int
	raised          bool // granted changes; otherwise the server may be lowering it
}

// shareExtension shares max_in_flight out among the servers with each plan (P10).
func shareExtension() extension {
	return extension{
		last:    func(ctx context.Context, p *planning) error { return writeShares(ctx, p.l, p.shares()) },
		differs: func(p *planning) bool { return len(p.shares()) > 0 },
	}
}

// shares returns the changes of the shares that the plan wants.
func (p *planning) shares() []shareChange {
	in, servers := p.in, p.staying
	if in.Limits.InFlight == 0 && !slices.ContainsFunc(servers, ServerRow.limited) {
		return nil
	}
	next := make(map[string]string, len(p.result.Changes))
	for _, c := range p.result.Changes {
		next[c.QueueID] = cmp.Or(c.Requester, c.Owner)
	}
	queues := make(map[string]int, len(servers))
	for _, q := range in.Queues {
		to, changed := next[q.ID]
		if !changed {
			to = cmp.Or(q.Requester, q.Owner)
		}
		if !q.Removing {
			queues[to]++
		}
	}
	before := sharesOf(servers)
	for i := range before {
		before[i].Queues = queues[before[i].UUID]
	}
	return shareChanges(before, plan.ShareOut(in.Limits.InFlight, before))
}

// limited reports whether the server has a limit.
func (s ServerRow) limited() bool {
	return s.Share.Granted != NoLimit || s.Share.Target != NoLimit
}

func sharesOf(servers []ServerRow) []plan.Share {
	shares := make([]plan.Share, len(servers))
	for i, s := range servers {
		shares[i] = plan.Share{UUID: s.UUID, Granted: int(s.Share.Granted), Target: int(s.Share.Target)}
	}
	return shares
}

func shareChanges(before, after []plan.Share) (changes []shareChange) {
	for i, s := range after {
		if was := before[i]; s != was {
			changes = append(changes, shareChange{s.UUID, s.Granted, s.Target, s.Granted != was.Granted})
		}
	}
	return changes
}

// RaiseShares grants calls in flight that are free, because a server has lowered its share, to servers that have fewer
// than they are to have (P10). It needs no plan. It does nothing while another transaction has the lock row, and then
// reports busy: most likely another server does the same, and if not, the next heartbeat's reply says so again.
func (p Planner) RaiseShares(ctx context.Context) (busy bool, err error) {
	due, busy, err := p.ask(ctx, true, sharesDue)
	if err != nil || busy || !due {
		return busy, sqldb.Wrap(err, "ask whether calls of %s$%s are free", p.taskType, p.roster.OwnSign)
	}
	err = p.roster.underFreeLock(ctx, p.taskType, raiseShares)
	if errors.Is(err, sqldb.ErrBusy) {
		return true, nil
	}
	return false, sqldb.Prefix(err, "raise the shares of max_in_flight of")
}

func raiseShares(ctx context.Context, l *LockTx) error {
	r := l.Reader()
	limits, _, err := r.limits(ctx)
	if err != nil || limits.InFlight == 0 {
		return err
	}
	servers, err := r.Servers(ctx)
	if err != nil {
		return err
	}
	before := sharesOf(servers)
	return writeShares(ctx, l, shareChanges(before, plan.Raise(limits.InFlight, before)))
}

// sharesPerStatement is how many shares one statement writes.
const sharesPerStatement = 100

// writeShares writes the shares of servers. It is the last step of its transaction, because the heartbeats of these
// servers wait for it (S1). It leaves out Granted of a share that it does not raise, because the server may have
// lowered it since this transaction read it.
func writeShares(ctx context.Context, l *LockTx, changes []shareChange) error {
	for part := range slices.Chunk(changes, sharesPerStatement) {
		var set strings.Builder
		var args []any
		column := func(name string, of func(shareChange) int, writes func(shareChange) bool) {
			if !slices.ContainsFunc(part, writes) {
				return
			}
			fmt.Fprintf(&set, "%s = CASE uuid", name)
			for _, c := range part {
				if writes(c) {
					set.WriteString(" WHEN ? THEN ?")
					args = append(args, c.uuid, CallLimit(of(c)))
				}
			}
			fmt.Fprintf(&set, " ELSE %s END, ", name)
		}
		column("max_in_flight", func(c shareChange) int { return c.granted }, func(c shareChange) bool { return c.raised })
		column("max_in_flight_target", func(c shareChange) int { return c.target }, func(shareChange) bool { return true })
		for _, c := range part {
			args = append(args, c.uuid)
		}
		_, err := l.Exec(ctx, `UPDATE schedule_server SET `+set.String()+`max_in_flight_version = max_in_flight_version + 1
			WHERE uuid IN (`+sqldb.Marks(len(part))+`)`, args...)
		if err != nil {
			return fmt.Errorf("write the shares of max_in_flight: %w", err)
		}
	}
	return nil
}

// CallLimit is a number of calls in a column that is NULL without a limit. A negative number and a text, which only a
// table without its constraints can have, count as 0 (S13).
type CallLimit int

// Scan implements sql.Scanner.
func (c *CallLimit) Scan(src any) error {
	var n sql.NullInt64
	switch err := n.Scan(src); {
	case err != nil:
		*c = 0
	case !n.Valid:
		*c = NoLimit
	default:
		*c = CallLimit(max(0, min(n.Int64, NoLimit)))
	}
	return nil
}

// Value implements driver.Valuer.
func (c CallLimit) Value() (driver.Value, error) {
	if c == NoLimit {
		return nil, nil
	}
	return int64(c), nil
}
