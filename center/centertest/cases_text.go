package centertest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
	"github.com/dutyrota/rota/schema"
)

// crab is a letter of four bytes in UTF-8 that a server has only if its encoding is UTF-8 without limits.
const crab = "🦀"

// hostileTexts returns what a program may give for any text, by name. It makes them at their first use: each of the
// processes that a test starts would pay for 10 MB otherwise.
var hostileTexts = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"four bytes": "a" + crab + "b",
		"NUL":        "a\x00b",
		"no UTF-8":   "a\xffb",
		"surrogate":  "a\xed\xa0\x80b",
		"lines":      "a\nb",
		"60 kB":      strings.Repeat(crab, 15_000),
		"escapes":    strings.Repeat(`"`, 60_000), // each is two characters in JSON
		"10 MB":      strings.Repeat(crab, 10<<20/len(crab)),
	}
})

// textWriter is a call that writes a text from outside into columns. write makes the call, after ready if it has to
// prepare something.
type textWriter struct {
	columns []string // "table.column"
	write   func(text string) error
}

// inside are the columns that no text from outside reaches, or that repeat one that has been written elsewhere, with
// the reason. A name without a table stands for the column of each table.
var inside = map[string]string{
	"task_type":   "repeats the name of a task type, which schedule_task_type has",
	"own_sign":    "repeats the name of an environment, which schedule_task_running has",
	"queue_id":    "repeats the name of a queue, which schedule_queue has",
	"run_id":      "a UUID that Rota makes",
	"backfill_id": "a UUID that Rota makes",
	"state":       "one of the states that Rota knows",
	"division":    "random digits",
	"kind":        "one of the kinds that Rota knows; of a backfill, that of its trigger",

	"schedule_task_running.queue_changes":      "names of queues",
	"schedule_task_running.skipped":            "a list of names of queues",
	"schedule_task_running.last_assign_server": "the uuid of a server",
	"schedule_environment.lost_task":           "the name of a task type",
	"schedule_environment.lost_report":         "made of the names of queues and servers",
	"schedule_server.uuid":                     "made of the host's name and random digits",
	"schedule_server.ip":                       "an address of the host",
	"schedule_server.host_name":                "the name of the host, by the operating system",
	"schedule_server.beat_token":               "random digits",
	"schedule_server.library_version":          "the version of this module",
	"schedule_server.hung_queues":              "a list of names of queues",
	"schedule_server.witness":                  "random digits and numbers of a file",
	"schedule_server.process":                  "made of the host's name and random digits",
	"schedule_server.capabilities":             "names that Rota knows",
	"schedule_server_version.uuid":             "the uuid of a server",
	"schedule_queue.cur_server":                "the uuid of a server",
	"schedule_queue.req_server":                "the uuid of a server",
	"schedule_queue.reserved_for":              "repeats schedule_server.name",
	"schedule_data.data_id":                    "random digits",
	"schedule_backlog.trend":                   "one of the trends that Rota knows",
	"schedule_event.from_server":               "the uuid of a server",
	"schedule_event.to_server":                 "the uuid of a server",
	"schedule_event.alert":                     "one of the kinds of conditions that Rota knows",
	"schedule_failed_item.item_hash":           "hexadecimal digits",
	"schedule_trigger.trigger_id":              "a UUID that Rota makes",
	"schedule_trigger.status":                  "one of the states that Rota knows",
	"schedule_trigger.message":                 "an error about other columns of the row",
	"schedule_task_after.rule":                 "one of the rules that Rota knows",
	"schedule_run.root_run_id":                 "a UUID that Rota makes",
	"schedule_run.trigger_name":                "repeats the name of a trigger",
	"schedule_run.time_zone":                   "repeats that of the trigger",
	"schedule_run_queue.server":                "the uuid of a server",
	"schedule_run_dep.upstream_run_id":         "a UUID that Rota makes",
	"schedule_run_dep.rule":                    "one of the rules that Rota knows",
	"schedule_backfill.trigger_name":           "repeats the name of a trigger",
	"schedule_backfill.expression":             "repeats that of the trigger",
	"schedule_backfill.time_zone":              "repeats that of the trigger",
	"schedule_backfill.excluded_days":          "repeats that of the trigger",
	"schedule_backfill.message":                "an error about other columns of the row",
}

// testTexts fills every column of texts that a text from outside reaches with what a database refuses. Either the call
// refuses it in one line, and writes nothing, or the database gets a text that it can hold.
func testTexts(t *testing.T, c *center.Center, url string) {
	w := &writers{t: t, r: newTimes(t, c, "texts"), data: Open(t, url, center.Options{OwnSign: "texts"})}
	all := w.all()
	t.Run("X12 each column of texts is written or has a reason", func(t *testing.T) { coverTexts(t, all) })
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run("X12 "+name, func(t *testing.T) {
			for _, kind := range slices.Sorted(maps.Keys(hostileTexts())) {
				w.tryText(t, kind, all[name])
			}
		})
	}
}

// coverTexts checks that no column of texts is forgotten, and that none is named twice or has gone.
func coverTexts(t *testing.T, all map[string]textWriter) {
	left := maps.Clone(inside)
	written := map[string]bool{}
	for _, w := range all {
		for _, column := range w.columns {
			written[column] = false
		}
	}
	for _, c := range schema.Columns() {
		// The history repeats the rows of servers.
		name := strings.Replace(c.Table, "schedule_server_history", "schedule_server", 1) + "." + c.Name
		if c.Kind != schema.Text || c.Table == "schedule_server_history" && c.Name == "reason" {
			continue
		}
		_, isWritten := written[name]
		_, isInside := inside[name]
		_, everywhere := inside[c.Name]
		if !isWritten && !isInside && !everywhere {
			t.Errorf("%s.%s: no call writes it here, and no reason says why", c.Table, c.Name)
		}
		if isWritten && isInside && c.Table != "schedule_server_history" {
			t.Errorf("%s has a call and a reason", name)
		}
		if isWritten {
			written[name] = true
		}
		delete(left, name)
		delete(left, c.Name)
	}
	for name, there := range written {
		if !there {
			t.Errorf("%s is no column of texts", name)
		}
	}
	for name := range left {
		t.Errorf("%s is no column of texts", name)
	}
}

// tryText makes one call with one text.
func (w *writers) tryText(t *testing.T, kind string, writer textWriter) {
	t.Helper()
	text := hostileTexts()[kind]
	w.columns = writer.columns
	w.ready()
	err := writer.write(text)
	if err != nil {
		checkRefusal(t, kind, err)
		before := w.before
		if w.ready(); !reflect.DeepEqual(before, w.before) {
			t.Errorf("%s: the call was refused (%.100v) and has written: %v, before %v", kind, err, w.before, before)
		}
		return
	}
	for _, column := range writer.columns {
		table, name, _ := strings.Cut(column, ".")
		found := false
		for _, got := range w.r.readColumn("SELECT %s FROM %s", name, table) {
			if !utf8.ValidString(got) || strings.Contains(got, "\x00") {
				t.Errorf("%s: %s has %.100q", kind, column, got)
			}
			found = found || strings.Contains(got, crab)
		}
		if strings.Contains(text, crab) && !found {
			t.Errorf("%s: the call succeeded, and %s does not have the letter %s", kind, column, crab)
		}
	}
}

// checkRefusal checks that an error is one line of a usual length, and does not come from the driver.
func checkRefusal(t *testing.T, kind string, err error) {
	t.Helper()
	text := err.Error()
	if strings.ContainsAny(text, "\n\x00") || !utf8.ValidString(text) || len(text) > 700 {
		t.Errorf("%s: the error is not one line of at most 700 bytes: %d bytes, %.300q", kind, len(text), text)
	}
	for _, driver := range []string{"lib/pq", "go-sql-driver/mysql", "modernc.org/sqlite"} {
		if comesFrom(err, driver) {
			t.Errorf("%s: the driver refuses it: %.300s", kind, text)
		}
	}
}

// comesFrom reports whether an error wraps one of a package.
func comesFrom(err error, pkg string) bool {
	of := reflect.TypeOf(err)
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if strings.Contains(of.PkgPath(), pkg) {
		return true
	}
	switch e := err.(type) { //nolint:errorlint // it unwraps the error itself
	case interface{ Unwrap() error }:
		return e.Unwrap() != nil && comesFrom(e.Unwrap(), pkg)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(err error) bool { return comesFrom(err, pkg) })
	}
	return false
}

// writers are the calls that write texts from outside. Each call may be made again with another text.
type writers struct {
	t    *testing.T
	r    timeSteps
	data *center.Center // of the same environment: it closes the data databases
	made int            // names so far

	columns []string   // of the call that is made
	before  [][]string // the numbers of rows and the length of all texts of the columns, before the call
}

// ready notes what the columns have before the call.
func (w *writers) ready() {
	w.t.Helper()
	w.before = nil
	for _, column := range w.columns {
		table, name, _ := strings.Cut(column, ".")
		w.before = append(w.before, w.r.readColumn("SELECT CONCAT(COUNT(*), ' rows, ', COALESCE(SUM(LENGTH(%s)), 0)) FROM %s", name, table))
	}
}

// another returns a task type that does not exist yet.
func (w *writers) another() *fixture {
	w.made++
	return w.r.sibling(fmt.Sprint(w.made))
}

// sweep returns a task type with an open run, whose queue the server A sweeps.
func (w *writers) sweep() (*fixture, runs.Sweep) {
	r := w.another()
	r.define(center.Settings{Mode: center.ModeRun, Queues: 1})
	r.join("A")
	r.submitAndOpen("k")
	s := r.claimOne("A", "0")
	w.ready()
	return r, s
}

// all returns the calls by their names.
func (w *writers) all() map[string]textWriter {
	all := map[string]textWriter{}
	for _, group := range []map[string]textWriter{w.settings(), w.names(), w.servers(), w.items(), w.triggers(), w.runs(), w.events()} {
		maps.Copy(all, group)
	}
	return all
}

// settings writes each setting that is a text, of a new task type and of one that is there.
func (w *writers) settings() map[string]textWriter {
	all := map[string]textWriter{}
	for _, row := range center.SettingTable() {
		if _, isText := row.Field(new(center.Settings)).(*string); !isText {
			continue
		}
		columns := []string{"schedule_task_type." + row.Column}
		if row.Name == "cron" {
			columns = []string{"schedule_trigger.expression"}
		}
		with := func(text string) center.Settings {
			s := center.Settings{Queues: 2}
			if row.Name == "cron" {
				s.Mode = center.ModeRun
			}
			*row.Field(&s).(*string) = text
			return s
		}
		all["define "+row.Name] = textWriter{columns, func(text string) error {
			r := w.another()
			return second(ops.New(r.c).Tasks().Define(r.Context(), r.task, with(text)))
		}}
		all["set "+row.Name] = textWriter{columns, func(text string) error {
			r := w.another()
			r.define(with(""))
			w.ready()
			d, err := ops.New(r.c).Tasks().CompareGiven(r.Context(), r.task, with(text), []string{row.Name})
			if err != nil {
				return err
			}
			return ops.New(r.c).Tasks().Apply(r.Context(), d, "test")
		}}
	}
	return all
}

// names writes the names of task types, environments, queues and data databases, and what belongs to a queue.
func (w *writers) names() map[string]textWriter {
	c, ctx := w.r.c, w.t.Context()
	operate := func(o verbs.Operation, actor string) error {
		change, err := o.Prepare(ctx, ops.New(c))
		if err != nil {
			return err
		}
		return second(change.Do(ctx, actor))
	}
	return map[string]textWriter{
		"name of a task type": {[]string{"schedule_task_type.task_type"}, func(text string) error {
			return second(ops.New(c).Tasks().Define(ctx, text, center.Settings{Queues: 1}))
		}},
		"name of an upstream": {[]string{"schedule_task_after.upstream"}, func(text string) error {
			up := text + "up"
			_, _ = ops.New(c).Tasks().Define(ctx, up, center.Settings{Queues: 1, Mode: center.ModeRun}) // refuses some
			r := w.another()
			s := center.Settings{Queues: 1, Mode: center.ModeRun, After: []runs.After{{Upstream: up}}}
			return second(ops.New(c).Tasks().Define(ctx, r.task, s))
		}},
		"name of an environment": {[]string{"schedule_task_running.own_sign"}, func(text string) error {
			in, err := c.In(text)
			if err != nil {
				return err
			}
			r := fixtureOf(&taskType{T: w.t, c: in, task: w.another().task})
			r.define(center.Settings{Queues: 1})
			r.join("A")
			return nil
		}},
		"name of a queue": {[]string{"schedule_queue.queue_id"}, func(text string) error {
			return second(ops.New(c).Tasks().Define(ctx, w.another().task, center.Settings{QueueNames: []string{"x", text}}))
		}},
		"name of a queue that is added": {[]string{"schedule_queue.queue_id"}, func(text string) error {
			r := w.another()
			r.define(center.Settings{QueueNames: []string{"x"}})
			w.ready()
			return operate(verbs.AddQueue{TaskType: r.task, Queue: text}, "test")
		}},
		"parameter of a queue": {[]string{"schedule_queue.queue_parameter"}, func(text string) error {
			r := w.another()
			r.define(center.Settings{QueueNames: []string{"x"}})
			w.ready()
			return operate(verbs.AddQueue{TaskType: r.task, Queue: "y", Parameter: text}, "test")
		}},
		"pin of a queue": {[]string{"schedule_queue_setting.labels", "schedule_queue.waits_for"}, func(text string) error {
			r := w.another()
			r.define(center.Settings{Queues: 1})
			r.join("A")
			w.ready()
			if err := operate(verbs.PinQueue{TaskType: r.task, Queue: "0", Labels: "zone=" + text}, "test"); err != nil {
				return err
			}
			r.rebalanceAlways("A")
			return nil
		}},
		"name and address of a data database": {[]string{"schedule_data.name"}, func(text string) error {
			return w.reach(text, "orders.db")
		}},
		"address of a data database": {[]string{"schedule_data.address"}, func(text string) error {
			w.made++
			return w.reach(fmt.Sprint("orders", w.made), text+".db")
		}},
		"name of an operator": {[]string{"schedule_event.actor"}, func(text string) error {
			r := w.another()
			r.define(center.Settings{Queues: 1})
			w.ready()
			return operate(verbs.PauseTask{TaskType: r.task}, text)
		}},
	}
}

// reach makes a data database in a file, and marks it as one of this roster.
func (w *writers) reach(name, file string) error {
	ctx := w.t.Context()
	db := anydb.URL("sqlite:" + filepath.Join(w.t.TempDir(), file))
	if _, err := center.MigrateData(ctx, db); err != nil {
		return errors.New("the operating system has no file of this name")
	}
	d, err := w.data.FenceIn(name, db)
	if err != nil {
		return err
	}
	reached, err := d.Reach(ctx)
	w.r.must(err)
	return w.r.c.Roster().Data().Mark(ctx, reached, name, d.Address())
}

// servers writes what a program says of itself and of its errors.
func (w *writers) servers() map[string]textWriter {
	register := func(change func(*roster.ServerInfo)) error {
		r := w.another()
		r.define(center.Settings{Queues: 1})
		info := roster.ServerInfo{UUID: r.uuid("A"), TaskType: r.task, Host: "host", PID: 1, JudgeDeadInterval: judgeDeadInterval}
		change(&info)
		w.ready()
		err := cmp.Or(ops.CheckLabels(info.Labels), roster.CheckReturn(info.Name, 0)) // as package manager does
		if err == nil {
			_, err = r.c.Roster().Register(r.Context(), info)
		}
		return err
	}
	return map[string]textWriter{
		"name of a process": {[]string{"schedule_server.name"}, func(text string) error {
			return register(func(i *roster.ServerInfo) { i.Name = text })
		}},
		"label of a server": {[]string{"schedule_server.labels"}, func(text string) error {
			return register(func(i *roster.ServerInfo) { i.Labels = map[string]string{"zone": text} })
		}},
		"settings of a program": {[]string{"schedule_server.given_settings"}, func(text string) error {
			s := center.Settings{Queues: 1, TaskParameter: text}
			if err := s.Validate(); err != nil { // as package manager does
				return err
			}
			return register(func(i *roster.ServerInfo) { i.GivenSettings = s.Given() })
		}},
		"error of a server": {[]string{"schedule_server.last_error"}, func(text string) error {
			r := w.another()
			r.define(center.Settings{Queues: 1})
			r.join("A")
			w.ready()
			s := roster.StatisticsOf(r.uuid("A"))
			s.LastError, s.LastErrorAt = text, time.Now()
			return r.c.Roster().WriteStatistics(r.Context(), s)
		}},
	}
}

// items writes what a dealer says of its items, and the cursor of a queue.
func (w *writers) items() map[string]textWriter {
	save := func(change func(*failures.Item)) error {
		w.made++
		i := failures.Item{Key: fmt.Sprint(w.made), QueueID: "0", State: ops.ItemRetry, Attempts: 1}
		change(&i)
		return failures.Of(w.r.c.Roster()).Save(w.t.Context(), w.r.task, []failures.Item{i})
	}
	fail := func(f runs.ItemFailure) error {
		r, s := w.sweep()
		return r.c.Engine().Sweeps.Save(r.Context(), s, runs.Progress{ItemsFailed: 1, Failed: []runs.ItemFailure{f}})
	}
	return map[string]textWriter{
		"key of an item":            {[]string{"schedule_failed_item.item_key"}, func(text string) error { return save(func(i *failures.Item) { i.Key = text }) }},
		"order key of an item":      {[]string{"schedule_failed_item.order_key"}, func(text string) error { return save(func(i *failures.Item) { i.OrderKey = text }) }},
		"error of an item":          {[]string{"schedule_failed_item.last_error"}, func(text string) error { return save(func(i *failures.Item) { i.LastError = text }) }},
		"key of an item in a run":   {[]string{"schedule_run_item.item_key"}, func(text string) error { return fail(runs.ItemFailure{Key: text, Error: "no"}) }},
		"error of an item in a run": {[]string{"schedule_run_item.last_error"}, func(text string) error { return fail(runs.ItemFailure{Key: "k", Error: text}) }},
		"cursor of a queue": {[]string{"schedule_queue.cursor_value"}, func(text string) error {
			r := w.another()
			r.define(center.Settings{Queues: 1})
			r.join("A")
			w.ready()
			b := center.Batch{Server: r.uuid("A"), TaskType: r.task, Queue: center.QueueEpoch{ID: "0", Epoch: r.epoch("0")}, Cursor: &center.CursorMove{To: text}}
			return center.SaveCursor(r.c.Bind(r.Context(), b))
		}},
		"cursor of a queue that a fence saves": {[]string{"schedule_queue.cursor_value"}, func(text string) error {
			r := w.another()
			r.define(center.Settings{Queues: 1})
			r.join("A")
			w.ready()
			b := center.Batch{Server: r.uuid("A"), TaskType: r.task, Queue: center.QueueEpoch{ID: "0", Epoch: r.epoch("0")}, Cursor: &center.CursorMove{To: text}}
			return center.InTx(r.c.Bind(r.Context(), b), r.c.DB(), nothing)
		}},
		"cursor of a sweep": {[]string{"schedule_run_queue.cursor_value"}, func(text string) error {
			r, s := w.sweep()
			return center.SaveCursor(r.sweepBatch(s, "", text))
		}},
		"error of a sweep": {[]string{"schedule_run_queue.last_error", "schedule_run.message"}, func(text string) error {
			r, s := w.sweep()
			err := second(r.c.Engine().Sweeps.Fail(r.Context(), s, runs.Progress{}, text, true))
			r.tick()
			return err
		}},
	}
}

// triggers writes each text of a trigger, and what a backfill repeats of it.
func (w *writers) triggers() map[string]textWriter {
	all := map[string]textWriter{}
	for column, change := range map[string]func(t *runs.Trigger, text string){
		"name":          func(t *runs.Trigger, text string) { t.Name = text },
		"target":        func(t *runs.Trigger, text string) { t.Target = text },
		"kind":          func(t *runs.Trigger, text string) { t.Kind = text },
		"expression":    func(t *runs.Trigger, text string) { t.Expression = text },
		"time_zone":     func(t *runs.Trigger, text string) { t.TimeZone = text },
		"misfire":       func(t *runs.Trigger, text string) { t.Misfire = text },
		"excluded_days": func(t *runs.Trigger, text string) { t.ExcludedDays = text },
		"overlap":       func(t *runs.Trigger, text string) { t.Overlap = text },
		"params":        func(t *runs.Trigger, text string) { t.Params = text },
	} {
		all["trigger: "+column] = textWriter{[]string{"schedule_trigger." + column}, func(text string) error {
			r := w.another()
			r.define(center.Settings{Mode: center.ModeRun, Queues: 1})
			w.ready()
			t := runs.Trigger{Name: r.task, Target: r.task, Kind: runs.TriggerCron, Expression: "0 0 3 * * ?"}
			change(&t, text)
			return second(ops.New(r.c).Triggers().Define(r.Context(), t))
		}}
	}
	backfill := func(params, actor string) error {
		r := w.another()
		r.define(center.Settings{Mode: center.ModeRun, Queues: 1})
		_, last := r.hourly(func(t *runs.Trigger) { t.Params = params })
		return second(r.c.Engine().Backfills.Start(r.Context(), r.hours(last, 2, nil), actor))
	}
	all["params of a backfill"] = textWriter{[]string{"schedule_backfill.params"}, func(text string) error {
		if err := (runs.Trigger{Name: "t", Target: "t", Kind: runs.TriggerCron, Expression: "0 0 3 * * ?", Params: text}).Validate(); err != nil {
			return err
		}
		return backfill(text, "test")
	}}
	all["operator of a backfill"] = textWriter{[]string{"schedule_backfill.actor"}, func(text string) error { return backfill("", text) }}
	return all
}

// runs writes what a submission says, and the name of the operator that acknowledges a failure.
func (w *writers) runs() map[string]textWriter {
	submit := func(change func(*runs.Submission)) error {
		w.made++
		s := runs.Submission{Key: fmt.Sprint(w.made), Params: "p"}
		change(&s)
		_, _, err := w.r.c.Engine().Runs.Submit(w.t.Context(), w.r.task, s)
		return err
	}
	submitTx := func(s runs.Submission) error {
		tx, err := w.r.c.DB().BeginTx(w.t.Context(), nil)
		w.r.must(err)
		if _, _, err := w.r.c.Engine().Runs.SubmitTx(w.t.Context(), tx, w.r.task, s); err != nil {
			w.r.must(tx.Rollback())
			return err
		}
		return tx.Commit()
	}
	return map[string]textWriter{
		"key in a transaction":    {[]string{"schedule_submission.run_key"}, func(text string) error { return submitTx(runs.Submission{Key: text}) }},
		"params in a transaction": {[]string{"schedule_submission.request"}, func(text string) error { return submitTx(runs.Submission{Params: text}) }},
		"key of a run":            {[]string{"schedule_run.run_key"}, func(text string) error { return submit(func(s *runs.Submission) { s.Key = text }) }},
		"params of a run":         {[]string{"schedule_run.params"}, func(text string) error { return submit(func(s *runs.Submission) { s.Params = text }) }},
		"name of a graph":         {[]string{"schedule_run.graph_name"}, func(text string) error { return submit(func(s *runs.Submission) { s.Name = text }) }},
		"trace context of a run":  {[]string{"schedule_run.trace_parent"}, func(text string) error { return submit(func(s *runs.Submission) { s.TraceParent = text }) }},
		"upstream of a run":       {[]string{"schedule_run.run_key"}, func(text string) error { return submit(func(s *runs.Submission) { s.After = []string{text} }) }},
		"operator of a run":       {[]string{"schedule_event.actor"}, func(text string) error { return submit(func(s *runs.Submission) { s.Actor = text }) }},
		"acknowledgement": {[]string{"schedule_run.acked_by"}, func(text string) error {
			r, s := w.sweep()
			r.must(second(r.c.Engine().Sweeps.Fail(r.Context(), s, runs.Progress{}, "no", true)))
			r.tick()
			w.ready()
			return r.c.Engine().Runs.Ack(r.Context(), s.RunID, text)
		}},
	}
}

// events writes alerts.
func (w *writers) events() map[string]textWriter {
	alert := func(c condition.Condition) error {
		c.Kind, c.TaskType = condition.Killer.Name, w.r.task
		return second(w.r.c.Roster().Alert(w.t.Context(), c, time.Hour))
	}
	return map[string]textWriter{
		"text of an alert":    {[]string{"schedule_event.reason"}, func(text string) error { return alert(condition.Condition{Subject: sqldb.Clean(text[:1]), Text: text}) }},
		"subject of an alert": {[]string{"schedule_event.subject"}, func(text string) error { return alert(condition.Condition{Subject: "item " + text, Text: "no"}) }},
	}
}
