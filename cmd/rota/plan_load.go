package main

import (
	"context"
	"fmt"
	"strings"

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
	Uneven   bool               `json:"uneven"`
	TooLarge []string           `json:"too_large_queues"`
	InForce  bool               `json:"in_force"`
	Budget   int                `json:"budget"`
}

// csvRecords implements csvRecorder.
func (p loadPlanRecord) csvRecords() any { return p.Moves }

func showPlanByLoad(ctx context.Context, c *center.Center, taskType string) (result, error) {
	if err := requireTask(ctx, c, taskType); err != nil {
		return result{}, err
	}
	p, err := c.Queues().PlanByLoad(ctx, taskType)
	if err != nil {
		return result{}, err
	}
	record := loadPlanRecord{taskType, c.OwnSign(), p.Moves, p.Servers, p.Queues, p.Measured, p.Fair, p.Uneven, p.TooLarge, p.InForce, p.Budget}
	if record.Moves == nil {
		record.Moves = []center.LoadMove{} // [] in JSON
	}
	if record.TooLarge == nil {
		record.TooLarge = []string{}
	}
	return result{records: record, text: func(s screen) string { return loadPlanText(s, p) }}, nil
}

func loadPlanText(s screen, p center.LoadPreview) string {
	parts := []string{loadMovesText(p), fmt.Sprintf("%d of %s measured; a server of weight 1 should have a load of %.2f", p.Measured, plural.Of(p.Queues, "queue is", "queues are"), p.Fair)}
	if len(p.TooLarge) > 0 {
		parts = append(parts, plural.Of(len(p.TooLarge), "queue has", "queues have")+" more than that and cannot be divided: "+firstOf(p.TooLarge, 5))
	}
	text := strings.Join(parts, "\n") + "\n\n" + render(s, p.Servers, loadColumns)
	if len(p.Moves) > 0 {
		text = render(s, p.Moves, loadMoveColumns) + "\n\n" + text
	}
	return text
}

// firstOf lists the first n ids.
func firstOf(ids []string, n int) string {
	text := strings.Join(ids[:min(n, len(ids))], ", ")
	if len(ids) > n {
		text += fmt.Sprintf(" and %d more", len(ids)-n)
	}
	return text
}

func loadMovesText(p center.LoadPreview) string {
	moves := "no queue would move to even the load"
	if len(p.Moves) > 0 {
		moves = plural.Of(len(p.Moves), "queue", "queues") + " would move to even the load"
	}
	switch {
	case p.Incomplete:
		return moves + " before nine tenths of the queues are measured"
	case !p.InForce:
		return moves + "; none does, because balance is QUEUES"
	case len(p.Moves) > p.Budget:
		return fmt.Sprintf("%s; load_moves_per_hour lets %d move now", moves, p.Budget)
	case len(p.Moves) > 0:
		return moves + " within half a minute"
	}
	return moves
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
