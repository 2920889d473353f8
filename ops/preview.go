package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Preview is the result of a rebalance that is not carried out.
type Preview struct {
	Moves  []Move       // in natural order of the queues
	Shares []Share      // one for each server, the oldest server first
	Load   *LoadPreview // nil: the plan balances the numbers of queues
	// Waiting says, by id, why the queues that would have no owner would have none. Removed and reserved queues are not
	// among them.
	Waiting map[string]string
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

// LoadMoves counts the moves that load_moves_per_hour bounds: they only even the load, and are not requested yet.
func (p Preview) LoadMoves() (n int) {
	for _, m := range p.Moves {
		if m.Rule == plan.Load.String() && !m.Requested {
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
	// the rule that would be broken if the queue stayed, such as "pin", or that no server meets
	Rule   string   `json:"rule"`
	Reason string   `json:"reason"` // the rule, in words
	Load   *float64 `json:"load"`   // executors that the queue needs; nil: not measured, or not read
}

// Share is how many queues a server owns, and would own after the moves.
type Share struct {
	UUID     string   `json:"uuid"`
	State    string   `json:"state"`
	Queues   int      `json:"queues"`
	Next     int      `json:"next_queues"`
	Load     *float64 `json:"load"`      // executors that its queues need; nil: without Preview.Load, or it gets no queues
	NextLoad *float64 `json:"next_load"` // the same after the moves
}

// LoadPreview is what a plan by load knows.
type LoadPreview struct {
	Queues   int `json:"queues"`
	Measured int `json:"measured_queues"` // queues whose load is known; each other one counts as their average
	// the load that a server with the weight 1 would have if queues could be divided
	Fair float64 `json:"fair_load"`
	// Incomplete says that nothing moves to even the load before nine tenths of the queues are measured.
	Incomplete bool `json:"incomplete"`
	// TooLarge are the queues that are larger by a quarter than the part of a server, the largest first: no plan evens
	// them.
	TooLarge []string `json:"too_large_queues"`
	InForce  bool     `json:"in_force"` // balance is LOAD: the servers move the queues
	Budget   int      `json:"budget"`   // if it is in force, how many queues may move now only to even the load
}

// ErrNoLoad means that no queue of a task type has a measured load: its dealer is no Backlogger, or has not counted
// twice.
var ErrNoLoad = errors.New("no queue has a measured load: the dealer counts no backlog, or has counted once so far")

// Scenario is a change of the servers for which Plan computes a preview.
type Scenario struct {
	Add    int      // servers that join
	Remove []string // uuids of servers that stop
	Drain  []string // uuids of servers that an operator drains or pauses: they keep what no other server can take
	Resume []string // uuids of paused or drained servers that may own queues again

	Weights map[string]int // other weights of servers, by uuid

	// ByLoad makes the plan even the loads that the owners of the queues have measured, whatever balance is, and leaves
	// load_moves_per_hour out of account. The load of a queue is the number of executors that it needs to keep up with
	// what arrives, as in the column demand of schedule_backlog, and a thousandth more. If no load is measured, Plan
	// returns ErrNoLoad.
	ByLoad bool
}

// Plan returns what a rebalance would do after the scenario, with overdue servers expired. It reads without locks and
// writes nothing.
func (q *Queues) Plan(ctx context.Context, taskType string, s Scenario) (Preview, error) {
	p, err := q.plan(ctx, taskType, s)
	return p, sqldb.Wrap(err, "preview %s$%s", taskType, q.c.ownSign)
}

func (q *Queues) plan(ctx context.Context, taskType string, s Scenario) (p Preview, err error) {
	in, err := q.readPlanInput(ctx, taskType, s.ByLoad)
	if err != nil {
		return p, err
	}
	err = errors.Join(in.setStates(s.Remove, stateStopping), in.setStates(s.Drain, StateDraining),
		in.setStates(s.Resume, StateServing), in.setWeights(s.Weights))
	if err != nil {
		return p, err
	}
	for i := range s.Add {
		in.servers = append(in.servers, roster.ServerRow{
			UUID: fmt.Sprintf("new-%d", i+1), Host: fmt.Sprintf("new-%d", i+1), State: StateStandby, Weight: 1,
			Registered: in.now.Add(time.Duration(i) * time.Second), New: true, Heartbeat: in.now,
			JudgeDeadInterval: time.Minute,
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
		return nil, fmt.Errorf("worker %s: %w", uuid, center.ErrGone)
	}
	return &in.servers[at], nil
}

// stateStopping is the state of a server that stops in the scenario.
const stateStopping = "STOPS"

// planInput is the input of the planner, and the database's time.
type planInput struct {
	now     time.Time
	task    TaskRecord
	queues  []plan.Queue
	servers []roster.ServerRow
	limits  plan.Limits

	elsewhere map[string]int // by process: its queues of other task types
	load      *LoadPreview   // nil: the numbers of queues are balanced
}

func (q *Queues) readPlanInput(ctx context.Context, taskType string, byLoad bool) (in planInput, err error) {
	tasks, err := q.c.Tasks().List(ctx, taskType)
	if err != nil {
		return in, err
	}
	in.task = tasks[0]
	if in.now, err = q.c.db.Clock(ctx); err != nil {
		return in, err
	}
	r := q.c.roster.Reader(taskType)
	if in.servers, err = r.Servers(ctx); err != nil {
		return in, err
	}
	now, err := r.PlanInput(ctx, in.servers)
	if err != nil {
		return in, err
	}
	in.queues, in.limits, in.elsewhere = now.Queues, now.Limits, map[string]int{}
	for i, s := range in.servers {
		in.elsewhere[s.Process] = now.Servers[i].Elsewhere
	}
	return in, in.readLoads(ctx, r, byLoad)
}

// readLoads reads the loads if the preview is to even them although balance is QUEUES, or without the bound of the
// hour.
func (in *planInput) readLoads(ctx context.Context, r roster.Reader, byLoad bool) (err error) {
	inForce := in.limits.Loads != nil
	if !byLoad && !inForce {
		return nil
	}
	in.load = &LoadPreview{Queues: len(in.queues), InForce: inForce}
	if inForce {
		in.load.Budget = in.limits.Loads.Budget
	}
	if byLoad {
		if in.limits.Loads, err = r.LoadsOf(ctx); err != nil {
			return err
		}
	}
	for _, q := range in.queues {
		if _, ok := in.limits.Loads.Of[q.ID]; ok {
			in.load.Measured++
		}
	}
	if byLoad && in.load.Measured == 0 {
		return ErrNoLoad
	}
	return nil
}

func (in planInput) plan() Preview {
	result := plan.Plan(in.queues, in.live(), in.limits)
	p := Preview{Load: in.load, Waiting: map[string]string{}}
	for id, waiting := range result.Waiting {
		p.Waiting[id] = waiting.Text
	}
	if p.Load != nil {
		p.Load.Fair, p.Load.Incomplete, p.Load.TooLarge = result.Loads.Fair, result.Loads.Incomplete, result.Loads.TooLarge
	}
	for _, c := range result.Changes {
		if to := cmp.Or(c.Requester, c.Owner); to != c.OldOwner {
			p.Moves = append(p.Moves, in.move(c, to))
		}
	}
	for _, c := range result.Stands {
		m := in.move(c, c.Requester)
		m.Requested = true
		p.Moves = append(p.Moves, m)
	}
	slices.SortFunc(p.Moves, func(a, b Move) int { return plan.CompareIDs(a.QueueID, b.QueueID) })
	p.Shares = in.shares(p.Moves, result.Loads)
	return p
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
	return roster.Dead(in.now.Sub(s.Heartbeat), s.JudgeDeadInterval)
}

func (in planInput) move(c plan.Change, to string) Move {
	m := Move{QueueID: c.QueueID, Rule: c.Rule.String(), Reason: in.reason(c)}
	if c.OldOwner != "" {
		m.CurServer = &c.OldOwner
	}
	if to != "" {
		m.NextServer = &to
	}
	if in.limits.Loads != nil {
		if load, ok := in.limits.Loads.Of[c.QueueID]; ok {
			m.Load = &load
		}
	}
	return m
}

// reason says in words why the queue moves. It says more than the planner, which does not know dead servers, and does
// not know why a live one may own no queues.
func (in planInput) reason(c plan.Change) string {
	at := slices.IndexFunc(in.servers, func(s roster.ServerRow) bool { return s.UUID == c.OldOwner })
	switch {
	case c.Rule == plan.Unowned && c.OldOwner == "":
		return "it has no owner"
	case c.Rule == plan.Unowned && at < 0:
		return "its owner is gone"
	case c.Rule == plan.Unowned && in.servers[at].State == stateStopping:
		return "its owner stops"
	case c.Rule == plan.Unowned:
		return fmt.Sprintf("its owner is dead, silent for %s", in.now.Sub(in.servers[at].Heartbeat).Round(time.Second))
	case c.Rule == plan.Ineligible && at >= 0 && c.Owner != "":
		return "its owner is " + strings.ToLower(in.servers[at].State)
	}
	return c.Reason
}

func (in planInput) shares(moves []Move, loads *plan.LoadResult) []Share {
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
		if loads != nil {
			if load, works := loads.Before[s.UUID]; works {
				next := loads.After[s.UUID]
				list[i].Load, list[i].NextLoad = &load, &next
			}
		}
	}
	return list
}

// ErrOtherTask means that none of the servers with a name serves the task type in question.
var ErrOtherTask = errors.New("the worker serves another task type")

// Scenario returns the scenario in which add servers join the task type and its named servers stop. A name is as
// Servers.Matching takes it. Scenario returns ErrOtherTask if no server with a name serves the task type.
func (q *Queues) Scenario(ctx context.Context, taskType string, add int, names ...string) (Scenario, error) {
	s := Scenario{Add: add}
	for _, name := range names {
		servers, err := q.c.Servers().Matching(ctx, name)
		if err != nil {
			return s, err
		}
		serve := slices.DeleteFunc(slices.Clone(servers),
			func(server ServerRecord) bool { return server.TaskType != taskType })
		if len(serve) == 0 {
			return s, fmt.Errorf("plan %s without worker %s: %w: %s", taskType, servers[0].UUID, ErrOtherTask,
				servers[0].TaskType)
		}
		for _, server := range serve {
			if !slices.Contains(s.Remove, server.UUID) { // two names can mean one server
				s.Remove = append(s.Remove, server.UUID)
			}
		}
	}
	return s, nil
}
