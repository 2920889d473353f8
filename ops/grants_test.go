package ops_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/runs"
)

// grantsTo returns the rights that docs/security.md grants to a role, without GRANT and without the role.
func grantsTo(t *testing.T, role string) (rights []string) {
	t.Helper()
	for _, grant := range pageStatements(t, "GRANT") {
		if right, ok := strings.CutSuffix(grant, " TO "+role); ok {
			rights = append(rights, strings.TrimPrefix(right, "GRANT "))
		}
	}
	return rights
}

// The grants of docs/security.md suffice for every operation of a worker and of an operator.
func TestGrantsSuffice(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			ownerURL := testdb.URL(t, kind)
			owner := centertest.Open(t, ownerURL, center.Options{})
			worker := openAs(t, owner, ownerURL, "app")
			seedRoster(t, worker)
			exerciseRuns(t, worker)
			exerciseQueues(t, worker)
			exerciseItemsAndCursors(t, worker)
			exerciseMembership(t, worker)
			exerciseOwnSignExpiry(t, owner, worker)
			operator := openAs(t, owner, ownerURL, "operator")
			for role, c := range map[string]*center.Center{"app": worker, "operator": operator} {
				if _, err := doctor.Diagnose(t.Context(), ops.New(c), ""); err != nil {
					t.Errorf("diagnose as %s: got %v, want no error", role, err)
				}
			}
			centertest.Exec(t, operator, pageStatements(t, "SELECT")...)
			if err := worker.CheckWrite(t.Context()); err != nil {
				t.Errorf("CheckWrite of a worker: got %v, want no error", err)
			}
			if err := operator.CheckWrite(t.Context()); err == nil {
				t.Error("CheckWrite of an operator: got no error")
			}
		})
	}
}

// openAs opens the roster as a new user that has the rights of a role.
func openAs(t *testing.T, owner *center.Center, ownerURL, role string) *center.Center {
	t.Helper()
	user, url := centertest.AddUser(t, owner, ownerURL, role)
	for _, right := range grantsTo(t, role) {
		centertest.Exec(t, owner, "GRANT "+right+" TO "+user)
	}
	return centertest.Open(t, url, center.Options{Schema: center.SchemaRequire})
}

// exerciseQueues runs what an owner does with its queues: heartbeat, view, release, retake, fence, audit.
func exerciseQueues(t *testing.T, c *center.Center) {
	t.Helper()
	ctx := t.Context()
	_, err := c.Roster().SendHeartbeat(ctx, roster.Heartbeat{Token: "x", Servers: []roster.ServerReport{{UUID: web1, State: ops.StateServing}}})
	must(t, err)
	v, err := c.Roster().Server("settle", web1).View(ctx)
	must(t, err)
	q := v.Queues[1]
	_, err = c.Roster().Server("settle", web1).Release(ctx, []roster.Handover{{QueueID: q.ID, Epoch: q.Epoch, Requester: web2}})
	must(t, err)
	_, err = c.Roster().Server("settle", web1).Retake(ctx, v.Queues[0].ID, v.Queues[0].Epoch)
	must(t, err)
	tx := centertest.Begin(t, c)
	must(t, center.Fence(bindQueue0(t, c, nil), tx))
	must(t, tx.Commit())
	_, err = c.Roster().Planner("settle", web1).Audit(ctx)
	must(t, err)
}

// bindQueue0 returns a context with a batch of web1's queue 0, under the epoch in the table.
func bindQueue0(t *testing.T, c *center.Center, cursor *center.CursorMove) context.Context {
	t.Helper()
	return c.Bind(t.Context(), center.Batch{Server: web1, TaskType: "settle", Cursor: cursor, Queue: queue0(t, c, web1, "settle")})
}

// queue0 returns queue 0 of a task type under the epoch in the table.
func queue0(t *testing.T, c *center.Center, uuid, taskType string) center.QueueEpoch {
	t.Helper()
	v, err := c.Roster().Server(taskType, uuid).View(t.Context())
	must(t, err)
	return center.QueueEpoch{ID: "0", Epoch: v.Queues[0].Epoch}
}

// exerciseItemsAndCursors records, reads and deletes failed items, and saves positions.
func exerciseItemsAndCursors(t *testing.T, c *center.Center) {
	t.Helper()
	ctx := t.Context()
	must(t, failures.Of(c.Roster()).Save(ctx, "settle", []failures.Item{{Key: "17", QueueID: "1", State: ops.ItemRetry, Attempts: 2}}))
	_, err := failures.Of(c.Roster()).Any(ctx, "settle", "1")
	must(t, err)
	_, err = failures.Of(c.Roster()).Started(ctx, "settle", "1")
	must(t, err)
	_, err = failures.Of(c.Roster()).Find(ctx, "settle", []string{"17"})
	must(t, err)
	_, err = ops.New(c).Items().Clean(ctx, time.Hour)
	must(t, err)
	must(t, failures.Of(c.Roster()).Forget(ctx, "settle", []string{"17"}))
	must(t, center.SaveCursor(bindQueue0(t, c, &center.CursorMove{To: "17"})))
	must(t, c.Roster().Server("settle", web1).WindowDone(ctx, queue0(t, c, web1, "settle"), time.Now()))
}

// exerciseMembership drains, rebalances, expires and leaves, and cleans up after it.
func exerciseMembership(t *testing.T, c *center.Center) {
	t.Helper()
	ctx := t.Context()
	must(t, c.Roster().Server("settle", web1).Drain(ctx, roster.Reservation{}))
	options := roster.RebalanceOptions{Watched: time.Hour, MaxHeartbeatAge: time.Minute, Always: true}
	_, err := c.Roster().Planner("settle", web1).Rebalance(ctx, options)
	must(t, err)
	centertest.Exec(t, c, "UPDATE schedule_server SET heartbeat_time = '2020-01-01 00:00:00' WHERE uuid = '"+web2+"'")
	_, err = c.Roster().Planner("settle", web1).Rebalance(ctx, options)
	must(t, err)
	must(t, c.Roster().Server("settle", web1).Leave(ctx, nil, roster.Reservation{}))
	time.Sleep(10 * time.Millisecond) // so that some rows are older than the retention
	deleted, err := ops.New(c).Clean(ctx, time.Millisecond)
	must(t, err)
	if deleted == 0 {
		t.Error("Clean after a worker left: got 0 deleted rows, want some")
	}
}

// exerciseRuns runs what a worker does with runs: define, fire, submit, open, claim, save, fail, finish, rerun, cancel.
func exerciseRuns(t *testing.T, c *center.Center) {
	t.Helper()
	ctx := t.Context()
	upstreams := map[string][]runs.After{"predict": {{Upstream: "extract"}}}
	for _, task := range []string{"extract", "predict"} {
		centertest.Define(t, c, task, center.Settings{Mode: center.ModeRun, Queues: 1, After: upstreams[task]})
		uuid := task + ":1:00000000"
		_, err := c.Roster().Register(ctx, roster.ServerInfo{UUID: uuid, TaskType: task, JudgeDeadInterval: time.Minute})
		must(t, err)
		_, err = c.Roster().Planner(task, uuid).Rebalance(ctx, roster.RebalanceOptions{})
		must(t, err)
	}
	_, err := c.Engine().Triggers.Define(ctx, runs.Trigger{Name: "now", Target: "extract", Kind: runs.TriggerOnce, Expression: "2020-01-01T00:00:00Z"})
	must(t, err)
	s := claimExtract(t, c)
	failed := []runs.ItemFailure{{Key: "17", Error: "no", At: time.Now()}}
	must(t, c.Engine().Sweeps.Save(ctx, s, runs.Progress{Failed: failed}))
	_, err = c.Engine().Sweeps.Fail(ctx, s, runs.Progress{}, "no", true)
	must(t, err)
	must(t, c.Engine().Runs.Rerun(ctx, s.RunID, "test"))
	must(t, c.Engine().Sweeps.Finish(ctx, claimExtract(t, c), runs.Progress{}))
	_, err = c.Engine().Scheduler.Tick(ctx, "predict")
	must(t, err)
	id, _, err := c.Engine().Runs.Submit(ctx, "extract", runs.Submission{Key: "k"})
	must(t, err)
	must(t, c.Engine().Runs.Cancel(ctx, id, "test"))
	_, err = ops.New(c).Triggers().Define(ctx, runs.Trigger{Name: "often", Target: "extract", Kind: runs.TriggerEvery, Expression: "1h", StartAt: time.Now().Add(-30 * time.Hour)})
	must(t, err)
	b, err := c.Engine().Backfills.Start(ctx, runs.BackfillRange{TaskType: "extract", Trigger: "often", From: time.Now().Add(-20 * time.Hour), To: time.Now().Add(-10 * time.Hour)}, "test")
	must(t, err)
	_, err = c.Engine().Scheduler.Tick(ctx, "extract")
	must(t, err)
	must(t, c.Engine().Backfills.Cancel(ctx, b.ID, "test"))
	centertest.Exec(t, c, "UPDATE schedule_backfill SET backfill_id = '0', ended_at = '2020-01-01 00:00:00'", "UPDATE schedule_run SET backfill_id = NULL")
	deleted, err := ops.New(c).Clean(ctx, time.Hour)
	if err != nil || deleted != 1 {
		t.Fatalf("Clean: got %d, %v, want the backfill deleted", deleted, err)
	}
}

// claimExtract ticks and claims the one queue of extract.
func claimExtract(t *testing.T, c *center.Center) runs.Sweep {
	t.Helper()
	_, err := c.Engine().Scheduler.Tick(t.Context(), "extract")
	must(t, err)
	const uuid = "extract:1:00000000"
	sweeps, err := c.Engine().Sweeps.Claim(t.Context(), "extract", uuid, []center.QueueEpoch{queue0(t, c, uuid, "extract")}, 1)
	must(t, err)
	if len(sweeps) != 1 {
		t.Fatalf("Claim: got %d sweeps, want 1", len(sweeps))
	}
	return sweeps[0]
}

// exerciseOwnSignExpiry makes an environment that no server serves, and expires it as a worker of BASE.
func exerciseOwnSignExpiry(t *testing.T, owner, worker *center.Center) {
	t.Helper()
	centertest.Exec(t, owner, "INSERT INTO schedule_task_running (task_type, own_sign, queue_total) VALUES ('settle', 'OLD', 1)",
		"INSERT INTO schedule_queue (task_type, own_sign, queue_id, queue_index, gmt_modified) VALUES ('settle', 'OLD', '0', 0, '2020-01-01 00:00:00')")
	expired, err := ops.New(worker).ExpireOwnSigns(t.Context(), "settle", web1, time.Now(), time.Hour)
	if err != nil || len(expired) != 1 {
		t.Fatalf("ExpireOwnSigns: got %q, %v, want one environment", expired, err)
	}
	_, err = worker.Roster().Alert(t.Context(), condition.Condition{Kind: condition.Standby.Name, TaskType: "settle"}, time.Hour)
	must(t, err)
}
