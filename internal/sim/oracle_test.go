package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// The rules, by the words with which a broken one is reported:
//
//	at once       no item is executed by two processes at the same time (world.enter); after a loss of history, under epochs
//	              that were raised
//	owned         while a process executes a batch, it owns the queue under the epoch of the batch, until history is lost
//	              (world.exit)
//	two owners    an epoch has one owner (recorder_test.go): until the database has lost history, and when the epochs have
//	              risen, among all that were ever used
//	epoch         the epochs of a queue rise, also when it was removed and is added again, until history is lost
//	floor         after a loss no queue gets an owner at or below the floor of the epochs, and in the end none is there
//	expired       no server is expired that has not been silent for as long as its row says, also if the clock is set
//	unnoticed     a process that was there when the database fell back has found the loss
//	twice         a fenced item takes effect once
//	order         the items of an order key take effect in their order, until the database has lost effects
//	never         every item is done, or is dead with a record
//	no owner      every queue has a live owner
//	open          every run has ended
//	success       a run that has succeeded has done all its items
//	finding       the doctor finds nothing that the history does not cause
//	even          the servers of a task own as many queues each, within one, if nothing says otherwise
//	still         planning again would change nothing
//	quiet         all processes together send fewer than 100 statements a second, beside those of starts and steps
//	ready         every process that runs has its lease
//	leave         a process that is told to leave does so, without an error
//	by itself     no process ends by itself
//	loss          no process finds that history was lost, unless it was
//	passed        a cursor passes no item that is neither done nor dead
//	born          a run that nobody has named yet is not paused, cancelled or acknowledged
//	slots         a trigger that is active makes a run of each slot, or notes that it has missed the slot
//	late          a trigger waits for its next slot, and not for a later one
//	shared        no two queues have an item in a data database at once
//	told          somebody is told of a fault that lasts, by name (drill_test.go)
//	free          a queue that waits for its change and has no owner gets none
//	divided       the numbered queues of a task have each item once, and all queues are of one division
//	waits         no change of the queues waits for ever
//	wanted        the named queues are those that operators have added and not removed
//	reserved      a queue that is reserved for a server that is away goes to nobody (recorder_test.go)
//	placed        the queues obey a rule that an operator has set at rest (place_test.go)
//	soon          what is usual takes seconds, when nothing disturbs it (exercise_test.go)
//	turn          a queue with items waits for its turn no longer than each of the others has two (exercise_work_test.go)
//	prompt        a server that has requested a queue selects it at once when it gets the queue
//	withdrawn     a change that was taken back leaves the queues as they were
//	paused        nothing begins while a task is paused, in a new process either
//	lease         a process that is cut off has ended its calls before the others may take over
//	rate          a process begins no more items of a queue than its rate allows
//	once          a condition has one open alert, until the clock is set back
//	acked         no open run is acknowledged
//	cycle         no open run waits for itself, directly or through others
//	orphans       no row is left of a run or a server that is gone
//
// "at once", "owned", "two owners", "epoch", "floor", "expired", "by itself", "loss", "passed", "born", "shared",
// "divided", "free", "rate", "once", "acked", "cycle" and "reserved" hold at each moment, the others at the end.

// oracle remembers what it has seen.
type oracle struct {
	w      *world
	free   map[string]string // partition_version when the queue was seen to wait for its change without an owner
	runs   map[string]bool   // that it has seen
	fired  map[string]bool   // slots that have a run
	fires  map[string]int64  // how many, by trigger
	died   map[string]bool   // items of a cursor that it has seen dead, as "task id": the cursor has passed them
	lossAt time.Time
}

func newOracle(w *world) *oracle {
	return &oracle{
		w: w, runs: map[string]bool{},
		fired: map[string]bool{}, fires: map[string]int64{}, died: map[string]bool{},
	}
}

// sample checks what holds at each moment.
func (o *oracle) sample() error {
	if o.lossAt != o.w.lossAt { // nobody has noticed the loss yet (H8)
		o.lossAt = o.w.lossAt
		clear(o.free)
	}
	for _, check := range []func() error{
		o.w.recorder.read, o.sampleLoss, o.sampleCursors, o.sampleRuns, o.sampleShares, o.sampleQueues,
		o.sampleFree, o.sampleAlerts, o.sampleCycles,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *oracle) sampleLoss() error {
	if !o.lossAt.IsZero() {
		return nil
	}
	return o.each(o.w.oracle.center.DB(), `SELECT own_sign, COALESCE(lost_report, '') FROM schedule_environment WHERE epoch_floor > 0`, func(env, text string) {
		o.w.breaks("loss: the epochs of %s rise although nothing was lost: %s", env, text)
	})
}

// sampleCursors reads the cursors first and what is dead last: an item that is neither then was passed before.
func (o *oracle) sampleCursors() error {
	for _, t := range o.w.tasks {
		if !t.offers.Cursored || t.inRuns() {
			continue
		}
		db, query := o.w.oracle.center.DB(), `SELECT COALESCE(queue_index || ' ' || queue_total, queue_id), cursor_value
			FROM schedule_queue WHERE task_type = ? AND cursor_value <> ''`
		if t.settings.Database != "" { // the cursors are there
			if _, err := o.undone(t); err != nil { // it notes which items have died
				return err
			}
			continue
		}
		cursors := map[string]string{}
		if err := o.each(db, query, func(part, cursor string) { cursors[part] = cursor }, t.name); err != nil {
			return err
		}
		if len(cursors) == 0 {
			continue
		}
		undone, err := o.undone(t)
		if err != nil {
			return err
		}
		for part, cursor := range cursors {
			for _, id := range undone {
				if t.isOf(number(id), part) && number(id) <= number(cursor) {
					o.w.breaks("passed: the cursor of queue %s of %s is at %s, and item %s is neither done nor dead",
						part, t.name, cursor, id)
				}
			}
		}
	}
	return nil
}

// sharedTables note two rows of a data database that have an item in common, in the transaction that gives it to the
// second row. The rows of two divisions always may: an item may be of any queue of another division.
var sharedTables = []string{
	`CREATE TABLE sim_shared (task TEXT, queues TEXT)`, sharedTrigger("INSERT"), sharedTrigger("UPDATE"),
}

func sharedTrigger(event string) string {
	return `CREATE TRIGGER sim_shared_` + event + ` AFTER ` + event + ` ON rota_fence WHEN NEW.division IS NOT NULL BEGIN
		INSERT INTO sim_shared SELECT o.task_type, ` + partText("o") + ` || ' and ' || ` + partText("NEW") + `
		FROM rota_fence o WHERE o.task_type = NEW.task_type AND o.own_sign = NEW.own_sign AND o.queue_id <> NEW.queue_id
			AND o.division IS NOT NULL AND (o.division <> NEW.division OR NEW.queue_total > 0 AND NOT EXISTS (
				SELECT 1 FROM json_each('[2,3,4,5,7,8,9,16,27,32]') -- none tells the parts apart if they share items
				WHERE o.queue_total % value = 0 AND NEW.queue_total % value = 0
					AND (o.queue_index - NEW.queue_index) % value <> 0));
	END`
}

// partText is an expression for a queue and its part of the items.
func partText(row string) string {
	return strings.ReplaceAll(`R.queue_id || ' (' || R.queue_index || ' of ' || R.queue_total || ' of ' || R.division || ')'`,
		"R.", row+".")
}

// sampleShares reads what the triggers have noted. It makes them as soon as a process has made the table.
func (o *oracle) sampleShares() error {
	for i, f := range o.w.data {
		var tables int
		db := o.w.oracle.center.Data(dataName(i)).DB()
		err := db.QueryRowContext(o.w.t.Context(), `SELECT COUNT(*) FROM sqlite_schema
			WHERE name IN ('rota_fence', 'sim_shared')`).Scan(&tables)
		if err != nil {
			return err
		}
		switch tables {
		case 1:
			for _, statement := range sharedTables {
				if _, err := db.ExecContext(o.w.t.Context(), statement); err != nil {
					return fmt.Errorf("watch %s: %w", f.path, err)
				}
			}
		case 2:
			err = o.each(db, `SELECT task, queues FROM sim_shared`, func(task, queues string) {
				o.w.breaks("shared: queues of %s have items in common: %s", task, queues)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// sampleAlerts checks that a condition alerts once (S16): no two episodes of it are open. Each failure of a run, and each
// death of an item that has ended its process, has an alert of its own. Once the clock was set back, an episode that has
// ended may look open.
func (o *oracle) sampleAlerts() error {
	if o.w.recorder.wasSetBack() {
		return nil
	}
	return o.each(o.w.oracle.center.DB(), `SELECT alert || ' of ' || task_type || ' in ' || own_sign, COUNT(*) FROM schedule_event
		WHERE alert IS NOT NULL AND open_until > rota_now() AND alert NOT IN (?, ?)
		GROUP BY 1, queue_id, from_server, to_server, subject HAVING COUNT(*) > 1`, func(alert, n string) {
		o.w.breaks("once: %s has %s events, and one episode", alert, n)
	}, condition.RunFailed.Name, condition.Killer.Name)
}

// sampleCycles checks that no open run waits for itself (R22).
func (o *oracle) sampleCycles() error {
	return o.each(o.w.oracle.center.DB(), `WITH RECURSIVE edge AS (SELECT d.run_id AS run, d.upstream_run_id AS upstream
			FROM schedule_run_dep d JOIN schedule_run r ON r.run_id = d.run_id AND r.finished_at IS NULL),
		way AS (SELECT run, upstream FROM edge UNION SELECT w.run, e.upstream FROM way w JOIN edge e ON e.run = w.upstream)
		SELECT run, '' FROM way WHERE run = upstream`, func(run, _ string) {
		o.w.breaks("cycle: run %s waits for itself", run)
	})
}

// changesRuns reports whether a step pauses, cancels or acknowledges runs, and makes none.
func (s step) changesRuns() bool {
	return slices.ContainsFunc([]string{"run_pause", "run_cancel", "run_ack", "doctor_ack"}, func(verb string) bool {
		return slices.Contains(s.words, verb)
	})
}

// seeRuns takes note of all runs: a step may have waited for its turn to write, and found a run that was made meanwhile.
func (o *oracle) seeRuns() error {
	return o.each(o.w.oracle.center.DB(), `SELECT run_id, '' FROM schedule_run`, func(id, _ string) { o.runs[id] = true })
}

// sampleRuns looks at runs that were made since the last look, which came before the last step.
func (o *oracle) sampleRuns() error {
	err := o.each(o.w.oracle.center.DB(), `SELECT own_sign || ' ' || trigger_name || ' ' || task_type, scheduled_at FROM schedule_run
		WHERE trigger_name IS NOT NULL`, func(trigger, at string) {
		if !o.fired[trigger+" "+at] {
			o.fired[trigger+" "+at] = true
			o.fires[trigger]++
		}
	})
	if err != nil {
		return err
	}
	var seen []string
	err = o.each(o.w.oracle.center.DB(), `SELECT run_id, CASE WHEN paused THEN 'paused ' ELSE '' END
			|| CASE WHEN cancel_requested OR state = 'CANCELLED' THEN 'cancelled ' ELSE '' END
			|| CASE WHEN acked_at IS NOT NULL OR acked_by <> '' THEN 'acknowledged ' ELSE '' END
			|| CASE WHEN acked_at IS NOT NULL AND finished_at IS NULL THEN 'open' ELSE '' END
		FROM schedule_run`, func(id, said string) {
		if strings.HasSuffix(said, "acknowledged open") {
			o.w.breaks("acked: run %s is open, and its failure is acknowledged", id)
		}
		if said != "" && !o.runs[id] {
			o.w.breaks("born: run %s is new and %sby nobody", id, said)
		}
		seen = append(seen, id)
	})
	for _, id := range seen {
		o.runs[id] = true
	}
	return err
}

// each calls f for each row of two texts.
func (o *oracle) each(db *sql.DB, query string, f func(a, b string), args ...any) error {
	return eachRow(o.w.t.Context(), db, query, f, args...)
}

func eachRow(ctx context.Context, db *sql.DB, query string, f func(a, b string), args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			return err
		}
		f(a, b)
	}
	return rows.Err()
}

// settled is how long the roster may take to come to rest after the last fault. A cursor that begins with eighty items
// that always fail, and look like an outage, takes 24 minutes.
const settled = 45 * time.Minute

// rest ends the faults and the pauses, and waits until everything is at rest.
func (o *oracle) rest() error {
	w := o.w
	for _, p := range w.all {
		p.link.goOn()
		p.link.set(trouble{})
	}
	w.mu.Lock()
	clear(w.out)
	clear(w.hung)
	w.mu.Unlock()
	for _, f := range w.files() {
		f.setDown(false)
	}
	if err := w.undoEdits(); err != nil {
		return err
	}
	var unrest []string
	for began, n := time.Now(), 0; time.Since(began) < settled; n++ {
		w.keepOne() // items may have ended all processes
		if err := errors.Join(o.lift(), o.adopt()); err != nil {
			return err
		}
		if n%3 == 0 { // poison that is alone looks like an outage
			if err := o.feed(); err != nil {
				return err
			}
		}
		time.Sleep(5 * time.Second)
		if err := o.sample(); err != nil {
			return err
		}
		if lasted := time.Since(w.began); w.statements() > 5000+100*int(lasted.Seconds()) { // starts and steps need some
			w.breaks("quiet: %d statements in %s", w.statements(), lasted)
			return nil
		}
		var err error
		if unrest, err = o.unrest(); err != nil {
			return err
		}
		if len(unrest) == 0 {
			w.note("at rest after %s", time.Since(began).Round(time.Second))
			return nil
		}
	}
	for _, text := range unrest {
		w.breaks("%s", text)
	}
	return nil
}

// keepOne starts a process in each environment that has none.
func (w *world) keepOne() {
	for env, name := range map[string]string{"": "z", otherEnv: "o"} {
		wanted := slices.ContainsFunc(w.tasks, func(t *task) bool { return t.env == env })
		if wanted && !slices.ContainsFunc(w.all, func(p *process) bool { return p.alive.Load() && p.env == env }) {
			w.start(name)
		}
	}
}

// adopt deletes the ids of data databases that the roster does not know, because it has fallen back to a time before
// their first use, as docs/data.md tells an operator to.
func (o *oracle) adopt() error {
	if o.lossAt.IsZero() {
		return nil
	}
	for i := range o.w.data {
		if err := o.adoptOne(dataName(i), o.w.oracle.center.Data(dataName(i)).DB()); err != nil {
			return err
		}
	}
	return nil
}

func (o *oracle) adoptOne(name string, db *sql.DB) error {
	var tables int
	err := db.QueryRowContext(o.w.t.Context(), `SELECT COUNT(*) FROM sqlite_schema WHERE name = 'rota_data'`).Scan(&tables)
	if err != nil || tables == 0 {
		return err
	}
	unknown := map[string]bool{}
	err = o.each(db, `SELECT data_id, name FROM rota_data`, func(id, _ string) { unknown[id] = true })
	if err != nil {
		return err
	}
	// A worker writes an id here first, so each one that was read before is here if the roster knows it.
	err = o.each(o.w.oracle.center.DB(), `SELECT data_id, name FROM schedule_data WHERE name = ?`,
		func(id, _ string) { delete(unknown, id) }, name)
	for id := range unknown {
		if err == nil {
			_, err = db.ExecContext(o.w.t.Context(), `DELETE FROM rota_data WHERE data_id = ?`, id)
		}
	}
	return err
}

// lift undoes all pauses and limits, as an operator does.
func (o *oracle) lift() error {
	type call struct {
		env   string
		words []string
	}
	var calls []call
	add := func(env string, words ...string) { calls = append(calls, call{env, words}) }
	for _, t := range o.w.tasks {
		// Settings are refused while a trigger of another task type has the name of this one.
		err := o.each(o.w.oracle.center.DB(), `SELECT name, target FROM schedule_trigger WHERE name = ? AND target <> name`,
			func(trigger, _ string) { add(t.env, "trigger_delete", "trigger="+trigger) }, t.name)
		if err != nil {
			return err
		}
		add(t.env, "task_resume", "task="+t.name)
		add(t.env, "task_set", "task="+t.name, "max_queues_per_server=0", "max_servers=0", "max_servers_per_host=0",
			"max_in_flight=0", "rate_per_second=0",
			"require=", "prefer=", "spread=")
		err = o.each(o.w.oracle.center.DB(), `SELECT task_type, queue_id FROM schedule_assignment WHERE pin <> '' AND task_type = ?`,
			func(task, queue string) { add(t.env, "queue_unpin", "task="+task, "queue="+queue) }, t.name)
		if err != nil {
			return err
		}
		missing, err := o.missing(t)
		if err != nil {
			return err
		}
		for _, name := range missing {
			add(t.env, "queue_add", "task="+t.name, "queue="+name)
		}
	}
	for _, undo := range [][3]string{
		{"worker", "worker_resume", "worker="},
		{"trigger", "trigger_pause", "trigger="},
		{"open run", "run_resume", "run="},
		{"open backfill", "run_backfill_resume", "backfill="},
	} {
		for env := range o.w.ops {
			list, err := o.w.named(o.w.t.Context(), env, undo[0], "")
			if err != nil {
				return err
			}
			for _, name := range list {
				add(env, undo[1], undo[2]+name)
			}
		}
	}
	for _, c := range calls {
		if _, err := o.w.operateIn(c.env, c.words...); err != nil {
			return err
		}
	}
	return nil
}

// feed adds an item that succeeds to each task.
func (o *oracle) feed() error {
	for _, t := range o.w.tasks {
		if t.inRuns() {
			continue
		}
		if err := o.w.addItems([]string{t.name, "1"}); err != nil {
			return err
		}
	}
	return nil
}

// unrest says what is not at rest.
func (o *oracle) unrest() (list []string, err error) {
	for _, look := range []func() ([]string, error){o.lateTriggers, o.unwanted, o.w.recorder.unrest, o.orphans} {
		some, err := look()
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	db := o.w.oracle.center.DB()
	for _, t := range o.w.tasks {
		undone, err := o.undone(t)
		if err != nil {
			return nil, err
		}
		if len(undone) > 0 {
			say("never: items %v of %s are not done", undone, t.name)
		}
	}
	err = o.each(db, `SELECT task_type || ' ' || queue_id, COALESCE(cur_server, '') FROM schedule_queue q
		WHERE cur_server IS NULL OR req_server IS NOT NULL
			OR NOT EXISTS (SELECT 1 FROM schedule_server s WHERE s.uuid = q.cur_server)`, func(q, owner string) {
		say("no owner: queue %s is on its way, and belongs to %q", q, owner)
	})
	if err != nil {
		return nil, err
	}
	uneven, err := o.unevenness()
	if err != nil {
		return nil, err
	}
	list = append(list, uneven...)
	err = o.each(db, `SELECT run_id, state FROM schedule_run WHERE finished_at IS NULL`, func(id, state string) {
		say("open: run %s is %s", id, state)
	})
	if err != nil {
		return nil, err
	}
	err = o.each(db, `SELECT task_type, run_key FROM schedule_submission`, func(task, key string) {
		say("open: the submission of run %s of %s waits", key, task)
	})
	if err != nil {
		return nil, err
	}
	for _, p := range o.w.all {
		m := p.m.Load()
		if !p.alive.Load() || p.left() {
			continue
		}
		if m == nil {
			say("ready: %s has not opened the roster", p.name)
		} else if err := m.Ready(); err != nil {
			say("ready: %s: %v", p.name, err)
		}
	}
	if len(list) > 0 { // the doctor sends more than a hundred statements
		return list, nil
	}
	ctx, cancel := context.WithTimeout(o.w.t.Context(), time.Minute)
	defer cancel()
	for _, client := range o.w.ops {
		findings, err := doctor.Diagnose(ctx, client, "")
		if err != nil {
			return nil, err
		}
		for _, f := range findings {
			if f.Status == condition.Problem && !o.explained(f) {
				say("finding: %s %s", f.Kind, f.Text)
			}
		}
	}
	return list, nil
}

// orphans says which rows are left of what is gone. Nobody reads them, and no retention finds them.
func (o *oracle) orphans() (list []string, err error) {
	for table, key := range map[string]string{
		"schedule_run_queue": "run_id", "schedule_run_item": "run_id", "schedule_run_dep": "run_id", "schedule_server_version": "uuid",
	} {
		of := map[string]string{"run_id": "schedule_run", "uuid": "schedule_server"}[key]
		err := o.each(o.w.oracle.center.DB(), `SELECT `+key+`, COUNT(*) FROM `+table+` WHERE `+key+` NOT IN (SELECT `+key+` FROM `+of+`)
			GROUP BY 1`, func(id, n string) {
			list = append(list, fmt.Sprintf("orphans: %s rows of %s are of %s, which is gone", n, table, id))
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// lateTriggers says which triggers wait for more than their next slot. An audit may let a time be ahead by a minute.
func (o *oracle) lateTriggers() (list []string, err error) {
	seconds := func(time string) string { return `julianday(substr(` + time + `, 1, 23)) * 86400` }
	var invalid error
	err = o.each(o.w.oracle.center.DB(), `SELECT expression || ' of trigger ' || name,
			CAST(`+seconds("next_fire_at")+` - jitter_ms / 1000
				- MAX(`+seconds("rota_now()")+`, COALESCE(`+seconds("start_at")+`, 0)) AS INTEGER)
		FROM schedule_trigger WHERE kind = 'EVERY' AND status IN ('ACTIVE', 'PAUSED') AND next_fire_at IS NOT NULL`,
		func(trigger, wait string) {
			expression, _, _ := strings.Cut(trigger, " ")
			every, err := time.ParseDuration(expression)
			invalid = errors.Join(invalid, err)
			if ahead := time.Duration(number(wait)) * time.Second; ahead > every+time.Minute+time.Second {
				list = append(list, fmt.Sprintf("late: the next slot of the %s is in %s", trigger, ahead))
			}
		})
	return list, errors.Join(err, invalid)
}

// unevenness says which tasks could be divided more evenly, and what another plan would move.
func (o *oracle) unevenness() (list []string, err error) {
	// If all processes serve all tasks and are alike, their totals differ by one queue at most.
	err = o.each(o.w.oracle.center.DB(), `SELECT own_sign, 'from ' || MIN(n) || ' to ' || MAX(n) FROM (
			SELECT s.own_sign, COUNT(q.queue_id) AS n, COUNT(DISTINCT s.uuid) AS served, MIN(s.weight) AS least, MAX(s.weight) AS most,
				MIN(t.balance) AS balance, (SELECT COUNT(*) FROM schedule_task_running r WHERE r.own_sign = s.own_sign) AS tasks
			FROM schedule_server s LEFT JOIN schedule_queue q ON q.cur_server = s.uuid JOIN schedule_task_type t ON t.task_type = s.task_type
			GROUP BY s.own_sign, s.process) p
		GROUP BY own_sign HAVING MIN(served) = MAX(tasks) AND MIN(least) = MAX(most) AND MIN(balance) = 'QUEUES' AND MAX(n) - MIN(n) > 1`,
		func(env, text string) {
			list = append(list, fmt.Sprintf("even: the totals of the processes of %s are %s", env, text))
		})
	if err != nil {
		return nil, err
	}
	for _, t := range o.w.tasks {
		preview, err := o.w.ops[t.env].Queues().Plan(o.w.t.Context(), t.name, ops.Scenario{})
		if errors.Is(err, center.ErrUnknownTask) {
			list = append(list, fmt.Sprintf("no owner: no process has defined %s", t.name))
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, m := range preview.Moves {
			list = append(list, fmt.Sprintf("still: another plan would move queue %s of %s, because of %s", m.QueueID, t.name, m.Rule))
		}
		err = o.each(o.w.oracle.center.DB(), `SELECT MIN(n), MAX(n) FROM (SELECT COUNT(q.queue_id) AS n, MIN(s.weight) AS least, MAX(s.weight) AS most
			FROM schedule_server s LEFT JOIN schedule_queue q ON q.cur_server = s.uuid
			JOIN schedule_task_type t ON t.task_type = s.task_type AND t.balance = 'QUEUES'
			WHERE s.task_type = ? GROUP BY s.uuid) c HAVING MIN(least) = MAX(most)`, func(least, most string) {
			if number(most)-number(least) > 1 {
				list = append(list, fmt.Sprintf("even: a server of %s owns %s queues and another one %s", t.name, most, least))
			}
		}, t.name)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// undone returns the items of a task in mode CONTINUOUS that are neither done nor dead. An item of a cursor stays dead
// when the retention deletes its record: nothing selects it again.
func (o *oracle) undone(t *task) (ids []string, err error) {
	if t.inRuns() {
		return nil, nil
	}
	dead, held := map[string]bool{}, map[string]bool{}
	err = o.each(o.w.oracle.center.DB(), `SELECT item_key, order_key || s.on_dead FROM schedule_failed_item i
		JOIN schedule_task_type s ON s.task_type = i.task_type WHERE i.task_type = ? AND state = 'DEAD'`,
		func(item, key string) {
			dead[item] = true
			if t.offers.Cursored {
				o.died[t.name+" "+item] = true
			}
			if key, holds := strings.CutSuffix(key, center.OnDeadHold); holds && t.offers.Ordered {
				held[key] = true // a dead item holds back those of its key that are behind it
			}
		}, t.name)
	if err != nil {
		return nil, err
	}
	err = o.w.eachItem(t, `SELECT id, order_key FROM sim_item WHERE task = ? AND effects = 0 ORDER BY id`, func(id, key string) {
		if !dead[id] && !held[key] && !o.died[t.name+" "+id] {
			ids = append(ids, id)
		}
	})
	return ids, err
}

// verdict checks what holds at the end.
func (o *oracle) verdict() error {
	w := o.w
	for _, t := range w.tasks {
		if err := o.effects(t); err != nil {
			return err
		}
	}
	return o.each(w.oracle.center.DB(), `SELECT r.run_id, t.task_type FROM schedule_run r JOIN schedule_task_type t
		ON t.task_type = r.task_type WHERE r.state = 'SUCCESS'`, func(run, taskType string) {
		t := w.taskNamed(taskType)
		if t == nil {
			return
		}
		args, swept := []any{taskType, run}, ""
		if t.named() {
			done, err := o.doneIn(run)
			if err != nil {
				w.breaks("success: %v", err)
			}
			swept = ` AND ` + t.nameSQL() + ` IN (` + done + `)`
		}
		for _, db := range w.items(t) {
			var left int
			err := db.QueryRowContext(w.t.Context(), `SELECT COUNT(*) FROM sim_item i WHERE task = ? AND NOT EXISTS
				(SELECT 1 FROM sim_swept s WHERE s.task = i.task AND s.run_id = ? AND s.id = i.id)`+swept, args...).
				Scan(&left)
			if err != nil {
				w.breaks("success: %v", err)
			} else if left > 0 {
				w.breaks("success: run %s of %s is SUCCESS, and has not done %d items", run, taskType, left)
			}
		}
	})
}

// doneIn returns the named queues that a run has done, as a list of SQL: it leaves out those that were removed, and
// those that were added later than it was opened.
func (o *oracle) doneIn(run string) (list string, err error) {
	var done []string
	err = o.each(o.w.oracle.center.DB(), `SELECT queue_id, '' FROM schedule_run_queue
		WHERE run_id = ? AND state = 'DONE'`, func(queue, _ string) { done = append(done, "'"+queue+"'") }, run)
	return strings.Join(done, ", "), err
}

// effects checks how often and in which order the items of a task took effect.
func (o *oracle) effects(t *task) error {
	w := o.w
	if t.fenced() {
		for _, table := range []string{"sim_item", "sim_swept"} {
			err := w.eachItem(t, `SELECT id, effects FROM `+table+` WHERE task = ? AND effects > 1`, func(id, n string) {
				w.breaks("twice: item %s of %s took effect %s times", id, t.name, n)
			})
			if err != nil {
				return err
			}
		}
		err := w.eachItem(t, `SELECT queue || ', epoch ' || epoch, GROUP_CONCAT(server) FROM sim_effect WHERE task = ?
			GROUP BY queue, epoch HAVING COUNT(*) > 1`, func(epoch, servers string) {
			w.breaks("two owners: effects of %s, queue %s, are of the servers %s", t.name, epoch, servers)
		})
		if err != nil {
			return err
		}
	}
	if !t.offers.Ordered || t.inRuns() {
		return nil
	}
	return w.eachItem(t, `SELECT a.id, b.id FROM sim_item a JOIN sim_item b ON a.task = b.task AND a.order_key = b.order_key
		WHERE a.task = ? AND a.id < b.id AND a.effects > 0 AND b.effects > 0 AND a.turn > b.turn`, func(a, b string) {
		if !w.undone[t.name+" "+a] { // a later item may have been in flight when the database fell back
			w.breaks("order: item %s of %s took effect after item %s of the same key", a, t.name, b)
		}
	})
}

// leave tells all processes to leave.
func (o *oracle) leave() {
	run := slices.DeleteFunc(slices.Clone(o.w.all), func(p *process) bool { return !p.alive.Load() || p.left() })
	for _, p := range run {
		p.leave()
	}
	for _, p := range run {
		select {
		case <-p.done:
			if p.err != nil && !p.link.isDead() {
				o.w.breaks("leave: %s has left with an error: %v", p.name, p.err)
			}
		case <-time.After(5 * time.Minute):
			o.w.breaks("leave: %s is still there after 5 minutes", p.name)
		}
	}
}

// left reports whether the process was told to leave.
func (p *process) left() bool { return p.leaving.Load() }

// leave tells the process to leave.
func (p *process) leave() {
	p.leaving.Store(true)
	p.stop()
}
