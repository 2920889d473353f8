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
)

// roster is one task type of a case, with servers that have short names: A, B, C.
type fixture struct {
	*testing.T
	c      *center.Center
	task   string
	tokens map[string]string
	rings  map[string]roster.WatchRange
}

// newRoster defines a task type of the case's own, so that all cases share one database.
func newRoster(t *testing.T, c *center.Center, s center.Settings) *fixture {
	t.Helper()
	task := strings.NewReplacer("/", ".", " ", "_").Replace(t.Name())
	r := &fixture{T: t, c: c, task: task[strings.Index(task, ".")+1:], tokens: map[string]string{}, rings: map[string]roster.WatchRange{}}
	r.define(s)
	return r
}

func (r *fixture) define(s center.Settings) center.Settings {
	r.Helper()
	row, err := r.c.Tasks().Define(r.Context(), r.task, s)
	r.must(err)
	return row
}

func (r *fixture) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// uuid makes a short name unique in the database; short undoes it.
func (r *fixture) uuid(name string) string  { return r.task + ":" + name }
func (r *fixture) short(uuid string) string { return strings.TrimPrefix(uuid, r.task+":") }

// join registers a server and plans, as a worker does.
func (r *fixture) join(names ...string) {
	r.Helper()
	for _, name := range names {
		r.register(name)
		r.assign(name)
	}
}

func (r *fixture) register(name string) {
	r.Helper()
	r.registerGiven(name, center.Settings{})
}

// registerGiven registers a server whose program gives the settings.
func (r *fixture) registerGiven(name string, given center.Settings) {
	r.Helper()
	_, err := r.c.Roster().Register(r.Context(), roster.Server{
		UUID: r.uuid(name), TaskType: r.task, Host: "host-" + name, PID: 1,
		JudgeDeadInterval: 10 * time.Second, HeartbeatToken: "first", GivenSettings: given.Given(),
	})
	r.must(err)
	r.tokens[name] = "first"
}

func (r *fixture) assign(name string) {
	r.Helper()
	_, err := r.c.Roster().Rebalance(r.Context(), r.task, roster.RebalanceOptions{Actor: r.uuid(name)})
	r.must(err)
}

// expire plans as a server does that has watched for long enough.
func (r *fixture) expire(name string) {
	r.Helper()
	_, err := r.c.Roster().Rebalance(r.Context(), r.task, roster.RebalanceOptions{Actor: r.uuid(name), Watched: time.Hour, MaxHeartbeatAge: time.Minute})
	r.must(err)
}

// beat sends a heartbeat with a new token and returns the pulse, if the server is still there.
func (r *fixture) beat(name string) (roster.HeartbeatReply, bool) {
	r.Helper()
	b := roster.Heartbeat{OldTokens: []string{r.tokens[name]}, Token: r.tokens[name] + "+", Servers: []roster.ServerReport{{UUID: r.uuid(name), TaskType: r.task, State: center.StateServing, WatchRange: r.rings[name]}}}
	pulses, err := r.c.Roster().SendHeartbeat(r.Context(), b)
	r.must(err)
	r.tokens[name] = b.Token
	p, ok := pulses[r.uuid(name)]
	r.rings[name] = p.WatchRange
	return p, ok
}

// silence makes a server's last heartbeat an old one.
func (r *fixture) silence(name string) {
	r.Helper()
	r.exec("UPDATE schedule_server SET heartbeat_time = '2020-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid(name))
}

// exec runs a statement of the test's own; the names in it need no quoting.
func (r *fixture) exec(format string, args ...any) {
	r.Helper()
	_, err := r.c.DB().ExecContext(r.Context(), fmt.Sprintf(format, args...))
	r.must(err)
}

// one reads one number.
func (r *fixture) one(format string, args ...any) (n int64) {
	r.Helper()
	r.must(r.c.DB().QueryRowContext(r.Context(), fmt.Sprintf(format, args...)).Scan(&n))
	return n
}

// column reads a column of strings, NULL as "-".
func (r *fixture) column(format string, args ...any) (list []string) {
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

// owners returns "A" or "A>B" (B requested) or "-" for each queue, in order.
func (r *fixture) owners() []string {
	r.Helper()
	cur := r.column("SELECT cur_server FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' ORDER BY queue_index", r.task, r.c.OwnSign())
	req := r.column("SELECT req_server FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' ORDER BY queue_index", r.task, r.c.OwnSign())
	for i := range cur {
		if req[i] != "-" {
			cur[i] += ">" + req[i]
		}
	}
	return cur
}

func (r *fixture) wantOwners(want ...string) {
	r.Helper()
	if diff := cmp.Diff(want, r.owners()); diff != "" {
		r.Fatalf("owners (-want +got):\n%s", diff)
	}
}

func (r *fixture) epoch(queue string) int64 {
	r.Helper()
	return r.one("SELECT epoch FROM schedule_queue WHERE task_type = '%s' AND own_sign = '%s' AND queue_id = '%s'", r.task, r.c.OwnSign(), queue)
}

// handover is what a server that has drained the queue for its requester sends.
func (r *fixture) handover(queue, to string) roster.Handover {
	r.Helper()
	return roster.Handover{QueueID: queue, Epoch: r.epoch(queue), Requester: r.uuid(to)}
}

func (r *fixture) release(from string, queues ...roster.Handover) []string {
	r.Helper()
	released, err := r.c.Roster().Release(r.Context(), r.task, r.uuid(from), queues)
	r.must(err)
	return released
}

// kinds returns the kinds of the events of a queue ("" for those of servers), oldest first.
func (r *fixture) kinds(queue string) []string {
	r.Helper()
	where := "queue_id IS NULL"
	if queue != "" {
		where = "queue_id = '" + queue + "'"
	}
	return r.column("SELECT kind FROM schedule_event WHERE task_type = '%s' AND own_sign = '%s' AND %s ORDER BY event_id", r.task, r.c.OwnSign(), where)
}

// batch is the context of an Execute by the server, over queues with the epochs that they have now.
func (r *fixture) batch(name string, queues ...string) context.Context {
	r.Helper()
	b := center.Batch{Server: r.uuid(name), TaskType: r.task}
	for _, q := range queues {
		b.Queues = append(b.Queues, center.QueueEpoch{ID: q, Epoch: r.epoch(q)})
	}
	return r.c.Bind(r.Context(), b)
}
