//go:build linux

package faults

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/logtest"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// clockStep is how far the database's clock steps ahead: further than any retention.
const clockStep = 210 * 24 * time.Hour

// S17: the clock of the database steps ahead and back under workers with items that fail, pins, moves by load, a
// reservation, and runs that a trigger starts. No worker loses its lease. Work goes on after either step, the trigger
// fires, and no time that was written while the clock was ahead holds anything up.
func TestClockSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute on each server")
	}
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL, testdb.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newClockStage(t, testdb.OwnClock(t, kind))
			s.serve("web-0", nil)
			leaving := s.serve("web-1", map[string]string{"zone": "b"})
			s.must(s.c.Roster().Operator("test").PinQueue(t.Context(), "items", "0", "zone=b"))
			s.until("an item is dead and one waits", `SELECT COUNT(DISTINCT state) FROM schedule_failed_item`, 2)
			s.goesOn("before the steps", 0, 1, 2, 3)
			s.until("the pinned queue has its owner", `SELECT COUNT(*) FROM schedule_queue q JOIN schedule_server s
				ON s.uuid = q.cur_server WHERE q.task_type = 'items' AND q.queue_id = '0' AND s.name = 'web-1'`, 1)

			s.must(s.server.SetClock(clockStep))
			s.goesOn("while the clock is ahead", 0, 1, 2, 3)
			s.until("a run was made by the clock that is ahead", s.aheadIn("schedule_run", "created_at"), 1)
			s.until("an item failed by the clock that is ahead", s.aheadIn("schedule_failed_item", "next_attempt_at"), 1)
			s.until("a backlog was measured by the clock that is ahead", s.aheadIn("schedule_backlog", "measured_at"), 1)
			leaving()
			s.until("queues are reserved by the clock that is ahead", s.aheadIn("schedule_queue", "reserved_until"), 1)

			s.must(s.server.SetClock(0))
			s.until("all queues but the pinned one have owners", `SELECT COUNT(*) FROM schedule_queue
				WHERE task_type = 'items' AND queue_id <> '0' AND cur_server IS NOT NULL`, 3)
			s.goesOn("after the clock was set back", 1, 2, 3)
			s.serve("web-1", map[string]string{"zone": "b"})
			s.until("the pinned queue is back", `SELECT COUNT(*) FROM schedule_queue q JOIN schedule_server s
				ON s.uuid = q.cur_server WHERE q.task_type = 'items' AND q.queue_id = '0' AND s.name = 'web-1'`, 1)
			s.goesOn("with both workers", 0, 1, 2, 3)
			s.nothingAhead()
			s.quiet()
		})
	}
}

// clockStage is a server whose clock the test sets, with workers.
type clockStage struct {
	*testing.T
	server *testdb.Server
	c      *center.Center
	log    *slog.Logger
	logged *logtest.Log
}

func newClockStage(t *testing.T, server *testdb.Server) *clockStage {
	log, logged := logtest.New(slog.LevelInfo)
	s := &clockStage{T: t, server: server, log: log, logged: logged}
	s.c = centertest.Open(t, server.URL(), center.Options{})
	centertest.Exec(t, s.c, `CREATE TABLE items (id INT NOT NULL PRIMARY KEY, done INT NOT NULL)`)
	for id := range 40 {
		centertest.Exec(t, s.c, fmt.Sprintf(`INSERT INTO items (id, done) VALUES (%d, 0)`, id))
	}
	return s
}

func (s *clockStage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// serve starts a worker with a name. leave ends it.
func (s *clockStage) serve(name string, labels map[string]string) (leave func()) {
	s.Helper()
	c, err := center.Open(s.Context(), anydb.URL(s.server.URL()), center.Options{Logger: s.log})
	s.must(err)
	items := manager.Settings{
		Queues: 4, HeartbeatInterval: 400 * time.Millisecond, JudgeDeadInterval: 6 * time.Second, Balance: center.BalanceLoad,
		SleepTimeInterval: 100 * time.Millisecond, ItemRetry: 2 * time.Second, ItemRetryMax: 2 * time.Second,
		ItemMaxAttempts: 1000, DrainTimeout: 5 * time.Second,
	}
	runs := manager.Settings{
		Queues: 2, Mode: center.ModeRun, Every: time.Second, HeartbeatInterval: items.HeartbeatInterval,
		JudgeDeadInterval: items.JudgeDeadInterval,
	}
	m, err := manager.New(c, manager.Config{
		Logger: s.log, Name: name, Labels: labels, ReturnWithin: time.Minute,
	}, manager.Serve("items", clockDealer{c}, items), manager.Serve("runs", clockSweep{}, runs))
	s.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	stopped := false
	leave = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := errors.Join(<-ended, c.Close()); err != nil {
			s.Errorf("%s: %v", name, err)
		}
	}
	s.Cleanup(leave)
	s.until(name+" has joined", `SELECT COUNT(*) FROM schedule_server WHERE name = '`+name+`' AND state = 'SERVING'`, 1)
	return leave
}

func (s *clockStage) count(query string) (n int) {
	if err := s.c.DB().QueryRowContext(s.Context(), query).Scan(&n); err != nil {
		return -1
	}
	return n
}

// until waits until a query counts at least so many rows.
func (s *clockStage) until(what, query string, atLeast int) {
	s.Helper()
	for deadline := time.Now().Add(patience); s.count(query) < atLeast; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("waited %s in vain until %s: %d of %d", patience, what, s.count(query), atLeast)
		}
	}
}

// goesOn waits until each of the queues has done more items, and runs of the trigger have succeeded.
func (s *clockStage) goesOn(when string, queues ...int) {
	s.Helper()
	const succeeded = `SELECT COUNT(*) FROM schedule_run WHERE task_type = 'runs' AND state = 'SUCCESS'`
	for _, queue := range queues {
		done := fmt.Sprintf(`SELECT SUM(done) FROM items WHERE id %% 4 = %d`, queue)
		s.until(fmt.Sprintf("queue %d goes on %s", queue, when), done, s.count(done)+5)
	}
	// Retention may delete the runs of before.
	s.until("the trigger fires "+when, `SELECT fires FROM schedule_trigger`, s.count(`SELECT fires FROM schedule_trigger`)+2)
	s.until("a run succeeds "+when, succeeded, 1)
}

// aheadIn returns a query that counts the rows with a time that the clock of the machine has not reached.
func (s *clockStage) aheadIn(table, column string) string {
	return fmt.Sprintf(`SELECT COUNT(*) FROM %s WHERE %s > '%s'`, table, column,
		time.Now().Add(clockStep/2).UTC().Format("2006-01-02 15:04:05"))
}

// nothingAhead waits until no column has a time that the clock has not reached, except what stays as it was written.
func (s *clockStage) nothingAhead() {
	s.Helper()
	for _, column := range schema.Columns() {
		if column.Kind != schema.Time || slices.Contains(centertest.TimesKept, column.Table+"."+column.Name) && column.Table != "schedule_server" {
			continue
		}
		ahead := fmt.Sprintf(`%s > {ago %d}`, column.Name, -(26 * time.Hour).Milliseconds())
		if column.Table+"."+column.Name == "schedule_run.deadline_at" {
			ahead += ` AND state IN ('WAITING', 'READY', 'RUNNING')` // that of a run that has ended holds nothing up
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
			n, err := sqldb.Value[int](s.Context(), s.c.Roster().DB, `SELECT COUNT(*) FROM `+column.Table+` WHERE `+ahead)
			s.must(err)
			if n == 0 {
				break
			}
			if time.Now().After(deadline) {
				s.Errorf("%s.%s is in the future in %d rows", column.Table, column.Name, n)
				break
			}
		}
	}
}

// quiet checks that no worker has lost its lease, and that the doctor finds nothing that the steps have left.
func (s *clockStage) quiet() {
	s.Helper()
	if n := s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = 'EXPIRED'`); n > 0 {
		s.Errorf("%d servers were expired", n)
	}
	for _, line := range s.logged.Lines() {
		if strings.HasPrefix(line.Text, "lease expired without a heartbeat") {
			s.Errorf("a lease has expired: %+v", line)
		}
	}
	for _, task := range []string{"items", "runs"} {
		found, err := doctor.Diagnose(s.Context(), ops.New(s.c), task)
		s.must(err)
		for _, c := range found {
			s.Logf("doctor: %s %s %s: %s", c.Status, c.Kind, task, c.Text)
			if c.Kind == condition.InvalidValue.Name {
				s.Errorf("the doctor finds %s", c.Text)
			}
		}
	}
}

// clockDealer does items again and again. Item 38 always fails, and is dead at once; item 39 fails, and waits two seconds.
type clockDealer struct{ c *center.Center }

func (d clockDealer) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	return idsIn(ctx, d.c, `SELECT id FROM items WHERE id % ? = ? ORDER BY id`, s.Total, s.Queue.Index)
}

func (d clockDealer) Key(id int64) string { return fmt.Sprint(id) }

func (d clockDealer) Backlog(context.Context, processor.Selection) (processor.Backlog, error) {
	return processor.Backlog{Items: 10}, nil
}

func (d clockDealer) Execute(ctx context.Context, ids []int64) error {
	switch ids[0] {
	case 38:
		return processor.Permanent(errors.New("broken"))
	case 39:
		return errors.New("not yet")
	}
	return center.InTx(ctx, d.c.DB(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, bind(d.c, `UPDATE items SET done = done + 1 WHERE id = ?`), ids[0])
		return err
	})
}

// clockSweep has no items: each of its runs succeeds at once.
type clockSweep struct{}

func (clockSweep) Select(context.Context, processor.Selection) ([]int64, error) { return nil, nil }

func (clockSweep) Execute(context.Context, []int64) error { return nil }
