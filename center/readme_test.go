package center_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/runs"
	"github.com/dutyrota/rota/internal/testdb"
)

var (
	sqlBlock = regexp.MustCompile("(?s)```sql\n(.*?)```")
	comment  = regexp.MustCompile(`(?m)^--.*\n`)
)

// statements returns those of the README that begin with a word.
func statements(t *testing.T, word string) (list []string) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range sqlBlock.FindAllStringSubmatch(string(readme), -1) {
		for statement := range strings.SplitSeq(comment.ReplaceAllString(block[1], ""), ";") {
			if statement = strings.TrimSpace(statement); strings.HasPrefix(statement, word) {
				list = append(list, statement)
			}
		}
	}
	if len(list) == 0 {
		t.Fatalf("the README has no %s", word)
	}
	return list
}

// The operator's questions run as they stand, on each database, and none asks the reader to reckon
// with dates.
func TestReadmeSelects(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		c := centertest.Open(t, url, center.Options{})
		liveOnce(t, c)
		execAll(t, c, statements(t, "UPDATE")...)
		for _, query := range statements(t, "SELECT") {
			n := countRows(t, c, query)
			if asksForTrouble := strings.Contains(query, "UNASSIGNED"); n == 0 != asksForTrouble {
				t.Errorf("%s\n%d rows", query, n)
			}
		}
	})
}

func countRows(t *testing.T, c *center.Center, query string) (n int) {
	t.Helper()
	rows, err := c.DB().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s\n%v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		n++
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s\n%v", query, err)
	}
	return n
}

// liveOnce makes a roster in which there is an answer to each question: web1 owns four queues, and two
// of them are asked for by web2; an item is dead, and a run is under way.
func liveOnce(t *testing.T, c *center.Center) {
	t.Helper()
	if _, err := c.Tasks().Define(t.Context(), "settle", center.Settings{Queues: 4}); err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"web1", "web2"} {
		uuid := host + ":1:00000000"
		if _, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: uuid, TaskType: "settle", Host: host, JudgeDeadInterval: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Roster().Planner("settle", uuid).Rebalance(t.Context(), roster.RebalanceOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	execAll(t, c, "INSERT INTO schedule_run (run_id, task_type, own_sign, run_key, root_run_id, state, scheduled_at) VALUES ('r1', 'settle', 'BASE', 'k', 'r1', 'SUCCESS', '2026-01-01 00:00:00')",
		"INSERT INTO schedule_run_queue (run_id, queue_id, state) VALUES ('r1', '0', 'DONE')")
	dead := center.FailedItem{Key: "17", QueueID: "1", State: center.ItemDead, Attempts: 25}
	if err := c.Items().Save(t.Context(), "settle", []center.FailedItem{dead}); err != nil {
		t.Fatal(err)
	}
}

// What the doctor looks for is what the README grants a worker.
func TestDoctorTriesTheReadmesGrants(t *testing.T) {
	t.Parallel()
	var want []string
	for _, grant := range statements(t, "GRANT") {
		if rights, ok := strings.CutSuffix(grant, " TO app"); ok {
			want = append(want, strings.TrimPrefix(rights, "GRANT "))
		}
	}
	if diff := cmp.Diff(want, center.Needs()); diff != "" || len(want) == 0 {
		t.Errorf("(-README +doctor):\n%s", diff)
	}
}

// The README's grants are enough for all that a worker and an operator do.
func TestReadmeGrants(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			owner := testdb.URL(t, kind)
			c := centertest.Open(t, owner, center.Options{})
			as := func(role string) *center.Center {
				user := fmt.Sprintf("%s_%d", role, rand.Uint32())
				execAll(t, c, createUser(kind, user)...)
				t.Cleanup(func() { dropUser(t, owner, kind, user) })
				for _, grant := range statements(t, "GRANT") {
					if to, ok := strings.CutSuffix(grant, " TO "+role); ok {
						execAll(t, c, to+" TO "+user)
					}
				}
				u, err := url.Parse(owner)
				if err != nil {
					t.Fatal(err)
				}
				u.User = url.UserPassword(user, "secret")
				return centertest.Open(t, u.String(), center.Options{Schema: center.SchemaRequire})
			}
			worker := as("app")
			liveOnce(t, worker)
			runLife(t, worker)
			workerLife(t, worker)
			forgetEnvironment(t, c, worker)
			operator := as("operator")
			for role, c := range map[string]*center.Center{"app": worker, "operator": operator} {
				if _, err := c.Diagnose(t.Context(), ""); err != nil {
					t.Errorf("diagnose as %s: %v", role, err)
				}
			}
			execAll(t, operator, statements(t, "SELECT")...)
			if worker.CheckWrite(t.Context()) != nil || operator.CheckWrite(t.Context()) == nil {
				t.Error("CheckWrite does not tell who may write")
			}
		})
	}
}

// workerLife does all that a worker does beside joining: beat, read, audit, release, retake, fence, drain,
// expire and leave.
func workerLife(t *testing.T, c *center.Center) {
	t.Helper()
	ctx, web1, web2 := t.Context(), "web1:1:00000000", "web2:1:00000000"
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Roster().SendHeartbeat(ctx, roster.Heartbeat{Token: "x", OldTokens: []string{""}, Servers: []roster.ServerReport{{UUID: web1, State: center.StateServing}}})
	must(err)
	v, err := c.Roster().Server("settle", web1).View(ctx)
	must(err)
	q := v.Queues[1]
	_, err = c.Roster().Server("settle", web1).Release(ctx, []roster.Handover{{QueueID: q.ID, Epoch: q.Epoch, Requester: web2}})
	must(err)
	_, err = c.Roster().Server("settle", web1).Retake(ctx, v.Queues[0].ID, v.Queues[0].Epoch)
	must(err)
	batch := c.Bind(ctx, center.Batch{Server: web1, TaskType: "settle", Queues: []center.QueueEpoch{{ID: "0", Epoch: v.Queues[0].Epoch + 1}}})
	tx, err := c.DB().BeginTx(ctx, nil)
	must(err)
	must(center.Fence(batch, tx))
	must(tx.Commit())
	_, err = c.Roster().Planner("settle", web1).Audit(ctx)
	must(err)
	must(c.Items().Save(ctx, "settle", []center.FailedItem{{Key: "17", QueueID: "1", State: center.ItemRetry, Attempts: 2}}))
	_, err = c.Items().Load(ctx, "settle", "1", 0)
	must(err)
	must(c.Items().Forget(ctx, "settle", []string{"17"}))
	cursor := "17"
	must(center.SaveCursor(c.Bind(ctx, center.Batch{Server: web1, TaskType: "settle", Cursor: &cursor, Queues: []center.QueueEpoch{{ID: "0", Epoch: v.Queues[0].Epoch + 1}}})))
	must(c.Roster().Server("settle", web1).WindowDone(ctx, center.QueueEpoch{ID: "0", Epoch: v.Queues[0].Epoch + 1}, time.Now()))
	must(c.Roster().Server("settle", web1).Drain(ctx))
	assign := roster.RebalanceOptions{Watched: time.Hour, MaxHeartbeatAge: time.Minute, Always: true}
	_, err = c.Roster().Planner("settle", web1).Rebalance(ctx, assign)
	must(err)
	execAll(t, c, "UPDATE schedule_server SET heartbeat_time = '2020-01-01 00:00:00' WHERE uuid = '"+web2+"'")
	_, err = c.Roster().Planner("settle", web1).Rebalance(ctx, assign)
	must(err)
	must(c.Roster().Server("settle", web1).Leave(ctx, nil))
	time.Sleep(10 * time.Millisecond) // so that there is something older than the retention
	deleted, err := c.Clean(ctx, time.Millisecond)
	must(err)
	if deleted == 0 {
		t.Error("nothing was cleaned")
	}
}

// runLife does all that a worker does about runs: define, fire, submit, open, claim, save, fail, finish, rerun.
func runLife(t *testing.T, c *center.Center) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, task := range []string{"extract", "predict"} {
		_, err := c.Tasks().Define(ctx, task, center.Settings{Mode: center.ModeRun, Queues: 1})
		must(err)
		uuid := task + ":1:00000000"
		_, err = c.Roster().Register(ctx, roster.ServerInfo{UUID: uuid, TaskType: task, JudgeDeadInterval: time.Minute})
		must(err)
		_, err = c.Roster().Planner(task, uuid).Rebalance(ctx, roster.RebalanceOptions{})
		must(err)
	}
	must(c.Engine().Dependencies.Define(ctx, "predict", center.After{Upstream: "extract"}))
	_, err := c.Engine().Triggers.Define(ctx, center.Trigger{Name: "now", Target: "extract", Kind: center.TriggerOnce, Expression: "2020-01-01T00:00:00Z"})
	must(err)
	sweep := func() runs.Sweep {
		t.Helper()
		_, err := c.Engine().Scheduler.Tick(ctx, "extract")
		must(err)
		v, err := c.Roster().Server("extract", "extract:1:00000000").View(ctx)
		must(err)
		sweeps, err := c.Engine().Sweeps.Claim(ctx, "extract", "extract:1:00000000", []center.QueueEpoch{{ID: "0", Epoch: v.Queues[0].Epoch}}, 1)
		must(err)
		if len(sweeps) != 1 {
			t.Fatal("nothing to claim")
		}
		return sweeps[0]
	}
	s := sweep()
	must(c.Engine().Sweeps.Save(ctx, s, runs.Progress{Cursor: &s.QueueID}))
	_, err = c.Engine().Sweeps.Fail(ctx, s, runs.Progress{}, "no", true)
	must(err)
	must(c.Engine().Runs.Rerun(ctx, s.RunID, "test"))
	must(c.Engine().Sweeps.Finish(ctx, sweep(), runs.Progress{}))
	_, err = c.Engine().Scheduler.Tick(ctx, "predict")
	must(err)
	id, _, err := c.Engine().Runs.Submit(ctx, "extract", "k", "")
	must(err)
	must(c.Engine().Runs.Cancel(ctx, id, "test"))
}

// forgetEnvironment makes an environment that nobody has served for long, and expires it as a worker of BASE.
func forgetEnvironment(t *testing.T, owner, worker *center.Center) {
	t.Helper()
	execAll(t, owner, "INSERT INTO schedule_task_running (task_type, own_sign, queue_total) VALUES ('settle', 'OLD', 1)",
		"INSERT INTO schedule_queue (task_type, own_sign, queue_id, queue_index, gmt_modified) VALUES ('settle', 'OLD', '0', 0, '2020-01-01 00:00:00')")
	expired, err := worker.ExpireOwnSigns(t.Context(), "settle", "web1:1:00000000", time.Now(), time.Hour)
	if err != nil || len(expired) != 1 {
		t.Fatal(expired, err)
	}
	if _, err := worker.Roster().Alert(t.Context(), "settle", center.Alert{Kind: center.AlertStandby}, time.Hour); err != nil {
		t.Fatal(err)
	}
}

func execAll(t *testing.T, c *center.Center, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := c.DB().ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s\n%v", s, err)
		}
	}
}

func createUser(kind, user string) []string {
	if kind == testdb.Postgres {
		return []string{"CREATE ROLE " + user + " LOGIN PASSWORD 'secret'"}
	}
	return []string{"CREATE USER " + user + " IDENTIFIED BY 'secret'"}
}

// dropUser comes last: users belong to the server, which other tests share.
func dropUser(t *testing.T, owner, kind, user string) {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(owner), center.Options{})
	if err != nil {
		return // the database is gone, and in PostgreSQL what the role owned with it
	}
	defer c.Close()
	if kind == testdb.Postgres {
		execAll(t, c, "DROP OWNED BY "+user, "DROP ROLE "+user)
		return
	}
	execAll(t, c, "DROP USER "+user)
}
