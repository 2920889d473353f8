package center_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// question is asked in so many statements at the most.
type question struct {
	most int
	ask  func(ctx context.Context) error
}

// questions are what an operator's commands ask, and the most statements that each may take, however many
// servers and queues there are. Those of Diagnose are mostly the rights that it tries.
func questions(c *center.Center) map[string]question {
	return map[string]question{
		"tasks": {1, func(ctx context.Context) error { _, err := c.Tasks().List(ctx, ""); return err }},
		"queues": {2, func(ctx context.Context) error {
			_, err := c.Queues().List(ctx, center.QueueFilter{})
			return err
		}},
		"servers": {1, func(ctx context.Context) error {
			_, err := c.Servers().List(ctx, center.ServerFilter{})
			return err
		}},
		"events": {1, func(ctx context.Context) error {
			_, err := c.Events().List(ctx, center.EventFilter{}, 100)
			return err
		}},
		"items": {1, func(ctx context.Context) error {
			_, err := c.Items().List(ctx, center.ItemFilter{}, 100)
			return err
		}},
		"view": {1, func(ctx context.Context) error {
			return c.DB().QueryRowContext(ctx, `SELECT COUNT(*) FROM schedule_assignment WHERE task_type = 'settle' AND own_sign = 'BASE' AND status <> 'x'`).Scan(new(int))
		}},
		"gone": {1, func(ctx context.Context) error {
			_, err := c.Servers().Gone(ctx, center.ServerFilter{}, 100)
			return err
		}},
		"runs": {1, func(ctx context.Context) error {
			return howMany(manyRuns)(c.Engine().Runs.List(ctx, center.RunFilter{}, manyRuns))
		}},
		"failed": {1, func(ctx context.Context) error {
			return howMany(100)(c.Engine().Runs.List(ctx, center.RunFilter{TaskType: "sweep", State: center.RunFailed}, 100))
		}},
		"latest": {1, func(ctx context.Context) error { _, err := c.Engine().Runs.Latest(ctx, "sweep"); return err }},
		"run": {1, func(ctx context.Context) error {
			_, err := c.Engine().Runs.Queues(ctx, runOfMany(manyRuns))
			return err
		}},
		"graph": {3, func(ctx context.Context) error {
			_, _, err := c.Engine().Runs.Graph(ctx, runOfMany(manyRuns))
			return err
		}},
		"triggers": {1, func(ctx context.Context) error {
			_, err := c.Engine().Triggers.List(ctx, center.TriggerFilter{})
			return err
		}},
		"plan": {6, func(ctx context.Context) error {
			p, err := c.Queues().Plan(ctx, "settle", center.Scenario{Add: 1})
			if err == nil && p.Moved() != manyQueues/(manyServers+1) {
				err = errors.New("it is not the minimum")
			}
			return err
		}},
		"doctor": {60, func(ctx context.Context) error { _, err := c.Diagnose(ctx, ""); return err }},
	}
}

const manyRuns = 10_000

func runOfMany(i int) string { return fmt.Sprintf("run-%05d", i) }

func howMany(want int) func([]center.RunRecord, error) error {
	return func(list []center.RunRecord, err error) error {
		if err == nil && len(list) != want {
			err = fmt.Errorf("%d runs, want %d", len(list), want)
		}
		return err
	}
}

// addRuns adds 10,000 runs of two queues, every tenth FAILED, but for the last, which is RUNNING and has 10,000.
func (m *many) addRuns() {
	m.Helper()
	var runs, queues []string
	for i := 1; i <= manyRuns; i++ {
		state, n := center.RunSuccess, 2
		if i%10 == 0 {
			state = center.RunFailed
		}
		if i == manyRuns {
			state, n = center.RunRunning, manyQueues
		}
		runs = append(runs, fmt.Sprintf("('%[1]s', 'sweep', '%[1]s', '%[1]s', '2026-11-21 00:00:00.000000', '%[2]s')", runOfMany(i), state))
		for q := range n {
			queues = append(queues, fmt.Sprintf("('%s', '%d', 'DONE', 1)", runOfMany(i), q))
		}
	}
	for part := range slices.Chunk(runs, 500) {
		m.exec("INSERT INTO schedule_run (run_id, task_type, run_key, root_run_id, scheduled_at, state) VALUES %s", strings.Join(part, ", "))
	}
	for part := range slices.Chunk(queues, 500) {
		m.exec("INSERT INTO schedule_run_queue (run_id, queue_id, state, items_done) VALUES %s", strings.Join(part, ", "))
	}
}

// With 1,000 servers and 10,000 queues, and 10,000 runs, every question is a statement or two.
func TestQuestionsAreFewStatements(t *testing.T) {
	t.Parallel()
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	m := newMany(t, centertest.Open(t, url, center.Options{}))
	m.addRuns()
	for name, q := range questions(m.c) {
		sent := testdb.Statements(proxy.Listen(func() {
			if err := q.ask(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}))
		if len(sent) == 0 || len(sent) > q.most {
			t.Errorf("%s takes %d statements, at most %d are allowed:\n%s", name, len(sent), q.most, strings.Join(sent, "\n"))
		}
	}
}

// A database that has not been analyzed looks servers up by their key, not by their task type, of which all are.
func TestAssignmentBeforeTheFirstAnalyze(t *testing.T) {
	t.Parallel()
	m := newMany(t, centertest.Open(t, testdb.URL(t, testdb.Postgres), center.Options{}))
	rows, err := m.c.DB().QueryContext(t.Context(), `EXPLAIN SELECT * FROM schedule_assignment WHERE task_type = 'settle' AND own_sign = 'BASE'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil || !strings.Contains(plan.String(), "schedule_server") || strings.Contains(plan.String(), "idx_schedule_server_task") {
		t.Errorf("%v\n%s", err, plan.String())
	}
}

// Lists of events end with the last of them, whatever lies before: no filter makes SQLite sort a week's events.
func TestListsOfEventsSortNothing(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	for index, f := range map[string]center.EventFilter{
		"idx_schedule_event_kind":  {Kind: center.EventForced, TaskType: "settle"},
		"idx_schedule_event_queue": {Kind: center.EventForced, TaskType: "settle", QueueID: "3"},
		"SCAN schedule_event":      {TaskType: "settle", Server: "a", Since: time.Hour}, // in the order of the events, up to the limit
	} {
		plan, err := c.PlanOfEvents(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		inner, _, _ := strings.Cut(plan, "SCAN x")
		if !strings.Contains(inner, index) || strings.Contains(inner, "B-TREE") {
			t.Errorf("%+v, want %s:\n%s", f, index, plan)
		}
	}
}

// BenchmarkQuestions is what each question costs with 1,000 servers and 10,000 queues, and 10,000 runs.
func BenchmarkQuestions(b *testing.B) {
	for _, kind := range testdb.Kinds(b) {
		m := newMany(b, centertest.Open(b, testdb.URL(b, kind), center.Options{}))
		m.addRuns()
		for name, q := range questions(m.c) {
			b.Run(name+"/"+kind, func(b *testing.B) {
				for b.Loop() {
					if err := q.ask(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
