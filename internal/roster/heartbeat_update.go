package roster

import (
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// heartbeatColumn is a column of schedule_server with its value for a server.
type heartbeatColumn struct {
	name  string
	value func(ServerReport) any
}

func heartbeatColumns(d *sqldb.Dialect) []heartbeatColumn {
	moment := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return d.Time(t)
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
		{"failing_since", func(s ServerReport) any { return moment(s.FailingSince) }},
		{"failed_calls", func(s ServerReport) any { return s.FailedCalls }},
		{"drained_partition", func(s ServerReport) any { return s.DrainedPartition }},
	}
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
	set.WriteString(", watching_since = CASE WHEN heartbeat_time < {ago judge_dead_interval_ms / 2} THEN {now} WHEN watching_since > ")
	value(since, "watching_since")
	set.WriteString(" THEN watching_since ELSE ")
	value(since, "watching_since")
	set.WriteString(" END, heartbeat_time = {now}")
	for _, col := range heartbeatColumns(d) {
		set.WriteString(", " + col.name + " = ")
		value(col.value, col.name)
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
		` WHERE uuid IN (` + sqldb.Marks(len(uuids)) + `) AND beat_token IN (` + sqldb.Marks(len(b.OldTokens)+1) + `)`, args
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
