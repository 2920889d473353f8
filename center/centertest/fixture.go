package centertest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// fixture is the task type of one case, with the steps of a case by subject. Its servers have short names: A, B, C. An
// error of a step ends the case.
type fixture struct {
	*taskType
	serverSteps
	queueSteps
	itemSteps
	runSteps
	triggerSteps
}

// taskType is a task type in the database of a test.
type taskType struct {
	*testing.T
	c    *center.Center
	task string // no other case uses the name
}

// newFixture defines a task type that only this case uses, so that all cases can share one database.
func newFixture(t *testing.T, c *center.Center, s center.Settings) *fixture {
	t.Helper()
	name := strings.SplitN(strings.NewReplacer("/", ".", " ", "_").Replace(t.Name()), ".", 3) // the test, the database, the case
	r := fixtureOf(&taskType{T: t, c: c, task: name[len(name)-1]})
	r.define(s)
	return r
}

// fixtureOf returns the fixture of a task type, which need not exist yet.
func fixtureOf(t *taskType) *fixture {
	return &fixture{
		taskType: t, queueSteps: queueSteps{t}, itemSteps: itemSteps{t}, runSteps: runSteps{queueSteps{t}}, triggerSteps: triggerSteps{taskType: t},
		serverSteps: serverSteps{taskType: t, tokens: map[string]string{}, watchRanges: map[string]roster.WatchRange{}},
	}
}

// sibling returns another task type of the case, which is not defined yet.
func (r *fixture) sibling(name string) *fixture {
	return fixtureOf(&taskType{T: r.T, c: r.c, task: r.task + "." + name})
}

// define defines the task type, unless it exists. It returns the settings of its row.
func (r *taskType) define(s center.Settings) center.Settings {
	r.Helper()
	row, err := ops.New(r.c).Tasks().Define(r.Context(), r.task, s)
	r.must(err)
	return row
}

// must ends the case if err is not nil.
func (r *taskType) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// uuid makes a short name unique in the database; short undoes it.
func (r *taskType) uuid(name string) string  { return r.task + ":" + name }
func (r *taskType) short(uuid string) string { return strings.TrimPrefix(uuid, r.task+":") }

// join registers servers. Each rebalances after its registration, as a worker does.
func (r serverSteps) join(names ...string) {
	r.Helper()
	for _, name := range names {
		r.register(name)
		r.rebalance(name)
	}
}

// exec runs a statement. The names of the case contain no quotes, so args need no escaping.
func (r *taskType) exec(format string, args ...any) {
	r.Helper()
	_, err := r.c.DB().ExecContext(r.Context(), fmt.Sprintf(format, args...))
	r.must(err)
}

// readInt reads one number.
func (r *taskType) readInt(format string, args ...any) (n int64) {
	r.Helper()
	r.must(r.c.DB().QueryRowContext(r.Context(), fmt.Sprintf(format, args...)).Scan(&n))
	return n
}

// readColumn reads a column of strings. NULL reads as "-", and a server as its short name.
func (r *taskType) readColumn(format string, args ...any) (list []string) {
	r.Helper()
	rows, err := r.c.DB().QueryContext(r.Context(), fmt.Sprintf(format, args...))
	r.must(err)
	defer func() { r.must(errors.Join(rows.Err(), rows.Close())) }()
	for rows.Next() {
		var s *string
		r.must(rows.Scan(&s))
		if s == nil {
			list = append(list, "-")
			continue
		}
		list = append(list, r.short(*s))
	}
	return list
}

// eventKinds returns the kinds of the events of a queue, oldest first. The queue "" stands for the events of servers.
func (r *taskType) eventKinds(queue string) []string {
	r.Helper()
	where := "queue_id IS NULL"
	if queue != "" {
		where = "queue_id = '" + queue + "'"
	}
	return r.readColumn("SELECT kind FROM schedule_event WHERE task_type = '%s' AND own_sign = '%s' AND %s ORDER BY event_id", r.task, r.c.OwnSign(), where)
}

// wantErrors checks that each error contains its text.
func wantErrors(t *testing.T, errs map[string]error) {
	t.Helper()
	for want, err := range errs {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// needsRowLocks reports whether the lock of a row keeps other sessions out, and not more than them. It skips the case on
// a database with one lock for all writers, which makes each writer wait for each transaction. On the nodes of a cluster
// it checks what stands in for such locks (see [locksReach]), and the case has no more to check.
func needsRowLocks(t *testing.T, c *center.Center) bool {
	t.Helper()
	if c.Roster().DB.OneWriter {
		t.Skip(c.Dialect(), "has one lock for all writers")
	}
	return locksReach(t, c)
}

// onNodes has the Centers whose sessions are on several nodes of a cluster. The nodes have locks of their own.
var onNodes sync.Map

// locksReach reports whether locks keep out all other sessions. If they do not, it checks what the cluster does instead:
// a fenced transaction holds a queue, and another session hands the queue over. Either the other session sees the lock
// and leaves the queue alone, or the transaction fails at its commit, as one that may be tried again.
func locksReach(t *testing.T, c *center.Center) bool {
	t.Helper()
	if _, nodes := onNodes.Load(c); !nodes {
		return true
	}
	r := newFixture(t, c, center.Settings{Queues: 2})
	r.join("A", "B")
	tx, ctx := Begin(t, c), r.batch("A", "1")
	r.must(center.Fence(ctx, tx))
	released := r.release("A", r.handover("1", "B"))
	switch err := tx.Commit(); {
	case len(released) > 0 && err == nil:
		t.Error("a transaction committed under the fence of a queue that had another owner by then")
	case err != nil && (len(released) == 0 || !c.IsTransient(err)):
		t.Errorf("the commit failed: %v; released queues: %q", err, released)
	}
	return false
}
