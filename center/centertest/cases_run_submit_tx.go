package centertest

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// submitTx submits a run in a transaction.
func (r *fixture) submitTx(tx *sql.Tx, s runs.Submission) (id string, existed bool) {
	r.Helper()
	id, existed, err := r.c.Engine().Runs.SubmitTx(r.Context(), tx, r.task, s)
	r.must(err)
	return id, existed
}

// committed submits a run in a transaction of its own.
func (r *fixture) committed(s runs.Submission) (id string, existed bool) {
	r.Helper()
	tx := Begin(r, r.c)
	id, existed = r.submitTx(tx, s)
	r.must(tx.Commit())
	return id, existed
}

// submissions returns the number of runs that are still to be made.
func (r *fixture) submissions() int64 {
	r.Helper()
	return r.readInt("SELECT COUNT(*) FROM schedule_submission WHERE task_type = '%s'", r.task)
}

// testSubmitTx checks runs that are submitted in transactions of the user.
func testSubmitTx(t *testing.T, c *center.Center) {
	for _, key := range []string{"", "k"} {
		t.Run("R21 a run commits or vanishes with its transaction, key "+key, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			tx := Begin(t, c)
			r.submitTx(tx, runs.Submission{Key: key})
			r.must(tx.Rollback())
			r.tick()
			r.wantRunStates()
			id, existed := r.committed(runs.Submission{Key: key, Params: "p", Priority: 3, MaxAttempts: 2, TraceParent: traceParent, Actor: "anna"})
			if existed || !r.asksForTicks("A") {
				t.Fatalf("existed is %t, and the heartbeat asks for ticks: %t", existed, r.asksForTicks("A"))
			}
			if ticked := r.tick(); ticked.Open != id || r.submissions() != 0 {
				t.Fatalf("run %q is open and %d are to be made, want run %s and none", ticked.Open, r.submissions(), id)
			}
			run := r.run(id)
			if run.Params != "p" || run.Priority != 3 || run.MaxAttempts != 2 || run.TraceParent != traceParent || key != "" && run.Key != key {
				t.Fatalf("the run is %+v", run)
			}
			if got := r.readColumn("SELECT actor FROM schedule_event WHERE task_type = '%s' AND reason LIKE '%% was submitted'", r.task); len(got) != 1 || got[0] != "anna" {
				t.Fatalf("actors of the events %q, want anna", got)
			}
		})
	}
	t.Run("R21 a key is told that has a run, or that a transaction has submitted", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		first := r.submit("run")
		second, _ := r.committed(runs.Submission{Key: "submission"})
		for range 2 {
			for key, want := range map[string]string{"run": first, "submission": second} {
				if id, existed := r.committed(runs.Submission{Key: key}); id != want || !existed {
					t.Fatalf("key %s: run %s, existed %t, want %s, existed", key, id, existed, want)
				}
			}
			r.tick()
		}
		r.wantRunStates("RUNNING", "READY")
	})
	t.Run("R21 a transaction that submits a key twice gets one run", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		tx := Begin(t, c)
		id, _ := r.submitTx(tx, runs.Submission{Key: "k"})
		if again, existed := r.submitTx(tx, runs.Submission{Key: "k"}); again != id || !existed {
			t.Fatalf("run %s, existed %t, want %s, existed", again, existed, id)
		}
		r.must(tx.Commit())
		r.tick()
		r.wantState(id, runs.Running)
	})
	t.Run("R21 a skipped run of the key is reopened", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		id := r.submit("k")
		r.exec("UPDATE schedule_run SET state = 'SKIPPED' WHERE run_id = '%s'", id)
		if again, existed := r.committed(runs.Submission{Key: "k"}); again != id || !existed {
			t.Fatalf("run %s, existed %t, want %s, existed", again, existed, id)
		}
		r.tick()
		r.wantRunStates("RUNNING")
	})
	t.Run("R21 the run waits for others, and has its dependants", func(t *testing.T) {
		g := newGraph(t, c, "a", "b after a", "c")
		tx := Begin(t, c)
		a, _ := g["a"].submitTx(tx, runs.Submission{Key: "k"})
		last, _ := g["c"].submitTx(tx, runs.Submission{After: []string{a}})
		g["a"].must(tx.Commit())
		g["a"].tick()
		g.want(a, "a RUNNING", "b WAITING")
		g["c"].tick()
		g["c"].wantState(last, runs.Waiting)
		g["a"].finishAll("A", "0")
		g["c"].wantState(last, runs.Ready)
		g.want(a, "b READY")
	})
	t.Run("R21 the run waits for one that no tick has made yet", func(t *testing.T) {
		g := newGraph(t, c, "a", "c")
		tx := Begin(t, c)
		a, _ := g["a"].submitTx(tx, runs.Submission{Key: "k", Name: "nightly"})
		last, _ := g["c"].submitTx(tx, runs.Submission{After: []string{a}})
		g["a"].must(tx.Commit())
		for range 2 { // the second one finds the run WAITING
			if ticked := g["c"].tick(); ticked.More {
				t.Error("a tick has more to do while the other run is not made")
			}
			if run := g["c"].wantState(last, runs.Waiting); run.Name != "nightly" {
				t.Errorf("the name of the graph is %q, want that of the upstream", run.Name)
			}
		}
		g["a"].tick()
		g["a"].finishAll("A", "0")
		g["c"].wantState(last, runs.Ready)
	})
	for _, request := range []string{
		`nonsense`, `{"after": ["x"], "priority": "high"}`, `{"priority": 2000000000000000000}`,
	} {
		t.Run("R21 a row that makes no sense makes a run that fails", func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			id, _ := r.committed(runs.Submission{Key: "1"})
			next, _ := r.committed(runs.Submission{Key: "2"})
			r.exec("UPDATE schedule_submission SET request = '%s' WHERE run_id = '%s'", request, id)
			r.tick()
			r.wantState(id, runs.Failed)
			r.wantMessage(id, "its row in schedule_submission is invalid")
			r.wantState(next, runs.Running)
		})
	}
	t.Run("R21 deletion drops what is to be made", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		r.committed(runs.Submission{})
		r.makeSilent("A")
		r.must(ops.New(c).Tasks().Delete(t.Context(), r.task, "test"))
		if n := r.submissions(); n != 0 {
			t.Fatalf("%d runs are still to be made, want 0", n)
		}
	})
	t.Run("R21 what is refused", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		other := newFixture(t, c, center.Settings{Queues: 1}).sibling("continuous")
		other.define(center.Settings{Queues: 1})
		submit := func(task string, s runs.Submission) error {
			tx := Begin(t, c)
			defer tx.Rollback()
			_, _, err := c.Engine().Runs.SubmitTx(t.Context(), tx, task, s)
			return err
		}
		for want, err := range map[error]error{
			center.ErrUnknownTask: submit("nobody", runs.Submission{}),
			runs.ErrNoRuns:        submit(other.task, runs.Submission{}),
			runs.ErrUnknownRun:    submit(r.task, runs.Submission{After: []string{"x"}}),
		} {
			if !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
		}
	})
}

// testSubmitTxWaits checks which transactions wait for one that has submitted a run.
func testSubmitTxWaits(t *testing.T, c *center.Center) {
	if c.Roster().DB.OneWriter {
		t.Skip("all writers wait for a transaction")
	}
	t.Run("R21 a long transaction holds up nothing", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		tx := Begin(t, c)
		id, _ := r.submitTx(tx, runs.Submission{Key: "k"})
		r.tick()
		r.join("B") // a plan
		made := r.submitAndOpen("k")
		r.finishAll("A", "0")
		r.must(tx.Commit())
		r.tick()
		r.wantRunStates("SUCCESS") // the key has its run
		if _, err := ops.New(c).Runs().Get(t.Context(), id); !errors.Is(err, runs.ErrUnknownRun) || id == made {
			t.Fatalf("run %s: error %v, want ErrUnknownRun", id, err)
		}
	})
	for _, commits := range []bool{false, true} {
		t.Run("R21 transactions that submit one key wait for each other", func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			first, later := Begin(t, c), Begin(t, c)
			var before int // the snapshot of later is older than the commit of first
			r.must(later.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM schedule_run").Scan(&before))
			id, _ := r.submitTx(first, runs.Submission{Key: "k"})
			type result struct {
				id      string
				existed bool
				err     error
			}
			done := make(chan result, 1)
			go func() {
				id, existed, err := c.Engine().Runs.SubmitTx(t.Context(), later, r.task, runs.Submission{Key: "k"})
				done <- result{id, existed, err}
			}()
			if commits {
				r.must(first.Commit())
				r.tick() // while the other transaction waits or holds the row
			} else {
				r.must(first.Rollback())
			}
			got := <-done
			r.must(got.err)
			r.must(later.Commit())
			if got.existed != commits || commits != (got.id == id) {
				t.Fatalf("the later transaction got run %s, existed %t, after the first with run %s, which committed: %t", got.id, got.existed, id, commits)
			}
			r.tick()
			r.wantRunStates("RUNNING")
			r.wantState(got.id, runs.Running)
		})
	}
}
