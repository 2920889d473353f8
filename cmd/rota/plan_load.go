package main

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
)

// loadPlanRecord is the output in JSON.
type loadPlanRecord struct {
	TaskType string             `json:"task_type"`
	OwnSign  string             `json:"own_sign"`
	Moves    []center.LoadMove  `json:"moves"`
	Servers  []center.LoadShare `json:"servers"`
	Queues   int                `json:"queues"`
	Measured int                `json:"measured_queues"`
	Fair     float64            `json:"fair_load"`
	Largest  float64            `json:"largest_load"`
}

// csvRecords implements csvRecorder.
func (p loadPlanRecord) csvRecords() any { return p.Moves }

func showPlanByLoad(ctx context.Context, c *center.Center, taskType string) (result, error) {
	if err := requireTask(ctx, c, taskType); err != nil {
		return result{}, err
	}
	p, err := c.Queues().PlanByLoad(ctx, taskType, -1)
	if err != nil {
		return result{}, err
	}
	record := loadPlanRecord{taskType, c.OwnSign(), p.Moves, p.Servers, p.Queues, p.Measured, p.Fair, p.Largest}
	if record.Moves == nil {
		record.Moves = []center.LoadMove{} // [] in JSON
	}
	return result{records: record, text: func(s screen) string { return loadPlanText(s, p) }}, nil
}

func loadPlanText(s screen, p center.LoadPreview) string {
	servers := render(s, p.Servers, loadColumns)
	about := fmt.Sprintf("%d of %s measured; the fair load is %.2f, the largest of a queue %.2f", p.Measured, plural.Of(p.Queues, "queue is", "queues are"), p.Fair, p.Largest)
	if len(p.Moves) == 0 {
		return "by load, no queue would move\n" + about + "\n\n" + servers
	}
	return render(s, p.Moves, loadMoveColumns) + "\n\n" + fmt.Sprintf("by load, %s would move; nothing does\n", plural.Of(len(p.Moves), "queue", "queues")) + about + "\n\n" + servers
}

var loadMoveColumns = []column[center.LoadMove]{
	{title: "QUEUE", text: func(m center.LoadMove) string { return m.QueueID }},
	{title: "FROM", text: func(m center.LoadMove) string { return m.CurServer }, uuid: true},
	{title: "TO", text: func(m center.LoadMove) string { return m.NextServer }, uuid: true},
	{title: "LOAD", text: func(m center.LoadMove) string { return fmt.Sprintf("%.2f", m.Load) }, right: true},
}

var loadColumns = []column[center.LoadShare]{
	{title: "SERVER", text: func(s center.LoadShare) string { return s.UUID }, uuid: true},
	{title: "LOAD", text: func(s center.LoadShare) string { return fmt.Sprintf("%.2f", s.Load) }, right: true},
	{title: "PLANNED", text: func(s center.LoadShare) string { return fmt.Sprintf("%.2f", s.Next) }, right: true},
}
