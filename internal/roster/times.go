package roster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/schema"
)

// meaning says what a stored time is, and therefore what it means that the clock has not reached it (S17). A clock that
// was ahead for a while, and was set back, leaves such times behind.
type meaning int

const (
	event    meaning = iota // something has happened: it is not later than now
	due                     // something happens then, at most a bounded time after it was written
	slot                    // the next slot of a trigger: package runs computes it anew from the schedule
	given                   // a person, a schedule or the data says so: any time is right
	renewed                 // its writer soon overwrites it, and its readers expect a time in the future until then
	evidence                // it is compared with what a process remembers (H7): it stays as it was written
)

// storedTime is a column of times. Its texts are SQL about a row q.
type storedTime struct {
	column  string
	meaning meaning
	rows    string                  // the rows in which an audit looks for it, unless the clock was set back; empty: all
	limit   func(timeBounds) string // of a due time: the latest one that may be written now; "" if unknown
	value   string                  // what a later time becomes; empty: now if it is an event, the limit if it is due
	also    string                  // a column that becomes NULL with it
	atOnce  bool                    // of a due time: now, if the clock was set back, because nobody knows how long is left
	kept    bool                    // of a due time: it stays unless the clock was set back, whatever the limit
}

// timeTable is a table with times. rows selects those of a roster, with parameters for the task type and the own_sign.
type timeTable struct {
	name, rows string
	large      bool // the audit looks for due times only, by an index, unless the clock was set back
	times      []storedTime
}

// timeBounds are the settings that bound due times, in milliseconds.
type timeBounds struct {
	ItemRetry, ItemRetryMax, QueueRetry, RunTimeout, RunStartTimeout, HeartbeatInterval sqldb.Millis
}

// ClockSlack is how far in the future a time may lie that is not: the nodes of a cluster differ (L8), and a server's
// estimate of the database's clock is not exact.
const ClockSlack = time.Minute

// soon is the instant a duration from now, as SQL.
func soon(d time.Duration) string { return fmt.Sprintf("{ago %d}", -d.Milliseconds()) }

// within returns a limit that is the same for all task types.
func within(d time.Duration) func(timeBounds) string {
	return func(timeBounds) string { return soon(d) }
}

// events are columns of times at which something has happened.
func events(columns ...string) []storedTime { return timesOf(event, columns) }

func timesOf(m meaning, columns []string) (list []storedTime) {
	for _, c := range columns {
		list = append(list, storedTime{column: c, meaning: m})
	}
	return list
}

// timeTables are all columns of times, by table (S17). A test compares them with the migrations.
var timeTables = []timeTable{
	{name: "schedule_task_type", rows: `q.task_type = ? AND '' <> ?`, times: events("gmt_created", "gmt_modified")},
	{name: "schedule_task_running", rows: ofThisRoster, times: slices.Concat(
		timesOf(renewed, []string{"audited_at"}),
		events("last_assign_time"),
		[]storedTime{
			{column: "reserved_until", meaning: due, limit: within(MaxReturn), value: `{now}`}, // a plan is due
			{column: "load_moves_until", meaning: due, limit: within(budgetTime)},
		},
	)},
	{name: "schedule_environment", rows: `'' <> ? AND q.own_sign = ?`, times: slices.Concat(
		events("lost_at"), timesOf(evidence, []string{"history_since"}),
	)},
	{name: "schedule_server", rows: ofThisRoster, times: slices.Concat(
		// A server that seems to have registered in the future was there before, and is not new (P16).
		[]storedTime{{column: "register_time", value: soon(-newFor)}},
		timesOf(renewed, []string{
			"heartbeat_time", "watching_since", "last_fetch_time", "next_run_start_time", "next_run_end_time",
			"oldest_in_hand_since", "last_error_at", "failing_since",
		}),
	)},
	{name: "schedule_server_history", rows: ofThisRoster, large: true, times: slices.Concat(
		events("left_time"),
		timesOf(evidence, []string{
			"register_time", "heartbeat_time", "watching_since", "last_fetch_time", "next_run_start_time",
			"next_run_end_time", "oldest_in_hand_since", "last_error_at", "failing_since",
		}),
	)},
	{name: "schedule_queue", rows: ofThisRoster, times: slices.Concat(
		events("cur_since", "req_since", "failing_since", "gmt_created", "gmt_modified"),
		[]storedTime{
			{column: "window_done_at", value: `NULL`}, // the queue may have items in the present window
			{column: "reserved_until", meaning: due, limit: within(MaxReturn), value: `NULL`, also: "reserved_for"},
		},
	)},
	{name: "schedule_data", rows: `'' <> ? AND q.own_sign = ?`, times: events("gmt_created")},
	{name: "schedule_backlog", rows: ofThisRoster, times: slices.Concat(
		events("measured_at"), timesOf(given, []string{"oldest_at"}),
	)},
	{name: "schedule_event", rows: ofThisRoster, large: true, times: slices.Concat(
		events("event_time"),
		// An episode that seems to last would keep later ones from raising an alert (S16). One that lasts is told again,
		// and is the same as before if its beginning is known.
		[]storedTime{{
			column: "open_until", meaning: due, rows: "q.kind = '" + EventAlert + "'", value: `{now}`, atOnce: true,
			limit: func(b timeBounds) string {
				look := time.Duration(b.HeartbeatInterval)
				return soon(max(condition.Told.Gap(look), condition.Watched.Gap(look)))
			},
		}},
	)},
	{name: "schedule_failed_item", rows: ofThisRoster, large: true, times: slices.Concat(
		events("first_failed_at"),
		[]storedTime{{column: "next_attempt_at", meaning: due, atOnce: true, limit: latestRetry}},
	)},
	{name: "schedule_trigger", rows: `q.target = ? AND q.own_sign = ?`, times: slices.Concat(
		timesOf(given, []string{"start_at", "end_at"}), timesOf(slot, []string{"next_fire_at"}),
		events("prev_fire_at", "missed_at", "skipped_since"),
	)},
	{name: "schedule_run", rows: ofThisRoster, large: true, times: slices.Concat(
		timesOf(given, []string{"scheduled_at", "slot_end_at", "not_before", "end_before"}),
		events("created_at", "waiting_since", "started_at", "finished_at", "failed_at", "alerted_at", "acked_at"),
		[]storedTime{{column: "deadline_at", meaning: due, kept: true, limit: latestDeadline}},
	)},
	{name: "schedule_run_queue", rows: ofRuns, large: true, times: slices.Concat(
		[]storedTime{{
			column: "next_attempt_at", meaning: due, rows: `q.state = 'PENDING'`, atOnce: true,
			limit: func(b timeBounds) string { return soon(LongestQueuePause + time.Duration(b.QueueRetry)) },
		}},
		events("started_at", "progress_at", "finished_at"),
	)},
	{name: "schedule_run_item", rows: ofRuns, large: true, times: events("failed_at")},
	{name: "schedule_backfill", rows: ofThisRoster, times: slices.Concat(
		timesOf(given, []string{"start_at", "from_at", "to_at", "next_slot_at"}), events("created_at", "ended_at"),
	)},
}

const (
	ofThisRoster = `q.task_type = ? AND q.own_sign = ?`
	ofRuns       = `q.run_id IN (SELECT r.run_id FROM schedule_run r WHERE r.task_type = ? AND r.own_sign = ?)`
)

// LongestQueuePause bounds the pauses of a queue of a run, which double with each failure.
const LongestQueuePause = 24 * time.Hour

// latestRetry is the latest next attempt of an item that may be written now. It is unknown by a setting that servers do
// not go by: 0, which is the default to them, or one that they refuse (S13).
func latestRetry(b timeBounds) string {
	if b.ItemRetryMax <= 0 || b.ItemRetryMax < b.ItemRetry {
		return ""
	}
	return soon(max(ClockSlack, time.Duration(b.ItemRetryMax)))
}

// latestDeadline is the latest deadline that may be written now: of a run that is open, or of one that waits to be.
func latestDeadline(b timeBounds) string {
	var when string
	if b.RunTimeout > 0 {
		when = ` WHEN q.state = 'RUNNING' THEN ` + soon(time.Duration(b.RunTimeout))
	}
	if b.RunStartTimeout > 0 {
		when += ` WHEN q.state IN ('WAITING', 'READY') AND (q.not_before IS NULL OR q.not_before <= {now}) THEN ` +
			soon(time.Duration(b.RunStartTimeout))
	}
	if when == "" {
		return ""
	}
	return `CASE` + when + ` END`
}

// correction is what is wrong with a time, and what it becomes.
type correction struct {
	storedTime
	wrong, becomes string
}

// corrections returns what an audit corrects in the table. If the clock was set back, that is more: all columns, and
// each time that the clock has not reached.
func (t timeTable) corrections(b timeBounds, setBack bool) (list []correction) {
	for _, c := range t.times {
		limit, becomes := "", c.value
		switch {
		case c.meaning == event && (setBack || !t.large):
			limit, becomes = soon(ClockSlack), cmp.Or(c.value, `{now}`)
		case c.meaning == due && setBack && c.atOnce:
			limit, becomes = soon(ClockSlack), `{now}`
		case c.meaning == due && (setBack || !c.kept):
			limit = c.limit(b)
			becomes = cmp.Or(c.value, limit)
		}
		if limit == "" {
			continue
		}
		wrong := "q." + c.column + " > " + limit
		if c.rows != "" && !setBack {
			wrong = c.rows + " AND " + wrong
		}
		list = append(list, correction{c, wrong, becomes})
	}
	return list
}

// laterTimes returns the checks of a table that no time is later than a server writes it. The table is named q.
func laterTimes(table string) (list []schema.ColumnCheck) {
	for _, t := range timeTables {
		if t.name != table {
			continue
		}
		for _, c := range t.corrections(timeBounds{}, false) {
			list = append(list, schema.ColumnCheck{Table: table, Column: c.column, Condition: "NOT (" + c.wrong + ")"})
		}
	}
	return list
}

// soonReserved is the condition that a reservation is not longer than any that a server writes.
var soonReserved = "reserved_until <= " + soon(MaxReturn)

// timePage is how many rows one transaction corrects.
const timePage = 500

// timeKey is the primary key of a row with times: at most three columns, as texts.
type timeKey struct{ First, Second, Third string }

// timesExtension corrects times that the clock has not reached (S17).
func timesExtension() extension {
	return extension{repair: func(ctx context.Context, p Planner) error { return p.correctTimes(ctx, false) }}
}

// setBack reports whether the database's clock was set back since the last audit: that one seems to be in the future.
func (p Planner) setBack(ctx context.Context) (bool, error) {
	flag, err := sqldb.Value[sqldb.Flag](ctx, p.roster.DB, `SELECT CASE WHEN audited_at > `+soon(ClockSlack)+`
		THEN 1 ELSE 0 END FROM schedule_task_running WHERE `+ofTask, p.taskType, p.roster.OwnSign)
	return bool(flag), sqldb.Wrap(err, "ask whether the clock was set back")
}

// correctTimes brings times back that the clock has not reached although it should have: they were edited by hand, or
// the clock was set back since (S17). It leaves out rows that other transactions hold (L5).
func (p Planner) correctTimes(ctx context.Context, setBack bool) error {
	bounds, found, err := sqldb.Record[timeBounds](ctx, p.roster.DB, `SELECT item_retry_ms, item_retry_max_ms,
		queue_retry_ms, run_timeout_ms, run_start_timeout_ms, heartbeat_interval_ms
		FROM schedule_task_type WHERE task_type = ?`, p.taskType)
	if err != nil || !found {
		return sqldb.Wrap(err, "read the bounds of times")
	}
	var errs []error
	for _, t := range timeTables {
		if err := p.correctTable(ctx, t, t.corrections(bounds, setBack)); err != nil {
			errs = append(errs, fmt.Errorf("correct times of %s: %w", t.name, err))
		}
	}
	return errors.Join(errs...)
}

func (p Planner) correctTable(ctx context.Context, t timeTable, list []correction) error {
	if len(list) == 0 {
		return nil
	}
	wrong := make([]string, len(list))
	for i, c := range list {
		wrong[i] = c.wrong
	}
	for {
		keys, err := p.wrongTimes(ctx, p.roster.DB, t, wrong, "")
		if err != nil || len(keys) == 0 {
			return err
		}
		corrected := 0
		err = p.roster.UnderLock(ctx, p.taskType, func(ctx context.Context, l *LockTx) error {
			free, err := p.wrongTimes(ctx, l, t, wrong, l.Dialect.SkipLocked)
			if l.Dialect.Class(err) == sqldb.Held {
				return nil
			}
			if corrected = len(free); err != nil || corrected == 0 {
				return err
			}
			return l.correct(ctx, t, list, free)
		})
		if err != nil || corrected < timePage {
			return err
		}
	}
}

// wrongTimes returns rows of the roster with times that are to be corrected. lock ends the SELECT.
func (p Planner) wrongTimes(ctx context.Context, q sqldb.Eacher, t timeTable, wrong []string,
	lock string,
) ([]timeKey, error) {
	columns := keyOf(t.name)
	list := "q." + strings.Join(columns, ", q.") + strings.Repeat(", ''", 3-len(columns))
	return sqldb.Records[timeKey](ctx, q, fmt.Sprintf(`SELECT %s FROM %s q WHERE %s AND (%s) ORDER BY q.%s LIMIT %d`, list,
		t.name, t.rows, strings.Join(wrong, " OR "), strings.Join(columns, ", q."), timePage)+lock,
		p.taskType, p.roster.OwnSign)
}

// correct writes the corrections of rows. MySQL evaluates SET from left to right (L6): what depends on a time comes
// before it.
func (l *LockTx) correct(ctx context.Context, t timeTable, list []correction, keys []timeKey) error {
	var set []string
	for _, c := range list {
		if c.also != "" {
			set = append(set, fmt.Sprintf("%s = CASE WHEN %s THEN NULL ELSE q.%[1]s END", c.also, c.wrong))
		}
		set = append(set, fmt.Sprintf("%s = CASE WHEN %s THEN %s ELSE q.%[1]s END", c.column, c.wrong, c.becomes))
	}
	columns := keyOf(t.name)
	one := "q." + strings.Join(columns, " = ? AND q.") + " = ?"
	var args []any
	for _, k := range keys {
		args = append(args, sqldb.Args([]string{k.First, k.Second, k.Third}[:len(columns)])...)
	}
	_, err := l.Exec(ctx, fmt.Sprintf(`UPDATE %s AS q SET %s WHERE %s%s`, t.name, strings.Join(set, ", "), one,
		strings.Repeat(" OR "+one, len(keys)-1)), args...)
	switch {
	case err != nil:
		return err
	case t.name == "schedule_queue":
		return l.queuesChangedForAll(ctx)
	case t.name == "schedule_failed_item":
		l.versions.item++
		return l.setLockRow(ctx, `item_version = item_version + 1`) // what waited for that time is selected soon
	}
	return nil
}

// keyOf returns the columns of the primary key of a table.
func keyOf(table string) (columns []string) {
	for _, c := range schema.Columns() {
		if c.Table == table && c.Key {
			columns = append(columns, c.Name)
		}
	}
	return columns
}
