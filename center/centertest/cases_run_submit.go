package centertest

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// ask submits a run of the task type.
func (r runSteps) ask(s runs.Submission) string {
	r.Helper()
	id, _, err := ops.New(r.c).Runs().Submit(r.Context(), r.task, s)
	r.must(err)
	return id
}

// testSubmission checks what a submission may say about its run.
func testSubmission(t *testing.T, c *center.Center) {
	t.Run("R6 the submitted run of the highest priority is opened first", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.ask(runs.Submission{Key: "low"})
		high := r.ask(runs.Submission{Key: "high", Priority: 5})
		if open := r.tick().Open; open != high {
			t.Fatalf("run %s is open, want %s", open, high)
		}
	})
	t.Run("R6 a run is not opened before its time", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		later := r.ask(runs.Submission{Key: "later", Priority: 5, NotBefore: r.now().Add(time.Hour)})
		if open := r.tick().Open; open != "" {
			t.Fatalf("run %s is open, want none", open)
		}
		now := r.submitAndOpen("now") // a run of a lower priority need not wait for it
		r.finishAll("A", "0")
		r.wantState(now, runs.Success)
		blocker, err := ops.FindBlocker(t.Context(), ops.New(c), r.record(later))
		if err != nil || !strings.HasPrefix(blocker, "it does not begin before ") {
			t.Fatalf("the run waits for %q, want its time: %v", blocker, err)
		}
		r.exec("UPDATE schedule_run SET not_before = '%s' WHERE run_id = '%s'", r.now().Add(-time.Second).UTC().Format(timeLayout), later)
		if open := r.tick().Open; open != later {
			t.Fatalf("run %q is open, want %s", open, later)
		}
	})
	t.Run("the last errors of servers are told for a run that none works on", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submit("k")
		blocker := func() string {
			text, err := ops.FindBlocker(t.Context(), ops.New(c), r.record(id))
			r.must(err)
			return text
		}
		if got := blocker(); got != "" {
			t.Fatalf("a run that can be opened waits for %q", got)
		}
		r.must(c.Roster().WriteStatistics(t.Context(), roster.Statistics{UUID: sqldb.Key(r.uuid("A")), LastError: "settings rejected"}))
		want := "no worker works on it; the last errors are of " + ops.ServerName(r.uuid("A")) + ": settings rejected"
		if got := blocker(); got != want {
			t.Fatalf("the run waits for %q, want %q", got, want)
		}
		r.tick()
		r.claim("A", "0")
		if got := blocker(); got != "" {
			t.Fatalf("a run that is swept waits for %q", got)
		}
	})
	t.Run("R6 a run that waits for its time asks for a tick at that time", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		begin := r.now().Add(time.Hour).Truncate(time.Second)
		later := r.ask(runs.Submission{Key: "later", NotBefore: begin.Add(time.Hour)})
		r.ask(runs.Submission{Key: "soon", NotBefore: begin})
		for _, at := range []time.Time{r.runReply("A").Runs.NextBegin, r.tick().NextBegin} {
			if !at.Equal(begin) {
				t.Fatalf("the next run may begin at %s, want %s", at, begin)
			}
		}
		if r.asksForTicks("A") {
			t.Fatal("runs that only wait for their time ask for a tick each second")
		}
		for what, change := range map[string]string{
			"cancelled": "cancel_requested = TRUE", "due": "not_before = NULL", "waiting for another run": "state = 'WAITING'",
		} {
			r.exec("UPDATE schedule_run SET "+change+" WHERE run_id = '%s'", later)
			if !r.asksForTicks("A") {
				t.Fatalf("a run that is %s asks for no tick", what)
			}
			r.exec("UPDATE schedule_run SET cancel_requested = FALSE, state = 'READY', not_before = '%s' WHERE run_id = '%s'", begin.UTC().Format(timeLayout), later)
		}
	})
	t.Run("R4 a run that does not begin yet skips no slot", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(nil)
		r.ask(runs.Submission{Key: "later", NotBefore: r.now().Add(time.Hour)})
		r.downSince(hour)
		if open := r.tick().Open; open == "" || r.run(open).Trigger != r.task {
			t.Fatalf("run %q is open, want that of the slot", open)
		}
	})
	t.Run("R9 R13 a run ends at its own deadline", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		end := r.now().Add(time.Hour).Truncate(time.Second)
		id := r.ask(runs.Submission{Key: "k", EndBefore: end})
		if at := r.run(id).DeadlineAt; !at.Equal(end) {
			t.Fatalf("the deadline before the opening is %s, want %s", at, end)
		}
		r.tick()
		if run := r.wantState(id, runs.Running); !run.DeadlineAt.Equal(end) {
			t.Fatalf("the deadline is %s, want %s", run.DeadlineAt, end)
		}
		past := r.now().Add(-time.Second).UTC().Format(timeLayout)
		r.exec("UPDATE schedule_run SET deadline_at = '%[1]s', end_before = '%[1]s' WHERE run_id = '%[2]s'", past, id)
		r.tick()
		r.wantState(id, runs.Failed)
		r.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
		r.tick()
		if run := r.wantState(id, runs.Running); !run.EndBefore.IsZero() || run.DeadlineAt.Before(end) {
			t.Fatalf("the rerun is %+v, want run_timeout as its deadline", run)
		}
	})
	t.Run("R13 a run that did not start by its own deadline says so", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.submitAndOpen("busy")
		id := r.ask(runs.Submission{Key: "k", EndBefore: r.now().Add(time.Hour)})
		past := r.now().Add(-time.Second).UTC().Format(timeLayout)
		r.exec("UPDATE schedule_run SET deadline_at = '%[1]s', end_before = '%[1]s' WHERE run_id = '%[2]s'", past, id)
		r.tick()
		if run := r.wantState(id, runs.Failed); run.Message != "it did not start by the time at which it must have ended" {
			t.Fatalf("the message is %q, and run_start_timeout is not set", run.Message)
		}
	})
	t.Run("R13 the wait for the opening counts from not_before on", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.exec("UPDATE schedule_task_type SET run_start_timeout_ms = 60000 WHERE task_type = '%s'", r.task)
		begin := r.now().Add(time.Hour).Truncate(time.Second)
		if at := r.run(r.ask(runs.Submission{NotBefore: begin})).DeadlineAt; !at.Equal(begin.Add(time.Minute)) {
			t.Fatalf("the deadline is %s, want a minute after %s", at, begin)
		}
	})
	t.Run("R11 a run has attempts of its own, and its dependants have none", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a")
		id := g["a"].ask(runs.Submission{Key: "k", MaxAttempts: 1, Priority: 3, NotBefore: g["a"].now()})
		if run := g["b"].run(g.of("b", id)); run.MaxAttempts != 0 || !run.NotBefore.IsZero() || run.Priority != 3 {
			t.Fatalf("the run of the dependant is %+v, want the priority and neither attempts nor a time", run)
		}
		g["a"].tick()
		failed, err := c.Engine().Sweeps.Fail(t.Context(), g["a"].claimOne("A", "0"), runs.Progress{}, "no", false)
		if err != nil || !failed {
			t.Fatalf("the queue has failed for good: %t, want true after one attempt: %v", failed, err)
		}
	})
	t.Run("errors of a submission name the field and the rule", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		submit := func(s runs.Submission) error {
			_, _, err := ops.New(c).Runs().Submit(t.Context(), r.task, s)
			return err
		}
		wantErrors(t, map[string]error{
			"read run : unknown run":                     second(ops.New(c).Runs().Get(t.Context(), "")),
			"read the newest run of $BASE: unknown task": second(ops.New(c).Runs().Latest(t.Context(), "")),
			"priority (-2000000000000000000) must be between -1000000000000000000 and 1000000000000000000": submit(runs.Submission{Priority: -2_000_000_000_000_000_000}),
			"not_before (9999-01-01T00:00:00Z) must be in the years 1000 to 9899":                          submit(runs.Submission{NotBefore: farFuture}),
			"end_before (9999-01-01T00:00:00Z) must be in the years 1000 to 9899":                          submit(runs.Submission{EndBefore: farFuture}),
			"max_attempts (-1) must be from 0 to 1000":                                                     submit(runs.Submission{MaxAttempts: -1}),
			"end_before (2030-01-01T00:00:00Z) must be after not_before (2030-01-01T00:00:00Z)":            submit(runs.Submission{NotBefore: at, EndBefore: at}),
		})
	})
}
