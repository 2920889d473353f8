package manager_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// settingsOf returns the settings in force of a task type, as text.
func settingsOf(t *testing.T, c *center.Center, taskType string) map[string]string {
	t.Helper()
	s, err := ops.New(c).Tasks().Settings(t.Context(), taskType)
	if err != nil {
		t.Fatal(err)
	}
	return s.Given()
}

// Apply writes what the tasks state, and leaves the rest, and the dry run says the same and writes nothing. A field that
// is zero is stated only if Stating names it.
func TestApply(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		before := manager.Settings{Queues: 8, ExecuteNumber: 10, FetchNumber: 70, CountInOutage: true}
		if _, err := ops.New(c).Tasks().Define(t.Context(), "notify", before); err != nil {
			t.Fatal(err)
		}
		tasks := []manager.Task{
			manager.Serve("notify", &work{}, manager.Settings{Queues: 12, ExecuteNumber: 20}),
			manager.Serve("report", &work{}, manager.Settings{Queues: 2}),
		}
		was := settingsOf(t, c, "notify")
		dry, err := manager.ApplyDryRun(t.Context(), c, tasks...)
		if err != nil {
			t.Fatal(err)
		}
		const table = "notify$BASE:\n SETTING         NOW  THEN\n execute_number  10   20\n queues          8    12\n"
		const stay = "; not stated, and these stay: fetch_number 70, count_in_outage true (rota task set notify fetch_number= " +
			"count_in_outage= sets the defaults)\n"
		wantEnd := "\nnotify$BASE: would be changed" + stay + "report$BASE: would be created with 2 queues"
		if !strings.HasPrefix(dry, table) || !strings.HasSuffix(dry, wantEnd) {
			t.Errorf("the dry run says:\n%s\nwant the beginning:\n%s\nand the end:%s", dry, table, wantEnd)
		}
		if diff := cmp.Diff(was, settingsOf(t, c, "notify")); diff != "" {
			t.Fatalf("the dry run writes:\n%s", diff)
		}
		text, err := manager.Apply(t.Context(), c, tasks...)
		if err != nil {
			t.Fatal(err)
		}
		wantEnd = "\nnotify$BASE: changed" + stay + "report$BASE: created with 2 queues"
		if !strings.HasPrefix(text, table) || !strings.HasSuffix(text, wantEnd) {
			t.Errorf("Apply says:\n%s\nwant the beginning:\n%s\nand the end:%s", text, table, wantEnd)
		}
		now := settingsOf(t, c, "notify")
		if now["execute_number"] != "20" || now["fetch_number"] != "70" || now["count_in_outage"] != "true" || now["queues"] != "12" {
			t.Errorf("the settings in force are %v: want execute_number 20, the others as before, and 12 queues at once, because no worker has any", now)
		}
		if text, err = manager.Apply(t.Context(), c, tasks...); err != nil || text != "notify$BASE: nothing to do"+stay+"report$BASE: nothing to do" {
			t.Errorf("a second time, Apply says %q, %v", text, err)
		}
		stating := tasks[0].Stating("queues", "count_in_outage", "fetch_number")
		if text, err = manager.Apply(t.Context(), c, stating); err != nil {
			t.Fatal(err)
		}
		now = settingsOf(t, c, "notify")
		if now["execute_number"] != "20" || now["fetch_number"] != "500" || now["count_in_outage"] != "" {
			t.Errorf("Apply says:\n%s\nand the settings in force are %v: want the defaults of what Stating names", text, now)
		}
	})
}

// Apply refuses what New refuses, before it asks the database.
func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	task := manager.Serve("notify", &work{}, manager.Settings{Queues: -1})
	for _, apply := range []func(context.Context, *center.Center, ...manager.Task) (string, error){manager.Apply, manager.ApplyDryRun} {
		if _, err := apply(t.Context(), nil, task); err == nil || !strings.Contains(err.Error(), "task notify: queues") {
			t.Errorf("error %v, want one about the queues of notify", err)
		}
	}
}

// A worker whose stated settings are not in force says so in one line, with both values and the command that applies
// them. The doctor says it in the same words. A number of queues that is requested already counts.
func TestStatedSettingsDiffer(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		a := cl.start("a", nil, fast)
		time.Sleep(time.Second)
		other := fast
		other.Queues, other.ExecuteNumber = 12, 10
		cl.start("b", nil, other)
		time.Sleep(time.Second)
		const text = "stated settings are not in force: queues 12 (the row says 6), execute_number 10 (the row says 1)"
		const hint = "to apply them: rota task set settle queues=12 execute_number=10"
		if log := cl.logged.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, text+"; "+hint) {
			t.Errorf("the log has not the one warning %q:\n%s", text+"; "+hint, log)
		}
		if got := cl.differ(); len(got) != 1 || !strings.HasSuffix(got[0].Text, ": "+text) || got[0].Hint != hint {
			t.Errorf("the doctor finds %+v, want one finding %q, hint %q", got, text, hint)
		}
		a.stop()
		<-a.done
		if _, err := manager.Apply(cl.Context(), cl.c, manager.Serve("settle", &work{}, other)); err != nil {
			t.Fatal(err)
		}
		if got := cl.differ(); len(got) != 0 {
			t.Errorf("the doctor finds %+v although all is applied or requested", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := cl.differ(); len(got) != 0 {
			t.Errorf("the doctor finds %+v although all is applied", got)
		}
	})
}

// differ returns what the doctor finds about stated settings.
func (cl *cluster) differ() (found []condition.Condition) {
	cl.Helper()
	findings, err := doctor.Diagnose(cl.Context(), ops.New(cl.c), "settle")
	if err != nil {
		cl.Fatal(err)
	}
	for _, f := range findings {
		if f.Kind == condition.SettingsDiffer.Name {
			found = append(found, f)
		}
	}
	return found
}

// With ApplySettings a worker applies what it states when it starts, and leaves the rest: the last start wins. What a
// running worker could not work by is refused, and the new worker works by the row.
func TestApplySettings(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		start := func(s manager.Settings) *worker {
			w := &work{cl: cl, name: "a", takes: 100 * time.Millisecond}
			m, err := manager.New(cl.c, manager.Config{ApplySettings: true, Logger: cl.logger()}, manager.Serve("settle", w, s))
			if err != nil {
				cl.Fatal(err)
			}
			wk := cl.run(m)
			time.Sleep(2 * time.Second)
			return wk
		}
		inForce := func() manager.Settings {
			s, err := ops.New(cl.c).Tasks().Settings(cl.Context(), "settle")
			if err != nil {
				cl.Fatal(err)
			}
			return s
		}
		first := fast
		first.FetchNumber = 70
		if err := cl.leave(start(first)); err != nil {
			t.Fatal(err)
		}
		second := fast
		second.Queues, second.ExecuteNumber = 9, 10
		running := start(second)
		time.Sleep(10 * time.Second)
		if s := inForce(); s.Queues != 9 || s.ExecuteNumber != 10 || s.FetchNumber != 70 {
			t.Errorf("the settings in force are %v, want 9 queues, execute_number 10 and fetch_number 70", s.Given())
		}
		if log := cl.logged.String(); strings.Contains(log, "not in force") || !strings.Contains(log, "execute_number  1") {
			t.Errorf("the log has not what was applied:\n%s", log)
		}
		refused := second
		refused.ProcessorType, refused.ExecuteNumber = center.ProcessorNotSleep, 20 // the dealer has no keys
		start(refused)
		if s := inForce(); s.ProcessorType != center.ProcessorSleep || s.ExecuteNumber != 10 {
			t.Errorf("the settings in force are %v although a running worker refuses others", s.Given())
		}
		if log := cl.logged.String(); !strings.Contains(log, "settings not applied") || !strings.Contains(log, "processor_type NOTSLEEP (the row says SLEEP)") {
			t.Errorf("the log does not say what was refused:\n%s", log)
		}
		if err := running.Ready(); err != nil {
			t.Errorf("the running worker: %v", err)
		}
	})
}
