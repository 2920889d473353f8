package ops_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/runs"
)

// read is what an operator's command reads, and the most statements that it may take, however many servers, queues and
// runs there are.
type read struct {
	most int
	do   func(ctx context.Context) error
}

// reads returns the reads of all commands by name. Most statements of doctor try a right.
func reads(c *center.Center) map[string]read {
	return map[string]read{
		"tasks": {6, func(ctx context.Context) error { _, err := ops.New(c).Tasks().List(ctx, ""); return err }},
		"queues": {3, func(ctx context.Context) error {
			_, err := ops.New(c).Queues().List(ctx, ops.QueueFilter{})
			return err
		}},
		"servers": {1, func(ctx context.Context) error {
			_, err := ops.New(c).Servers().List(ctx, ops.ServerFilter{})
			return err
		}},
		"events": {1, func(ctx context.Context) error {
			_, err := ops.New(c).Events().List(ctx, ops.EventFilter{}, 100)
			return err
		}},
		"items": {1, func(ctx context.Context) error {
			_, err := ops.New(c).Items().List(ctx, ops.ItemFilter{}, 100)
			return err
		}},
		"view": {1, func(ctx context.Context) error {
			return c.DB().QueryRowContext(ctx, `SELECT COUNT(*) FROM schedule_assignment WHERE task_type = 'settle' AND own_sign = 'BASE' AND status <> 'x'`).Scan(new(int))
		}},
		"gone": {1, func(ctx context.Context) error {
			_, err := ops.New(c).Servers().Gone(ctx, ops.ServerFilter{}, 100)
			return err
		}},
		"runs": {1, func(ctx context.Context) error {
			return wantRuns(manyRuns)(c.Engine().Runs.List(ctx, runs.Filter{}, manyRuns))
		}},
		"failed": {1, func(ctx context.Context) error {
			return wantRuns(100)(c.Engine().Runs.List(ctx, runs.Filter{TaskType: "sweep", State: runs.Failed}, 100))
		}},
		"latest": {1, func(ctx context.Context) error { _, err := c.Engine().Runs.Latest(ctx, "sweep"); return err }},
		"run":    {1, func(ctx context.Context) error { _, err := c.Engine().Runs.Queues(ctx, runID(manyRuns)); return err }},
		"graph": {3, func(ctx context.Context) error {
			_, _, err := c.Engine().Runs.Graph(ctx, runID(manyRuns))
			return err
		}},
		"triggers": {1, func(ctx context.Context) error {
			_, err := c.Engine().Triggers.List(ctx, runs.TriggerFilter{})
			return err
		}},
		"plan": {9, func(ctx context.Context) error {
			p, err := ops.New(c).Queues().Plan(ctx, "settle", ops.Scenario{Add: 1})
			if want := manyQueues / (manyServers + 1); err == nil && p.Moved() != want {
				err = fmt.Errorf("moves of the plan: got %d, want %d", p.Moved(), want)
			}
			return err
		}},
		"doctor": {107, func(ctx context.Context) error { _, err := doctor.Diagnose(ctx, ops.New(c), ""); return err }},
	}
}

const manyRuns = 10_000

func runID(i int) string { return fmt.Sprintf("run-%05d", i) }

// wantRuns returns a function that checks how many runs a read returns.
func wantRuns(want int) func([]runs.Record, error) error {
	return func(list []runs.Record, err error) error {
		if err == nil && len(list) != want {
			err = fmt.Errorf("runs: got %d, want %d", len(list), want)
		}
		return err
	}
}

// addRuns adds 10,000 runs of two queues. Every tenth has FAILED. The last is RUNNING and has 10,000 queues.
func (b *bigRoster) addRuns() {
	b.Helper()
	var list, queues []string
	for i := 1; i <= manyRuns; i++ {
		state, n := runs.Success, 2
		if i%10 == 0 {
			state = runs.Failed
		}
		if i == manyRuns {
			state, n = runs.Running, manyQueues
		}
		list = append(list, fmt.Sprintf("('%[1]s', 'sweep', '%[1]s', '%[1]s', '2026-11-21 00:00:00.000000', '%[2]s')", runID(i), state))
		for q := range n {
			queues = append(queues, fmt.Sprintf("('%s', '%d', 'DONE', 1)", runID(i), q))
		}
	}
	for part := range slices.Chunk(list, 500) {
		b.exec("INSERT INTO schedule_run (run_id, task_type, run_key, root_run_id, scheduled_at, state) VALUES %s", strings.Join(part, ", "))
	}
	for part := range slices.Chunk(queues, 500) {
		b.exec("INSERT INTO schedule_run_queue (run_id, queue_id, state, items_done) VALUES %s", strings.Join(part, ", "))
	}
}

// With 1,000 servers, 10,000 queues and 10,000 runs, each read takes one or a few statements.
func TestReadsTakeFewStatements(t *testing.T) {
	t.Parallel()
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	b := newBigRoster(t, centertest.Open(t, url, center.Options{}))
	b.addRuns()
	for name, read := range reads(b.c) {
		sent := testdb.Statements(proxy.Listen(func() {
			if err := read.do(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}))
		wantStatements(t, name, sent, read.most)
	}
}

// Without statistics, all servers seem to have the task type of the query: PostgreSQL must look them up by their key,
// not by their task type.
func TestAssignmentViewWithoutStatistics(t *testing.T) {
	t.Parallel()
	b := newBigRoster(t, centertest.Open(t, testdb.URL(t, testdb.Postgres), center.Options{}))
	rows, err := b.c.DB().QueryContext(t.Context(), `EXPLAIN SELECT * FROM schedule_assignment WHERE task_type = 'settle' AND own_sign = 'BASE'`)
	must(t, err)
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		must(t, rows.Scan(&line))
		lines = append(lines, line)
	}
	must(t, rows.Err())
	plan := strings.Join(lines, "\n")
	if !strings.Contains(plan, "schedule_server") || strings.Contains(plan, "idx_schedule_server_task") {
		t.Errorf("plan of schedule_assignment: got\n%s\nwant schedule_server without idx_schedule_server_task", plan)
	}
}

// Events.List reads backwards until it has enough rows: no filter makes SQLite sort the events of a week.
func TestEventsAreReadThroughAnIndex(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	for index, f := range map[string]ops.EventFilter{
		"idx_schedule_event_kind":  {Kind: ops.EventForced, TaskType: "settle"},
		"idx_schedule_event_queue": {Kind: ops.EventForced, TaskType: "settle", QueueID: "3"},
		"SCAN schedule_event":      {TaskType: "settle", Server: "a", Since: time.Hour}, // by event_id, up to the limit
	} {
		plan, err := ops.New(c).ExplainEvents(t.Context(), f)
		must(t, err)
		inner, _, _ := strings.Cut(plan, "SCAN x")
		if !strings.Contains(inner, index) || strings.Contains(inner, "B-TREE") {
			t.Errorf("plan of Events.List(%+v): got\n%s\nwant %s and no sort", f, plan, index)
		}
	}
}

// BenchmarkReads measures each read with 1,000 servers, 10,000 queues and 10,000 runs.
func BenchmarkReads(b *testing.B) {
	for _, kind := range testdb.Kinds(b) {
		r := newBigRoster(b, centertest.Open(b, testdb.URL(b, kind), center.Options{}))
		r.addRuns()
		for name, read := range reads(r.c) {
			b.Run(name+"/"+kind, func(b *testing.B) {
				for b.Loop() {
					must(b, read.do(b.Context()))
				}
			})
		}
	}
}
