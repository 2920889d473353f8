package ops_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

const manyServers, manyQueues = 1_000, 10_000

// bigRoster is a balanced roster of the servers s0000 to s0999 and 10,000 queues. The servers are only rows: no process
// sends their heartbeats.
type bigRoster struct {
	testing.TB
	c *center.Center
}

func newBigRoster(t testing.TB, c *center.Center) *bigRoster {
	t.Helper()
	b := &bigRoster{t, c}
	centertest.Define(t, c, "settle", center.Settings{Queues: manyQueues})
	for i := range manyServers {
		b.exec(`INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time) VALUES ('s%04d', 'settle', 'SERVING', '2026-01-01 00:00:00.000000', '2999-01-01 00:00:00.000000')`, i)
	}
	b.exec(`UPDATE schedule_server SET heartbeat_time = register_time`)
	b.exec(`UPDATE schedule_server SET judge_dead_interval_ms = 300000000000`) // until expire, all servers live
	// Not b.rebalance: on a busy machine, a statement that gives all queues an owner exceeds the time limit of the
	// roster's statements.
	b.exec(`UPDATE schedule_queue SET epoch = epoch + 1, cur_since = '2020-01-01 00:00:00.000000',
		cur_server = CONCAT('s', SUBSTR(CAST(10000 + queue_index %% %d AS CHAR(5)), 2))`, manyServers)
	return b
}

func (b *bigRoster) exec(format string, args ...any) {
	b.Helper()
	centertest.Exec(b, b.c, fmt.Sprintf(format, args...))
}

// join registers the server "new". It sends no heartbeat and lives for a day, however slow the machine is.
func (b *bigRoster) join() {
	b.Helper()
	_, err := b.c.Roster().Register(b.Context(), roster.ServerInfo{UUID: "new", TaskType: "settle", JudgeDeadInterval: 24 * time.Hour})
	must(b, err)
}

// expire makes the last n servers overdue.
func (b *bigRoster) expire(n int) {
	b.Helper()
	b.exec(`UPDATE schedule_server SET judge_dead_interval_ms = 10000 WHERE uuid >= 's%04d'`, manyServers-n)
}

func (b *bigRoster) rebalance() {
	b.Helper()
	_, err := b.c.Roster().Planner("settle", "new").Rebalance(b.Context(), roster.RebalanceOptions{Watched: time.Hour, MaxHeartbeatAge: time.Hour})
	must(b, err)
}

// count returns the number that a query selects.
func (b *bigRoster) count(query string) (n int) {
	b.Helper()
	must(b, b.c.DB().QueryRowContext(b.Context(), query).Scan(&n))
	return n
}

// L5: with 1,000 servers and 10,000 queues, a rebalance reads and writes its plan in a few statements.
func TestRebalanceTakesFewStatements(t *testing.T) {
	t.Parallel()
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	b := newBigRoster(t, centertest.Open(t, url, center.Options{}))
	if n := b.count(`SELECT COUNT(DISTINCT cur_server) FROM schedule_queue`); n != manyServers {
		t.Fatalf("owners at the start: got %d, want %d", n, manyServers)
	}
	b.join()
	sent := testdb.Statements(proxy.Listen(b.rebalance))
	if n := b.count(`SELECT COUNT(*) FROM schedule_queue WHERE req_server = 'new'`); n != manyQueues/(manyServers+1) {
		t.Fatalf("queues that the new worker requests: got %d, want %d", n, manyQueues/(manyServers+1))
	}
	wantStatements(t, "a join", sent, 14)
	b.expire(100)
	sent = testdb.Statements(proxy.Listen(b.rebalance))
	if n := b.count(`SELECT COUNT(*) FROM schedule_server`); n != manyServers+1-100 {
		t.Fatalf("servers after the loss of 100: got %d, want %d", n, manyServers+1-100)
	}
	if n := b.count(`SELECT COUNT(*) FROM schedule_queue WHERE cur_server IS NULL OR cur_server >= 's0900'`); n != 0 {
		t.Fatalf("queues without a live owner: got %d, want 0", n)
	}
	wantStatements(t, "the loss of 100 workers", sent, 25)
}

// wantStatements checks that an operation sent at least one and at most a number of statements.
func wantStatements(t *testing.T, operation string, sent []string, most int) {
	t.Helper()
	t.Logf("%s takes %d statements", operation, len(sent))
	if len(sent) == 0 || len(sent) > most {
		t.Errorf("statements of %s: got %d, want 1 to %d:\n%s", operation, len(sent), most, strings.Join(sent, "\n"))
	}
}

// BenchmarkBigRoster measures, with 1,000 servers and 10,000 queues, a join and the loss of 100 servers, from the lock
// to the commit, and a heartbeat when nothing has changed.
func BenchmarkBigRoster(b *testing.B) {
	for _, kind := range testdb.Kinds(b) {
		r := newBigRoster(b, centertest.Open(b, testdb.URL(b, kind), center.Options{}))
		r.join()
		b.Run("join/"+kind, func(b *testing.B) {
			for b.Loop() {
				r.exec(`UPDATE schedule_queue SET req_server = NULL WHERE req_server IS NOT NULL`)
				r.exec(`UPDATE schedule_task_running SET planned_version = 0`)
				r.rebalance()
			}
		})
		b.Run("heartbeat/"+kind, func(b *testing.B) {
			watched := roster.WatchRange{} // the second heartbeat has the ends, as a worker's has
			for b.Loop() {
				replies, err := r.c.Roster().SendHeartbeat(b.Context(), roster.Heartbeat{Servers: []roster.ServerReport{{
					UUID: "new", TaskType: "settle", State: ops.StateServing, WatchRange: watched,
				}}})
				must(b, err)
				watched = replies["new"].Watch.Range
			}
		})
		b.Run("loss of 100/"+kind, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				r.expire(min(100*(n+1), manyServers-100))
				r.rebalance()
			}
		})
	}
}

// L3: a plan of many changes holds the lock row for a part of them at a time, and the others follow.
func TestPlanOfManyChangesIsWrittenInParts(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		c := centertest.Open(t, url, center.Options{})
		const queues = 12_000
		centertest.Define(t, c, "settle", center.Settings{Queues: queues})
		_, err := c.Roster().Register(t.Context(), roster.ServerInfo{UUID: "a", TaskType: "settle", JudgeDeadInterval: 24 * time.Hour})
		must(t, err)
		for n, want := range []int64{10_000, queues, queues} {
			done, err := c.Roster().Planner("settle", "a").Rebalance(t.Context(), roster.RebalanceOptions{})
			must(t, err)
			tasks, err := ops.New(c).Tasks().List(t.Context(), "settle")
			must(t, err)
			if tasks[0].Owned != want || done.Planned != (n < 2) {
				t.Errorf("plan %d: %d queues with an owner (planned: %t), want %d", n+1, tasks[0].Owned, done.Planned, want)
			}
		}
	})
}
