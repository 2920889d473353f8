package centertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/schema"
)

// fixture is the task type of one case. Its servers have short names: A, B, C. An error of a method ends the case.
type fixture struct {
	*testing.T
	c           *center.Center
	task        string                       // no other case uses it
	tokens      map[string]string            // of the last heartbeat, by short name
	watchRanges map[string]roster.WatchRange // of the last reply, by short name
}

// newFixture defines a task type that only this case uses, so that all cases can share one database.
func newFixture(t *testing.T, c *center.Center, s center.Settings) *fixture {
	t.Helper()
	task := strings.NewReplacer("/", ".", " ", "_").Replace(t.Name())
	r := &fixture{
		T: t, c: c, task: task[strings.Index(task, ".")+1:],
		tokens: map[string]string{}, watchRanges: map[string]roster.WatchRange{},
	}
	r.define(s)
	return r
}

// sibling returns another task type of the case, which is not defined yet.
func (r *fixture) sibling(name string) *fixture {
	return &fixture{
		T: r.T, c: r.c, task: r.task + "." + name,
		tokens: map[string]string{}, watchRanges: map[string]roster.WatchRange{},
	}
}

// define defines the task type, unless it exists. It returns the settings of its row.
func (r *fixture) define(s center.Settings) center.Settings {
	r.Helper()
	row, err := r.c.Tasks().Define(r.Context(), r.task, s)
	r.must(err)
	return row
}

// must ends the case if err is not nil.
func (r *fixture) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// uuid makes a short name unique in the database; short undoes it.
func (r *fixture) uuid(name string) string  { return r.task + ":" + name }
func (r *fixture) short(uuid string) string { return strings.TrimPrefix(uuid, r.task+":") }

// join registers servers. Each rebalances after its registration, as a worker does.
func (r *fixture) join(names ...string) {
	r.Helper()
	for _, name := range names {
		r.register(name)
		r.rebalance(name)
	}
}

// register registers a server whose program gives no settings.
func (r *fixture) register(name string) roster.Registration {
	r.Helper()
	return r.registerGiven(name, center.Settings{})
}

// registerGiven registers a server whose program gives these settings.
func (r *fixture) registerGiven(name string, given center.Settings) roster.Registration {
	r.Helper()
	return r.registerHung(name, given)
}

// registerHung registers a server in whose process calls of a former session are in flight for the queues.
func (r *fixture) registerHung(name string, given center.Settings, queues ...string) roster.Registration {
	r.Helper()
	reg, err := r.c.Roster().Register(r.Context(), roster.ServerInfo{
		UUID: r.uuid(name), TaskType: r.task, Host: "host-" + name, PID: 1,
		JudgeDeadInterval: 10 * time.Second, HeartbeatToken: "first", HungQueues: queues, GivenSettings: given.Given(),
	})
	r.must(err)
	r.tokens[name] = "first"
	return reg
}

// joinHung registers a server as registerHung does, and rebalances.
func (r *fixture) joinHung(name string, queues ...string) {
	r.Helper()
	r.registerHung(name, center.Settings{}, queues...)
	r.rebalance(name)
}

// clearHung takes queues off the list of hung queues of a server.
func (r *fixture) clearHung(name string, queues ...string) {
	r.Helper()
	r.must(r.c.Roster().Server(r.task, r.uuid(name)).ClearHungQueues(r.Context(), queues))
}

// rebalance rebalances as a server that may expire no other.
func (r *fixture) rebalance(name string) {
	r.Helper()
	_, err := r.c.Roster().Planner(r.task, r.uuid(name)).Rebalance(r.Context(), roster.RebalanceOptions{})
	r.must(err)
}

// rebalanceExpiring rebalances as a server that has watched the others for long enough to expire them.
func (r *fixture) rebalanceExpiring(name string) {
	r.Helper()
	_, err := r.c.Roster().Planner(r.task, r.uuid(name)).Rebalance(r.Context(), roster.RebalanceOptions{Watched: time.Hour, MaxHeartbeatAge: time.Minute})
	r.must(err)
}

// heartbeat sends a heartbeat with a new token. It returns the reply, and whether the server is still registered.
func (r *fixture) heartbeat(name string) (roster.HeartbeatReply, bool) {
	r.Helper()
	b := roster.Heartbeat{OldTokens: []string{r.tokens[name]}, Token: r.tokens[name] + "+", Servers: []roster.ServerReport{{UUID: r.uuid(name), TaskType: r.task, State: center.StateServing, WatchRange: r.watchRanges[name]}}}
	replies, err := r.c.Roster().SendHeartbeat(r.Context(), b)
	r.must(err)
	r.tokens[name] = b.Token
	p, ok := replies[r.uuid(name)]
	r.watchRanges[name] = p.WatchRange
	return p, ok
}

// makeSilent backdates the last heartbeat of a server.
func (r *fixture) makeSilent(name string) {
	r.Helper()
	r.exec("UPDATE schedule_server SET heartbeat_time = '2020-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid(name))
}

// exec runs a statement. The names of the case contain no quotes, so args need no escaping.
func (r *fixture) exec(format string, args ...any) {
	r.Helper()
	_, err := r.c.DB().ExecContext(r.Context(), fmt.Sprintf(format, args...))
	r.must(err)
}

// readInt reads one number.
func (r *fixture) readInt(format string, args ...any) (n int64) {
	r.Helper()
	r.must(r.c.DB().QueryRowContext(r.Context(), fmt.Sprintf(format, args...)).Scan(&n))
	return n
}

// readColumn reads a column of strings. NULL reads as "-", and a server as its short name.
func (r *fixture) readColumn(format string, args ...any) (list []string) {
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

// owners returns the owner of each queue in order: "A", "A>B" if B requests the queue, "-" if it has no owner.
func (r *fixture) owners() []string {
	r.Helper()
	cur := r.readColumn("SELECT cur_server FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' ORDER BY queue_index", r.task, r.c.OwnSign())
	req := r.readColumn("SELECT req_server FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' ORDER BY queue_index", r.task, r.c.OwnSign())
	for i := range cur {
		if req[i] != "-" {
			cur[i] += ">" + req[i]
		}
	}
	return cur
}

// wantOwners checks the owners of all queues, as [fixture.owners] writes them.
func (r *fixture) wantOwners(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.owners()); diff != "" {
		r.Fatalf("owners of the queues (-want +got):\n%s", diff)
	}
}

// epoch reads the epoch of a queue.
func (r *fixture) epoch(queue string) int64 {
	r.Helper()
	return r.readInt("SELECT epoch FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' AND queue_id = '%s'", r.task, r.c.OwnSign(), queue)
}

// handover returns what an owner sends after it has drained a queue for another server.
func (r *fixture) handover(queue, to string) roster.Handover {
	r.Helper()
	return roster.Handover{QueueID: queue, Epoch: r.epoch(queue), Requester: r.uuid(to)}
}

// release hands queues over. It returns the ids of the queues that have changed their owner.
func (r *fixture) release(from string, queues ...roster.Handover) []string {
	r.Helper()
	released, err := r.c.Roster().Server(r.task, r.uuid(from)).Release(r.Context(), queues)
	r.must(err)
	return released
}

// eventKinds returns the kinds of the events of a queue, oldest first. The queue "" stands for the events of servers.
func (r *fixture) eventKinds(queue string) []string {
	r.Helper()
	where := "queue_id IS NULL"
	if queue != "" {
		where = "queue_id = '" + queue + "'"
	}
	return r.readColumn("SELECT kind FROM schedule_event WHERE task_type = '%s' AND own_sign = '%s' AND %s ORDER BY event_id", r.task, r.c.OwnSign(), where)
}

// batch returns the context of an Execute call of a server, for a batch of these queues under their current epochs.
func (r *fixture) batch(name string, queues ...string) context.Context {
	r.Helper()
	b := center.Batch{Server: r.uuid(name), TaskType: r.task}
	for _, q := range queues {
		b.Queues = append(b.Queues, center.QueueEpoch{ID: q, Epoch: r.epoch(q)})
	}
	return r.c.Bind(r.Context(), b)
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

// needsRowLocks skips the case on SQLite. Its one lock for all writers makes each writer wait for each transaction.
func needsRowLocks(t *testing.T, c *center.Center) {
	t.Helper()
	if c.Dialect() == schema.SQLite {
		t.Skip("SQLite has one lock for all writers")
	}
}
