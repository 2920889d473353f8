package center

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/plan"
)

// LoadPreview is what a plan by load would do, and does not.
type LoadPreview struct {
	Moves    []LoadMove
	Servers  []LoadShare // one for each server that may own queues, the oldest first
	Queues   int
	Measured int     // queues whose load is known; each other one counts as their average
	Fair     float64 // the load that a server with the weight 1 would have if queues could be divided
	Largest  float64 // the largest load of a queue; no server that owns it has less
}

// LoadMove is a queue that would move because of its load.
type LoadMove struct {
	QueueID    string  `json:"queue_id"`
	CurServer  string  `json:"cur_server"`
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

// A plan by load begins when the busiest server has a quarter more than its fair part, and ends within a tenth.
const (
	loadStart = 0.25
	loadStop  = 0.1
)

// loadAge is the age up to which a measured load counts.
const loadAge = 10 * time.Minute

// PlanByLoad returns which queues would move, by the loads that their owners have measured, so that no server is much busier
// than the others for its weight. Nothing moves by load: the servers keep to Plan, by the numbers of queues. It reads without
// locks and writes nothing. budget bounds the moves; a negative one does not.
//
// The load of a queue is the number of executors that it needs to keep up with what arrives, as in the column demand of
// schedule_backlog. If no queue has one, PlanByLoad returns ErrNoLoad.
func (q *Queues) PlanByLoad(ctx context.Context, taskType string, budget int) (p LoadPreview, err error) {
	in, err := q.readPlanInput(ctx, taskType)
	if err != nil {
		return p, fmt.Errorf("plan %s$%s by load: %w", taskType, q.c.ownSign, err)
	}
	loads, err := q.loads(ctx, taskType)
	if err != nil {
		return p, fmt.Errorf("plan %s$%s by load: %w", taskType, q.c.ownSign, err)
	}
	var live []plan.Server
	for _, s := range in.servers {
		if !in.overdue(s) {
			live = append(live, s.PlanServer())
		}
	}
	result := plan.ByLoad(in.queues, live, in.limits, loads, plan.LoadOptions{Start: loadStart, Stop: loadStop, Budget: budget})
	p = LoadPreview{Queues: len(in.queues), Fair: result.Fair, Largest: result.Largest}
	for _, queue := range in.queues {
		if _, ok := loads[queue.ID]; ok {
			p.Measured++
		}
	}
	if p.Measured == 0 {
		return p, fmt.Errorf("plan %s$%s by load: %w", taskType, q.c.ownSign, ErrNoLoad)
	}
	for _, m := range result.Moves {
		p.Moves = append(p.Moves, LoadMove{m.QueueID, m.From, m.To, m.Load})
	}
	slices.SortFunc(p.Moves, func(a, b LoadMove) int { return plan.CompareIDs(a.QueueID, b.QueueID) })
	for _, s := range live {
		if load, ok := result.Before[s.UUID]; ok {
			p.Servers = append(p.Servers, LoadShare{s.UUID, load, result.After[s.UUID]})
		}
	}
	return p, nil
}

// loads returns the measured loads of the queues.
func (q *Queues) loads(ctx context.Context, taskType string) (loads map[string]float64, err error) {
	loads = map[string]float64{}
	err = q.c.db.Each(ctx, func(rows *sql.Rows) error {
		var id string
		var demand float64
		err := rows.Scan(&id, &demand)
		loads[id] = demand
		return err
	}, `SELECT queue_id, demand FROM schedule_backlog WHERE task_type = ? AND own_sign = ? AND demand IS NOT NULL AND measured_at >= {ago `+fmt.Sprint(loadAge.Milliseconds())+`}`,
		taskType, q.c.ownSign)
	if err != nil {
		return nil, fmt.Errorf("read the loads: %w", err)
	}
	return loads, nil
}
