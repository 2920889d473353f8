package center

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
)

// Preview is the result of a rebalance that is not carried out.
type Preview struct {
	Moves   []Move  // in natural order of the queues
	Minimum int     // the least number of moves that balances the queues within one; with balance LOAD, that of the plan
	Shares  []Share // one for each server, the oldest server first
}

// Moved counts the moves that give a queue to a server.
func (p Preview) Moved() (n int) {
	for _, m := range p.Moves {
		if m.NextServer != nil {
			n++
		}
	}
	return n
}

// Move is a queue that goes from one server to another, or that loses its owner.
type Move struct {
	QueueID    string  `json:"queue_id"`
	CurServer  *string `json:"cur_server"`
	NextServer *string `json:"next_server"`
	Requested  bool    `json:"requested"` // the next server has requested it already
	Reason     string  `json:"reason"`
}

// Share is how many queues a server owns, and would own after the moves.
type Share struct {
	UUID   string `json:"uuid"`
	State  string `json:"state"`
	Queues int    `json:"queues"`
	Next   int    `json:"next_queues"`
}

// Scenario is a change of the servers for which Plan computes a preview.
type Scenario struct {
	Add    int      // servers that join
	Remove []string // uuids of servers that stop
	Resume []string // uuids of paused or drained servers that may own queues again

	Weights map[string]int // other weights of servers, by uuid
}

// Plan returns what a rebalance would do after the scenario, with overdue servers expired. It reads without locks and
// writes nothing.
func (q *Queues) Plan(ctx context.Context, taskType string, s Scenario) (Preview, error) {
	in, err := q.readPlanInput(ctx, taskType)
	if err != nil {
		return Preview{}, fmt.Errorf("preview %s$%s: %w", taskType, q.c.ownSign, err)
	}
	if err := errors.Join(in.setStates(s.Remove, stateStopping), in.setStates(s.Resume, StateServing)); err != nil {
		return Preview{}, fmt.Errorf("preview %s$%s: %w", taskType, q.c.ownSign, err)
	}
	if err := in.setWeights(s.Weights); err != nil {
		return Preview{}, fmt.Errorf("preview %s$%s: %w", taskType, q.c.ownSign, err)
	}
	for i := range s.Add {
		in.servers = append(in.servers, roster.ServerRow{
			UUID: fmt.Sprintf("new-%d", i+1), Host: fmt.Sprintf("new-%d", i+1), State: StateStandby, Weight: 1,
			Registered: in.now.Add(time.Duration(i) * time.Second), Heartbeat: in.now, JudgeDeadInterval: time.Minute,
		})
	}
	return in.plan(), nil
}

// setStates sets the state of the servers with the uuids.
func (in planInput) setStates(uuids []string, state string) error {
	for _, uuid := range uuids {
		s, err := in.server(uuid)
		if err != nil {
			return err
		}
		s.State = state
	}
	return nil
}

func (in planInput) setWeights(weights map[string]int) error {
	for uuid, weight := range weights {
		s, err := in.server(uuid)
		if err == nil {
			err = roster.CheckWeight(weight)
		}
		if err != nil {
			return err
		}
		s.Weight = weight
	}
	return nil
}

func (in planInput) server(uuid string) (*roster.ServerRow, error) {
	at := slices.IndexFunc(in.servers, func(r roster.ServerRow) bool { return r.UUID == uuid })
	if at < 0 {
		return nil, fmt.Errorf("server %s: %w", uuid, ErrGone)
	}
	return &in.servers[at], nil
}

// stateStopping is the state of a server that stops in the scenario.
const stateStopping = "STOPS"

// planInput is the input of the planner, and the database's time.
type planInput struct {
	now     time.Time
	queues  []plan.Queue
	servers []roster.ServerRow
	limits  plan.Limits

	elsewhere map[string]int // by process: its queues of other task types
}

func (q *Queues) readPlanInput(ctx context.Context, taskType string) (in planInput, err error) {
	if _, err := q.c.Tasks().List(ctx, taskType); err != nil {
		return in, err
	}
	if in.now, err = q.c.db.Clock(ctx); err != nil {
		return in, err
	}
	r := roster.Reader{DB: q.c.db.Store, Dialect: q.c.db.Dialect, TaskType: taskType, OwnSign: q.c.ownSign}
	if in.servers, err = r.Servers(ctx); err != nil {
		return in, err
	}
	removing, err := r.Removing(ctx)
	if err != nil {
		return in, err
	}
	if in.queues, err = r.Queues(ctx, removing); err != nil {
		return in, err
	}
	if in.limits, err = r.Limits(ctx); err != nil {
		return in, err
	}
	in.elsewhere, err = r.Elsewhere(ctx)
	return in, err
}

func (in planInput) plan() Preview {
	live := in.live()
	preview := Preview{Minimum: plan.MinMoves(in.queues, live, in.limits)}
	next := map[string]plan.Queue{}
	for _, q := range in.queues {
		next[q.ID] = q
	}
	byLoad := map[string]bool{}
	for _, change := range plan.Plan(in.queues, live, in.limits) {
		next[change.QueueID] = plan.Queue{ID: change.QueueID, Owner: change.Owner, Requester: change.Requester}
		byLoad[change.QueueID] = change.ByLoad
	}
	preview.Moves = in.moves(next, byLoad)
	preview.Shares = in.shares(preview.Moves)
	return preview
}

// live returns the servers that live after the scenario.
func (in planInput) live() (live []plan.Server) {
	for _, s := range in.servers {
		if s.State == stateStopping || in.overdue(s) {
			continue
		}
		server := s.PlanServer()
		server.Elsewhere = in.elsewhere[s.Process]
		live = append(live, server)
	}
	return live
}

func (in planInput) overdue(s roster.ServerRow) bool {
	return in.now.Sub(s.Heartbeat) > s.JudgeDeadInterval
}

// moves compares the present owners with the owners after all hand-overs. byLoad has the queues that move only to even the load.
func (in planInput) moves(next map[string]plan.Queue, byLoad map[string]bool) (moves []Move) {
	working := map[string]bool{} // the servers that own queues after the moves
	for _, q := range next {
		working[cmp.Or(q.Requester, q.Owner)] = true
	}
	for _, q := range in.queues {
		to := next[q.ID].Requester
		if to == "" {
			to = next[q.ID].Owner
		}
		if to == q.Owner {
			continue
		}
		reason := in.moveReason(q, to, working[q.Owner])
		if byLoad[q.ID] {
			reason = "the load is to be even"
		}
		move := Move{QueueID: q.ID, Requested: to != "" && q.Requester == to, Reason: reason}
		if q.Owner != "" {
			move.CurServer = &q.Owner
		}
		if to != "" {
			move.NextServer = &to
		}
		moves = append(moves, move)
	}
	slices.SortFunc(moves, func(a, b Move) int { return plan.CompareIDs(a.QueueID, b.QueueID) })
	return moves
}

// moveReason returns the reason for which the planner moves a queue. keeps says that its owner keeps other queues.
func (in planInput) moveReason(q plan.Queue, to string, keeps bool) string {
	at := slices.IndexFunc(in.servers, func(s roster.ServerRow) bool { return s.UUID == q.Owner })
	switch {
	case q.Owner == "":
		return "it has no owner"
	case at < 0:
		return "its owner is gone"
	case in.servers[at].State == stateStopping:
		return "its owner stops"
	case in.overdue(in.servers[at]):
		return fmt.Sprintf("its owner is dead, silent for %s", in.now.Sub(in.servers[at].Heartbeat).Round(time.Second))
	case in.servers[at].State == StatePaused:
		return "its owner is paused"
	case in.servers[at].State == StateDraining:
		return "its owner is draining"
	case to == "":
		return "no server may own it"
	case !in.limits.Require.Matches(in.servers[at].PlanServer()):
		return "require forbids its owner, which lacks a label"
	case !q.Pin.Matches(in.servers[at].PlanServer()):
		return "its pin forbids its owner, which lacks a label"
	case !in.limits.Prefer.Matches(in.servers[at].PlanServer()) && !keeps:
		return "prefer lets its owner stand by, which lacks a label"
	case in.roundedUp(to) && !in.roundedUp(q.Owner):
		return "the totals of the processes over all task types are to be equal"
	case (in.limits.Servers > 0 || in.limits.ServersPerHost > 0) && !keeps:
		return "max_servers or max_servers_per_host lets its owner stand by"
	case in.limits.InFlight > 0 && !keeps:
		return fmt.Sprintf("max_in_flight (%d) leaves its owner no call", in.limits.InFlight)
	}
	if in.limits.Loads != nil {
		return "its owner has more than its part of the load"
	}
	return "its owner has more than its share"
}

// roundedUp reports whether the share of the server is rounded up before those of others (P15).
func (in planInput) roundedUp(uuid string) bool {
	return slices.ContainsFunc(in.servers, func(s roster.ServerRow) bool { return s.UUID == uuid && s.RoundedUp })
}

func (in planInput) shares(moves []Move) []Share {
	owned, change := map[string]int{}, map[string]int{}
	for _, q := range in.queues {
		owned[q.Owner]++
	}
	for _, m := range moves {
		if m.CurServer != nil {
			change[*m.CurServer]--
		}
		if m.NextServer != nil {
			change[*m.NextServer]++
		}
	}
	list := make([]Share, len(in.servers))
	for i, s := range in.servers {
		state := s.State
		if in.overdue(s) {
			state = "OVERDUE"
		}
		list[i] = Share{UUID: s.UUID, State: state, Queues: owned[s.UUID], Next: owned[s.UUID] + change[s.UUID]}
	}
	return list
}
