package center

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
)

// Preview is the result of a rebalance that is not carried out.
type Preview struct {
	Moves   []Move  // in natural order of the queues
	Minimum int     // the least number of moves after which the load is balanced within one queue
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
}

// Plan returns what a rebalance would do after the scenario, with overdue servers expired. It reads without locks and
// writes nothing.
func (q *Queues) Plan(ctx context.Context, taskType string, s Scenario) (Preview, error) {
	p, err := q.readPreview(ctx, taskType)
	if err != nil {
		return Preview{}, fmt.Errorf("preview %s$%s: %w", taskType, q.c.ownSign, err)
	}
	for _, uuid := range s.Remove {
		at := slices.IndexFunc(p.servers, func(r roster.ServerRow) bool { return r.UUID == uuid })
		if at < 0 {
			return Preview{}, fmt.Errorf("preview %s$%s: server %s: %w", taskType, q.c.ownSign, uuid, ErrGone)
		}
		p.servers[at].State = stateStops
	}
	for i := range s.Add {
		p.servers = append(p.servers, roster.ServerRow{
			UUID: fmt.Sprintf("new-%d", i+1), State: StateStandby,
			Registered: p.now.Add(time.Duration(i) * time.Second), Heartbeat: p.now, JudgeDeadInterval: time.Minute,
		})
	}
	return p.plan(), nil
}

// stateStops is the state of a server that stops in the scenario.
const stateStops = "STOPS"

// previewInput is the input of the planner, and the database's time.
type previewInput struct {
	now     time.Time
	queues  []plan.Queue
	servers []roster.ServerRow
	limit   int
}

func (q *Queues) readPreview(ctx context.Context, taskType string) (p previewInput, err error) {
	if _, err := q.c.Tasks().List(ctx, taskType); err != nil {
		return p, err
	}
	if p.now, err = q.c.db.Clock(ctx); err != nil {
		return p, err
	}
	r := roster.Reader{DB: q.c.db.Store, Dialect: q.c.db.Dialect, TaskType: taskType, OwnSign: q.c.ownSign}
	if p.servers, err = r.Servers(ctx); err != nil {
		return p, err
	}
	removing, err := r.Removing(ctx)
	if err != nil {
		return p, err
	}
	if p.queues, err = r.Queues(ctx, removing); err != nil {
		return p, err
	}
	p.limit, err = r.Limit(ctx)
	return p, err
}

func (p previewInput) plan() Preview {
	var live []plan.Server
	for _, s := range p.servers {
		if s.State == stateStops || p.overdue(s) {
			continue
		}
		live = append(live, s.PlanServer())
	}
	preview := Preview{Minimum: plan.MinMoves(p.queues, live, p.limit)}
	next := map[string]plan.Queue{}
	for _, q := range p.queues {
		next[q.ID] = q
	}
	for _, change := range plan.Plan(p.queues, live, p.limit) {
		next[change.QueueID] = plan.Queue{ID: change.QueueID, Owner: change.Owner, Requester: change.Requester}
	}
	preview.Moves = p.moves(next)
	preview.Shares = p.shares(preview.Moves)
	return preview
}

func (p previewInput) overdue(s roster.ServerRow) bool {
	return p.now.Sub(s.Heartbeat) > s.JudgeDeadInterval
}

// moves compares the present owners with the owners after all hand-overs.
func (p previewInput) moves(next map[string]plan.Queue) (moves []Move) {
	for _, q := range p.queues {
		to := next[q.ID].Requester
		if to == "" {
			to = next[q.ID].Owner
		}
		if to == q.Owner {
			continue
		}
		move := Move{QueueID: q.ID, Requested: to != "" && q.Requester == to, Reason: p.why(q, to)}
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

// why returns the reason for which the planner moves a queue.
func (p previewInput) why(q plan.Queue, to string) string {
	at := slices.IndexFunc(p.servers, func(s roster.ServerRow) bool { return s.UUID == q.Owner })
	switch {
	case q.Owner == "":
		return "it has no owner"
	case at < 0:
		return "its owner is gone"
	case p.servers[at].State == stateStops:
		return "its owner stops"
	case p.overdue(p.servers[at]):
		return fmt.Sprintf("its owner is dead, silent for %s", p.now.Sub(p.servers[at].Heartbeat).Round(time.Second))
	case p.servers[at].State == StatePaused:
		return "its owner is paused"
	case p.servers[at].State == StateDraining:
		return "its owner is draining"
	case to == "":
		return "no server may own it"
	}
	return "its owner has more than its share"
}

func (p previewInput) shares(moves []Move) []Share {
	held, more := map[string]int{}, map[string]int{}
	for _, q := range p.queues {
		held[q.Owner]++
	}
	for _, m := range moves {
		if m.CurServer != nil {
			more[*m.CurServer]--
		}
		if m.NextServer != nil {
			more[*m.NextServer]++
		}
	}
	list := make([]Share, len(p.servers))
	for i, s := range p.servers {
		state := s.State
		if p.overdue(s) {
			state = "OVERDUE"
		}
		list[i] = Share{UUID: s.UUID, State: state, Queues: held[s.UUID], Next: held[s.UUID] + more[s.UUID]}
	}
	return list
}
