package centertest

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// testTotals checks that the processes have equal numbers of queues of all task types. Each case has an environment of its
// own, because its processes serve no other task types.
func testTotals(t *testing.T, c *center.Center) {
	// environment returns a task type with so many queues in an environment with a row, which the first audit inserts.
	environment := func(t *testing.T, ownSign string, queues int) *fixture {
		t.Helper()
		other, err := c.In(ownSign)
		if err != nil {
			t.Fatal(err)
		}
		r := newFixture(t, other, center.Settings{Queues: queues})
		r.exec("INSERT INTO schedule_environment (own_sign) VALUES ('%s')", ownSign)
		return r
	}
	join := func(r *fixture, names ...string) {
		for _, name := range names {
			r.register(name)
			r.exec("UPDATE schedule_server SET process = '%s' WHERE uuid = '%s'", name, r.uuid(name))
			r.rebalance(name)
		}
	}
	// pair returns two task types of one queue, which the first of two processes has.
	pair := func(t *testing.T, ownSign string) (one, two *fixture) {
		one = environment(t, ownSign, 1)
		two = one.sibling("b")
		two.define(center.Settings{Queues: 1})
		join(one, "A")
		join(two, "A")
		return one, two
	}
	t.Run("P15 a process with fewer queues elsewhere gets the spare queue", func(t *testing.T) {
		one, two := pair(t, "elsewhere")
		join(two, "B")
		two.exec("UPDATE schedule_queue SET cur_server = NULL, req_server = NULL WHERE task_type = '%s'", two.task)
		two.exec("UPDATE schedule_task_running SET membership_version = membership_version + 1 WHERE task_type = '%s'", two.task)
		two.rebalance("A")
		one.wantOwners("A")
		two.wantOwners("B")
	})
	t.Run("P8 P15 planning again requests for the same process", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 3})
		other := r.sibling("other")
		other.define(center.Settings{Queues: 4})
		r.register("A")
		other.register("B") // its process owns four queues of the other task type
		other.rebalance("B")
		r.rebalance("A")
		for _, name := range []string{"B", "C", "D"} {
			r.register(name)
		}
		r.exec("UPDATE schedule_server SET process = host_name WHERE task_type LIKE '%s%%'", r.task)
		r.exec("UPDATE schedule_queue SET cur_server = NULL, req_server = NULL, epoch = epoch + 1 WHERE task_type = '%s' AND queue_id = '2'", r.task)
		r.rebalance("A")
		first := r.owners()
		r.rebalanceAlways("A")
		if again := r.owners(); !slices.Equal(first, again) {
			t.Errorf("the plan made %v, and planning again makes %v", first, again)
		}
	})
	t.Run("P15 a process that joins gets its part of task types of one queue", func(t *testing.T) {
		one, two := pair(t, "move")
		join(one, "B")
		one.wantOwners("A>B")
		join(two, "B")
		two.wantOwners("A") // B is to have the queue of the other task type
		moves := one.preview(ops.Scenario{})
		if !slices.ContainsFunc(moves, func(m string) bool { return strings.Contains(m, "the totals of the processes") }) {
			t.Errorf("the preview says %v", moves)
		}
		one.release("A", one.handover("0", "B"))
		one.rebalanceAlways("B")
		two.rebalanceAlways("B")
		one.wantOwners("B")
		two.wantOwners("A")
	})
	t.Run("P15 an audit evens the totals, and inserts the row of the environment", func(t *testing.T) {
		one, _ := pair(t, "audit")
		one.exec("DELETE FROM schedule_environment WHERE own_sign = 'audit'")
		join(one, "B")
		one.wantOwners("A")
		one.exec("UPDATE schedule_task_running SET audited_at = NULL WHERE task_type = '%s'", one.task)
		_, err := one.c.Roster().Planner(one.task, one.uuid("A")).Audit(t.Context())
		one.must(err)
		one.wantOwners("A>B")
	})
	t.Run("P15 moves for the totals wait while another transaction makes some", func(t *testing.T) {
		if !needsRowLocks(t, c) {
			return
		}
		one, _ := pair(t, "wait")
		tx, err := one.c.DB().BeginTx(t.Context(), nil)
		one.must(err)
		defer func() { // after the commit it does nothing
			if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
				t.Error(err)
			}
		}()
		_, err = tx.ExecContext(t.Context(), "UPDATE schedule_environment SET lost_task = lost_task WHERE own_sign = 'wait'")
		one.must(err)
		join(one, "B")
		one.wantOwners("A")
		one.must(tx.Commit())
		one.backdatePlan("'2020-01-01 00:00:00.000000'")
		one.beatAndPlan(1, "A")
		one.wantOwners("A>B")
	})
	t.Run("P15 task types that are planned at the same time do not all move", func(t *testing.T) {
		const tasks = 12
		list := []*fixture{environment(t, "race", 1)}
		for i := 1; i < tasks; i++ {
			r := list[0].sibling(fmt.Sprint(i))
			r.define(center.Settings{Queues: 1})
			list = append(list, r)
		}
		for _, r := range list {
			join(r, "A")
		}
		for _, r := range list {
			r.register("B")
			r.exec("UPDATE schedule_server SET process = 'B' WHERE uuid = '%s'", r.uuid("B"))
		}
		var all sync.WaitGroup
		errs := make([]error, tasks)
		for i, r := range list {
			all.Go(func() {
				planner := r.c.Roster().Planner(r.task, r.uuid("B"))
				for range tasks { // each time one of them has the row of the environment
					_, err := planner.Rebalance(t.Context(), roster.RebalanceOptions{Always: true})
					errs[i] = errors.Join(errs[i], err)
				}
			})
		}
		all.Wait()
		one := list[0]
		one.must(errors.Join(errs...))
		for _, r := range list { // moves that have waited for the lock
			r.rebalanceAlways("B")
		}
		const requests = `SELECT COUNT(*) FROM schedule_event WHERE own_sign = 'race' AND kind = 'REQUESTED'`
		if n := one.readInt(requests); n != tasks/2 {
			t.Errorf("%d queues were requested, want %d", n, tasks/2)
		}
	})
}
