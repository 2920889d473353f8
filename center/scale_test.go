package center_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/testdb"
)

const manyServers, manyQueues = 1_000, 10_000

// many is a balanced roster of 1,000 servers and 10,000 queues. The first, s0000, beats; the rest are rows.
type many struct {
	testing.TB
	c *center.Center
}

func newMany(t testing.TB, c *center.Center) *many {
	t.Helper()
	m := &many{t, c}
	if _, err := c.Tasks().Define(t.Context(), "settle", center.Settings{Queues: manyQueues}); err != nil {
		t.Fatal(err)
	}
	for i := range manyServers {
		m.exec(`INSERT INTO schedule_server (uuid, task_type, state, register_time, heartbeat_time) VALUES ('s%04d', 'settle', 'SERVING', '2020-01-01 00:00:00.000000', '2999-01-01 00:00:00.000000')`, i)
	}
	m.exec(`UPDATE schedule_server SET heartbeat_time = register_time`)
	m.exec(`UPDATE schedule_server SET judge_dead_interval_ms = 1000000000000`) // for now, all live
	// Not m.assign: on a busy machine, a statement that gives all queues an owner exceeds the time limit of the roster's
	// statements.
	m.exec(`UPDATE schedule_queue SET epoch = epoch + 1, cur_since = '2020-01-01 00:00:00.000000',
		cur_server = CONCAT('s', SUBSTR(CAST(10000 + queue_index %% %d AS CHAR(5)), 2))`, manyServers)
	return m
}

func (m *many) exec(format string, args ...any) {
	m.Helper()
	if _, err := m.c.DB().ExecContext(m.Context(), fmt.Sprintf(format, args...)); err != nil {
		m.Fatal(err)
	}
}

// join adds a server, which sends no heartbeat and lives all the same, however slow the machine is. die lets
// the last n expire.
func (m *many) join() {
	m.Helper()
	_, err := m.c.Roster().Register(m.Context(), roster.ServerInfo{UUID: "new", TaskType: "settle", JudgeDeadInterval: 24 * time.Hour})
	if err != nil {
		m.Fatal(err)
	}
}

func (m *many) die(n int) {
	m.Helper()
	m.exec(`UPDATE schedule_server SET judge_dead_interval_ms = 10000 WHERE uuid >= 's%04d'`, manyServers-n)
}

func (m *many) assign() {
	m.Helper()
	_, err := m.c.Roster().Planner("settle", "new").Rebalance(m.Context(), roster.RebalanceOptions{Watched: time.Hour, MaxHeartbeatAge: time.Hour})
	if err != nil {
		m.Fatal(err)
	}
}

func (m *many) count(query string) (n int) {
	m.Helper()
	if err := m.c.DB().QueryRowContext(context.Background(), query).Scan(&n); err != nil {
		m.Fatal(err)
	}
	return n
}

// L5: with 1,000 servers and 10,000 queues, a plan is read and written in a handful of statements.
func TestManyServersInAHandfulOfStatements(t *testing.T) {
	t.Parallel()
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	m := newMany(t, centertest.Open(t, url, center.Options{}))
	if n := m.count(`SELECT COUNT(DISTINCT cur_server) FROM schedule_queue`); n != manyServers {
		t.Fatalf("%d servers own queues, want %d", n, manyServers)
	}
	m.join()
	sent := testdb.Statements(proxy.Listen(m.assign))
	if n := m.count(`SELECT COUNT(*) FROM schedule_queue WHERE req_server = 'new'`); n != manyQueues/(manyServers+1) {
		t.Fatalf("%d queues are to move, want %d", n, manyQueues/(manyServers+1))
	}
	if len(sent) > 12 {
		t.Errorf("a join takes %d statements:\n%s", len(sent), strings.Join(sent, "\n"))
	}
	m.die(100)
	sent = testdb.Statements(proxy.Listen(m.assign))
	if n := m.count(`SELECT COUNT(*) FROM schedule_server`); n != manyServers+1-100 {
		t.Fatalf("%d servers are left", n)
	}
	if n := m.count(`SELECT COUNT(*) FROM schedule_queue WHERE cur_server IS NULL OR cur_server >= 's0900'`); n != 0 {
		t.Fatalf("%d queues have no owner", n)
	}
	if len(sent) > 20 {
		t.Errorf("the loss of 100 servers takes %d statements:\n%s", len(sent), strings.Join(sent, "\n"))
	}
	t.Logf("the loss of 100 servers takes %d statements", len(sent))
}

// BenchmarkMany is what a join and the loss of a tenth cost with 1,000 servers and 10,000 queues, from the
// lock to the commit, and a heartbeat when nothing has changed.
func BenchmarkMany(b *testing.B) {
	for _, kind := range testdb.Kinds(b) {
		m := newMany(b, centertest.Open(b, testdb.URL(b, kind), center.Options{}))
		m.join()
		b.Run("join/"+kind, func(b *testing.B) {
			for b.Loop() {
				m.exec(`UPDATE schedule_queue SET req_server = NULL WHERE req_server IS NOT NULL`)
				m.exec(`UPDATE schedule_task_running SET planned_version = 0`)
				m.assign()
			}
		})
		b.Run("heartbeat/"+kind, func(b *testing.B) {
			for b.Loop() {
				_, err := m.c.Roster().SendHeartbeat(b.Context(), roster.Heartbeat{Servers: []roster.ServerReport{{UUID: "new", State: center.StateServing}}})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("loss of 100/"+kind, func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				m.die(min(100*(n+1), manyServers-100))
				m.assign()
			}
		})
	}
}
