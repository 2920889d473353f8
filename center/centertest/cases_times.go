package centertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
	"github.com/dutyrota/rota/schema"
)

// ahead is how far the clock was ahead, as SQL.
const ahead = "{ago -17280000000}" // 200 days

// TimesKept are the columns whose times stay as they are: what a person, a schedule or the data says, what the next
// heartbeat overwrites, and what the proofs of lost history compare.
var TimesKept = []string{
	"schedule_environment.history_since", "schedule_backlog.oldest_at",
	"schedule_trigger.start_at", "schedule_trigger.end_at", "schedule_run.scheduled_at", "schedule_run.slot_end_at", "schedule_run.not_before",
	"schedule_run.end_before", "schedule_backfill.start_at", "schedule_backfill.from_at", "schedule_backfill.to_at",
	"schedule_backfill.next_slot_at", "schedule_server.heartbeat_time", "schedule_server.watching_since",
	"schedule_server.last_fetch_time", "schedule_server.next_run_start_time", "schedule_server.next_run_end_time",
	"schedule_server.oldest_in_hand_since", "schedule_server.last_error_at", "schedule_server.failing_since",
	"schedule_server_history.register_time", "schedule_server_history.heartbeat_time",
	"schedule_server_history.watching_since", "schedule_server_history.last_fetch_time",
	"schedule_server_history.next_run_start_time", "schedule_server_history.next_run_end_time",
	"schedule_server_history.oldest_in_hand_since", "schedule_server_history.last_error_at",
	"schedule_server_history.failing_since",
}

// timesLater are the columns whose times may be later than now after an audit, and by how much.
var timesLater = map[string]time.Duration{
	"schedule_run.deadline_at": 24 * time.Hour, "schedule_task_running.load_moves_until": time.Hour,
}

// timeSteps are a task type with a row in each table that has times, in an environment of its own.
type timeSteps struct {
	*fixture
	runID string
}

func newTimes(t *testing.T, c *center.Center, ownSign string) timeSteps {
	t.Helper()
	in, err := c.In(ownSign)
	if err != nil {
		t.Fatal(err)
	}
	r := timeSteps{fixture: newFixture(t, in, center.Settings{Mode: center.ModeRun, Queues: 2})}
	r.join("A", "B")
	r.must(in.Roster().Server(r.task, r.uuid("B")).Leave(t.Context(), nil, roster.Reservation{}))
	r.rebalance("A")
	_, err = ops.New(in).Triggers().Define(t.Context(), runs.Trigger{Name: "nightly", Target: r.task, Kind: runs.TriggerCron, Expression: "0 0 3 * * ?"})
	r.must(err)
	r.runID = r.submitAndOpen("k")
	r.claimOne("A", "0")
	for _, row := range []string{
		`environment (own_sign) VALUES ('%[2]s')`,
		`data (own_sign, name, data_id, address) VALUES ('%[2]s', 'orders', 'x', '')`,
		`backlog (task_type, own_sign, queue_id, epoch, items, measured_at, took_ms) VALUES ('%[1]s', '%[2]s', '0', 1, 5, '2020-01-01 00:00:00.000000', 1)`,
		`event (task_type, own_sign, kind) VALUES ('%[1]s', '%[2]s', 'ALERT')`,
		`failed_item (task_type, own_sign, item_hash, item_key, queue_id) VALUES ('%[1]s', '%[2]s', 'h', '17', '0')`,
		`run_item (run_id, queue_id, item_no, item_key, attempt, failed_at) VALUES ('%[3]s', '0', 1, '17', 1, '2020-01-01 00:00:00.000000')`,
		`backfill (backfill_id, task_type, own_sign, trigger_name, kind, expression, from_at, to_at) VALUES ('%[3]s', '%[1]s', '%[2]s', 'nightly', 'CRON', '0 0 3 * * ?', '2020-01-01 00:00:00.000000', '2020-01-01 00:00:00.000000')`,
	} {
		r.exec("INSERT INTO schedule_"+row, r.task, ownSign, r.runID)
	}
	return r
}

// rows is the condition on the rows of a table that belong to the task type.
func (r timeSteps) rows(table string) string {
	switch table {
	case "schedule_run_queue", "schedule_run_item", "schedule_run_dep":
		return "run_id = '" + r.runID + "'"
	case "schedule_environment", "schedule_data", "schedule_trigger":
		return "own_sign = '" + r.c.OwnSign() + "'"
	case "schedule_task_type", "schedule_task_after":
		return "task_type = '" + r.task + "'"
	}
	return "task_type = '" + r.task + "' AND own_sign = '" + r.c.OwnSign() + "'"
}

// setAhead writes a time in the future into a column.
func (r timeSteps) setAhead(table, column string) {
	r.Helper()
	n, err := r.c.Roster().DB.Exec(r.Context(), fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", table, column, ahead, r.rows(table)))
	r.must(err)
	if n == 0 {
		r.Fatalf("%s has no row", table)
	}
}

// later reports whether a column has a time that is later than now by more than a duration.
func (r timeSteps) later(table, column string, than time.Duration) bool {
	r.Helper()
	n, err := sqldb.Value[int](r.Context(), r.c.Roster().DB, fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s AND %s > {ago %d}", table, r.rows(table), column, -than.Milliseconds()))
	r.must(err)
	return n > 0
}

// audit does what the audit of a server does with times.
func (r timeSteps) audit() {
	r.Helper()
	turn, err := r.c.Roster().Planner(r.task, r.uuid("A")).Audit(r.Context())
	r.must(err)
	if !turn {
		r.Fatal("it was not the turn of A to audit")
	}
	_, err = r.c.Engine().Scheduler.CorrectTriggers(r.Context(), r.task)
	r.must(err)
}

func (r timeSteps) version(column string) int64 {
	r.Helper()
	return r.readInt("SELECT %s FROM schedule_task_running WHERE %s", column, r.rows("schedule_task_running"))
}

// testTimesAhead checks what becomes of times that were written while the database's clock was ahead.
func testTimesAhead(t *testing.T, c *center.Center) {
	t.Run("S17 after the clock was set back the audit corrects each time", func(t *testing.T) {
		r := newTimes(t, c, "set-back")
		var times []schema.Column
		for _, column := range schema.Columns() {
			if column.Kind == schema.Time {
				times = append(times, column)
				r.setAhead(column.Table, column.Name)
			}
		}
		const read = "SELECT SUM(queue_version) FROM schedule_server_version WHERE %s"
		items, queues := r.version("item_version"), r.readInt(read, r.rows("schedule_server_version"))
		r.audit()
		for _, column := range times {
			name := column.Table + "." + column.Name
			if kept := slices.Contains(TimesKept, name); r.later(column.Table, column.Name, max(time.Minute, timesLater[name])) != kept {
				t.Errorf("%s is in the future: %t, want %t", name, !kept, kept)
			}
		}
		if r.version("item_version") <= items || r.readInt(read, r.rows("schedule_server_version")) <= queues {
			t.Error("the servers do not read their items and queues again")
		}
		if found := r.findings("values"); len(found) > 0 {
			t.Errorf("the doctor finds %q after the audit", found)
		}
		events := strings.Join(r.readColumn("SELECT reason FROM schedule_event WHERE %s AND kind = 'TRIGGER'", r.rows("schedule_event")), "\n")
		if !strings.Contains(events, "trigger nightly was to fire at") {
			t.Errorf("no event says that the trigger was corrected:\n%s", events)
		}
		version := r.version("version")
		r.exec("UPDATE schedule_task_running SET audited_at = NULL WHERE %s", r.rows("schedule_task_running"))
		r.audit() // nothing is left to correct
		if r.version("version") != version {
			t.Error("a second audit has taken the lock row")
		}
	})
	t.Run("S16 S17 an alert that has ended while the clock was ahead hides no later one", func(t *testing.T) {
		r := newTimes(t, c, "ended")
		a := alerts{r.fixture, r.c}
		failing := condition.Condition{Kind: condition.Failing.Name, Since: time.Now(), Text: "x"}
		outage := condition.Condition{Kind: condition.Outage.Name, Since: time.Now(), Text: "x"}
		a.begins(true, failing, 0, "that ends while the clock is ahead")
		a.begins(true, outage, 2*time.Minute, "that lasts")
		const hourAhead = "{ago -3600000}"
		for _, set := range []string{"schedule_event SET event_time = " + hourAhead + ", open_until = " + hourAhead, "schedule_task_running SET audited_at = " + hourAhead} {
			table, _, _ := strings.Cut(set, " ")
			_, err := r.c.Roster().DB.Exec(t.Context(), "UPDATE "+set+" WHERE "+r.rows(table))
			r.must(err)
		}
		r.audit()
		a.begins(false, outage, 2*time.Minute, "that lasts")
		failing.Since = time.Now()
		a.begins(true, failing, 2*time.Minute, "that begins after the clock was set back")
	})
	t.Run("S7 S17 a heartbeat brings a watch of the future back", func(t *testing.T) {
		r := newTimes(t, c, "watch")
		r.setAhead("schedule_server", "watching_since")
		r.send("A", roster.ServerReport{WatchingSince: r.now()})
		if r.later("schedule_server", "watching_since", time.Minute) {
			t.Error("watching_since is still in the future")
		}
	})
	t.Run("S13 S17 a bound that workers refuse shortens no pause", func(t *testing.T) {
		r := newTimes(t, c, "refused")
		r.exec("UPDATE schedule_failed_item SET next_attempt_at = '%s' WHERE %s", r.now().Add(3*time.Hour).UTC().Format(timeLayout), r.rows("schedule_failed_item"))
		for _, bound := range []int{0, 1} { // the default, as in code, and less than item_retry
			r.exec("UPDATE schedule_task_type SET item_retry_max_ms = %d WHERE task_type = '%s'", bound, r.task)
			r.exec("UPDATE schedule_task_running SET audited_at = NULL WHERE %s", r.rows("schedule_task_running"))
			r.audit()
			if !r.later("schedule_failed_item", "next_attempt_at", 2*time.Hour) {
				t.Errorf("with item_retry_max_ms = %d an item is due in less than two hours, want three as its server wrote", bound)
			}
		}
	})
	t.Run("S17 an audit bounds what is due", func(t *testing.T) {
		r := newTimes(t, c, "due")
		r.exec("DELETE FROM schedule_event WHERE %s AND kind <> 'ALERT'", r.rows("schedule_event"))
		r.exec("UPDATE schedule_run_queue SET state = 'PENDING' WHERE %s", r.rows("schedule_run_queue"))
		r.exec("UPDATE schedule_task_running SET audited_at = NULL WHERE %s", r.rows("schedule_task_running"))
		due := map[string]time.Duration{
			"schedule_trigger.next_fire_at": 24 * time.Hour, "schedule_failed_item.next_attempt_at": 6 * time.Hour,
			"schedule_run_queue.next_attempt_at": 25 * time.Hour, "schedule_event.open_until": 0, "schedule_queue.window_done_at": 0,
		}
		for name := range due {
			table, column, _ := strings.Cut(name, ".")
			r.setAhead(table, column)
		}
		r.setAhead("schedule_run", "deadline_at")
		r.wantFound("trigger nightly was to fire at", "window_done_at (")
		r.audit()
		for name, most := range due {
			table, column, _ := strings.Cut(name, ".")
			if r.later(table, column, most+time.Minute) {
				t.Errorf("%s is later than %s from now", name, most)
			}
		}
		if !r.later("schedule_run", "deadline_at", 48*time.Hour) {
			t.Error("the deadline of a run was lowered although the clock was not set back")
		}
		if found := r.findings("values"); len(found) > 0 {
			t.Errorf("the doctor finds %q after the audit", found)
		}
	})
}
