package centertest

import (
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// judgeDeadInterval of the servers is longer than any case takes, on the slowest machine: a server is dead when the case
// says so.
const judgeDeadInterval = 10 * time.Minute

// serverSteps are what the servers of a task type do.
type serverSteps struct {
	*taskType
	tokens      map[string]string            // of the last heartbeat, by short name
	watchRanges map[string]roster.WatchRange // of the last reply, by short name
}

// register registers a server whose program gives no settings.
func (r serverSteps) register(name string) roster.Registration {
	r.Helper()
	return r.registerGiven(name, center.Settings{})
}

// registerGiven registers a server whose program gives these settings.
func (r serverSteps) registerGiven(name string, given center.Settings) roster.Registration {
	r.Helper()
	return r.registerHung(name, given)
}

// registerHung registers a server in whose process calls of a former session are in flight for the queues.
func (r serverSteps) registerHung(name string, given center.Settings, queues ...string) roster.Registration {
	r.Helper()
	reg, err := r.c.Roster().Register(r.Context(), roster.ServerInfo{
		UUID: r.uuid(name), TaskType: r.task, Host: "host-" + name, PID: 1,
		JudgeDeadInterval: judgeDeadInterval, HeartbeatToken: "first", HungQueues: queues, GivenSettings: given.Given(),
	})
	r.must(err)
	r.tokens[name] = "first"
	return reg
}

// joinHung registers a server as registerHung does, and rebalances.
func (r serverSteps) joinHung(name string, queues ...string) {
	r.Helper()
	r.registerHung(name, center.Settings{}, queues...)
	r.rebalance(name)
}

// clearHung takes queues off the list of hung queues of a server.
func (r serverSteps) clearHung(name string, queues ...string) {
	r.Helper()
	r.must(r.c.Roster().Server(r.task, r.uuid(name)).ClearHungQueues(r.Context(), queues))
}

// rebalance rebalances as a server that may expire no other.
func (r serverSteps) rebalance(name string) {
	r.Helper()
	_, err := r.c.Roster().Planner(r.task, r.uuid(name)).Rebalance(r.Context(), roster.RebalanceOptions{})
	r.must(err)
}

// rebalanceAlways rebalances although nothing that the planner reads has changed, as an audit does.
func (r serverSteps) rebalanceAlways(name string) {
	r.Helper()
	_, err := r.c.Roster().Planner(r.task, r.uuid(name)).Rebalance(r.Context(), roster.RebalanceOptions{Always: true})
	r.must(err)
}

// rebalanceSkipped rebalances as an owner that has drained what an earlier plan skipped. It returns the queues that the
// plan could not move.
func (r serverSteps) rebalanceSkipped(name string) []string {
	r.Helper()
	done, err := r.c.Roster().Planner(r.task, r.uuid(name)).Rebalance(r.Context(), roster.RebalanceOptions{RetrySkipped: true})
	r.must(err)
	return done.Skipped
}

// rebalanceExpiring rebalances as a server that has watched the others for long enough to expire them.
func (r serverSteps) rebalanceExpiring(name string) {
	r.Helper()
	_, err := r.c.Roster().Planner(r.task, r.uuid(name)).Rebalance(r.Context(), roster.RebalanceOptions{Watched: time.Hour, MaxHeartbeatAge: time.Minute})
	r.must(err)
}

// heartbeat sends a heartbeat with a new token. It returns the reply, and whether the server is still registered.
func (r serverSteps) heartbeat(name string) (roster.HeartbeatReply, bool) {
	r.Helper()
	p := r.send(name, roster.ServerReport{})
	return p, !p.Now.IsZero()
}

// send sends a heartbeat with a new token and the report of one server. The reply is empty if the server is not
// registered any more. Each second heartbeat of a server is also that of a server that is gone: the statements of a
// process with one server have other texts than those with several.
func (r serverSteps) send(name string, report roster.ServerReport) roster.HeartbeatReply {
	r.Helper()
	report.UUID, report.OldToken, report.TaskType = r.uuid(name), r.tokens[name], r.task
	report.State, report.WatchRange = ops.StateServing, r.watchRanges[name]
	b := roster.Heartbeat{Token: r.tokens[name] + "+", Servers: []roster.ServerReport{report}}
	if len(b.Token)%2 == 0 {
		b.Servers = append(b.Servers, roster.ServerReport{UUID: "gone", TaskType: r.task, State: ops.StateServing})
	}
	p := r.sendAll(b)[r.uuid(name)]
	r.tokens[name] = b.Token
	r.watchRanges[name] = p.Watch.Range
	return p
}

// sendAll sends a heartbeat. It sends the same again while it reaches a node of a cluster that has not applied what the
// case wrote on another one, as a worker does.
func (r serverSteps) sendAll(b roster.Heartbeat) map[string]roster.HeartbeatReply {
	r.Helper()
	replies, err := r.c.Roster().SendHeartbeat(r.Context(), b)
	for tries := 0; err != nil && tries < 100; tries++ {
		if _, nodes := onNodes.Load(r.c); !nodes {
			break
		}
		time.Sleep(10 * time.Millisecond)
		replies, err = r.c.Roster().SendHeartbeat(r.Context(), b)
	}
	r.must(err)
	return replies
}

// read returns the server's view of its queues.
func (r serverSteps) read(name string) roster.View {
	r.Helper()
	v, err := r.c.Roster().Server(r.task, r.uuid(name)).View(r.Context())
	r.must(err)
	return v
}

// makeSilent backdates the last heartbeat of a server.
func (r serverSteps) makeSilent(name string) {
	r.Helper()
	r.exec("UPDATE schedule_server SET heartbeat_time = '2020-01-01 00:00:00.000000' WHERE uuid = '%s'", r.uuid(name))
}
