package center

import (
	"context"
	"errors"
	"fmt"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/roster"
)

// LoadPreview is what would move to even the loads of the servers.
type LoadPreview struct {
	Moves    []LoadMove
	Servers  []LoadShare // one for each server that may own queues, the oldest first
	Queues   int
	Measured int     // queues whose load is known; each other one counts as their average
	Fair     float64 // the load that a server with the weight 1 would have if queues could be divided
	// Incomplete says that nothing moves before nine tenths of the queues are measured.
	Incomplete bool
	Uneven     bool     // a server has so much more than its part that queues move
	TooLarge   []string // queues that are larger by a quarter than the part of a server, the largest first: no plan evens their loads
	InForce    bool     // balance is LOAD: the servers move the queues
	Budget     int      // if it is in force, how many queues may move now
}

// LoadMove is a queue that would move because of its load.
type LoadMove struct {
	QueueID    string  `json:"queue_id"`
	CurServer  string  `json:"cur_server"` // the owner, or the server that has requested the queue
	NextServer string  `json:"next_server"`
	Load       float64 `json:"load"` // executors that the queue needs
}

// LoadShare is the load of a server: the executors that its queues need.
type LoadShare struct {
	UUID string  `json:"uuid"`
	Load float64 `json:"load"`
	Next float64 `json:"next_load"`
}

// ErrNoLoad means that no queue of a task type has a measured load: its dealer is no Backlogger, or has not counted twice.
var ErrNoLoad = errors.New("no queue has a measured load: the dealer counts no backlog, or has counted once so far")

// PlanByLoad returns which queues would move, by the loads that their owners have measured, so that no server is much busier
// than the others for its weight. It leaves load_moves_per_hour out of account. It reads without locks and writes nothing. The
// servers move these queues if the setting balance is LOAD; otherwise they keep to Plan, by the numbers of queues.
//
// The load of a queue is the number of executors that it needs to keep up with what arrives, as in the column demand of
// schedule_backlog, and a thousandth more. If no queue has one, PlanByLoad returns ErrNoLoad.
func (q *Queues) PlanByLoad(ctx context.Context, taskType string) (LoadPreview, error) {
	p, err := q.planByLoad(ctx, taskType)
	if err != nil {
		return p, fmt.Errorf("plan %s$%s by load: %w", taskType, q.c.ownSign, err)
	}
	return p, nil
}

func (q *Queues) planByLoad(ctx context.Context, taskType string) (p LoadPreview, err error) {
	in, err := q.readPlanInput(ctx, taskType)
	if err != nil {
		return p, err
	}
	if in.limits.Loads != nil {
		p.InForce, p.Budget = true, in.limits.Loads.Budget
	}
	r := roster.Reader{DB: q.c.db.Store, Dialect: q.c.db.Dialect, TaskType: taskType, OwnSign: q.c.ownSign}
	if in.limits.Loads, err = r.LoadsOf(ctx); err != nil {
		return p, err
	}
	p.Queues = len(in.queues)
	for _, queue := range in.queues {
		if _, ok := in.limits.Loads.Of[queue.ID]; ok {
			p.Measured++
		}
	}
	if p.Measured == 0 {
		return p, ErrNoLoad
	}
	live := in.live()
	result := plan.ByLoad(in.queues, live, in.limits)
	p.Fair, p.Incomplete, p.Uneven, p.TooLarge = result.Fair, result.Incomplete, result.Uneven, result.TooLarge
	for _, m := range result.Moves {
		p.Moves = append(p.Moves, LoadMove{m.QueueID, m.From, m.To, m.Load})
	}
	for _, s := range live {
		if load, ok := result.Before[s.UUID]; ok {
			p.Servers = append(p.Servers, LoadShare{s.UUID, load, result.After[s.UUID]})
		}
	}
	return p, nil
}
