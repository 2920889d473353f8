package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/ops"
)

// maxAdd is beyond any roster.
const maxAdd = 100_000

func newPlanCommand() *cobra.Command {
	var o output
	var add int
	var remove, weights []string
	var byLoad bool
	cmd := &cobra.Command{
		Use:   "plan TASK",
		Short: "Show which queues would move, and why; write nothing",
		Long: `Show which queues would move, and why: with the servers as they are, or if
servers joined (--add), stopped (--remove) or had another weight (--weight). It
writes nothing.

--by-load shows the plan that evens the load, so that no server is much busier
than the others. The load of a queue is the number of executors that it needs to
keep up with what arrives, as its owner measures it beside its backlog. The
servers plan so if the setting balance is LOAD. Otherwise they balance the
numbers of queues.`,
		Example: `  rota plan settle
  rota plan settle --add 2
  rota plan settle --remove web1:4711 --remove web2:815
  rota plan settle --weight web1=3
  rota plan settle --by-load`,
		Args:              arguments("TASK"),
		ValidArgsFunction: complete(listTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if add < 0 || add > maxAdd {
				return usageError{fmt.Errorf("--add (%d) must be between 0 and %d", add, maxAdd)}
			}
			return show(cmd, o, func(ctx context.Context, c *ops.Client) (result, error) {
				return showPlan(ctx, c, args[0], byLoad, add, remove, weights)
			})
		},
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &o)
	cmd.Flags().IntVar(&add, "add", 0, "as if this many servers joined")
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "as if this `SERVER` (a uuid, host:pid or host) stopped; "+
		"repeatable")
	completeFlag(cmd, "remove", listServers)
	cmd.Flags().BoolVar(&byLoad, "by-load", false, "as if balance were LOAD, without load_moves_per_hour")
	cmd.Flags().StringArrayVar(&weights, "weight", nil, "as if a server had another weight: `SERVER=WEIGHT`; repeatable")
	return cmd
}

// planRecord is the output in JSON.
type planRecord struct {
	TaskType string           `json:"task_type"`
	OwnSign  string           `json:"own_sign"`
	Moves    []ops.Move       `json:"moves"`
	Moved    int              `json:"moved"`
	Servers  []ops.Share      `json:"servers"`
	Load     *ops.LoadPreview `json:"load"`
}

// csvRecords implements csvRecorder.
func (p planRecord) csvRecords() any { return p.Moves }

func showPlan(ctx context.Context, c *ops.Client, taskType string, byLoad bool, add int, remove,
	weights []string,
) (result, error) {
	if err := requireTask(ctx, c, taskType); err != nil {
		return result{}, err
	}
	scenario, err := c.Queues().Scenario(ctx, taskType, add, remove...)
	if err != nil {
		return result{}, err
	}
	scenario.ByLoad = byLoad
	if scenario.Weights, err = weightsOf(ctx, c, taskType, weights); err != nil {
		return result{}, err
	}
	p, err := c.Queues().Plan(ctx, taskType, scenario)
	if err != nil {
		return result{}, err
	}
	record := planRecord{taskType, c.OwnSign(), p.Moves, p.Moved(), p.Shares, p.Load}
	if record.Moves == nil {
		record.Moves = []ops.Move{} // [] in JSON
	}
	return result{records: record, text: func(sc screen) string { return planText(sc, p) }}, nil
}

// weightsOf returns the weights by uuid. Each text is SERVER=WEIGHT.
func weightsOf(ctx context.Context, c *ops.Client, taskType string, texts []string) (map[string]int, error) {
	weights := map[string]int{}
	for _, text := range texts {
		name, number, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--weight (%s) must be SERVER=WEIGHT", text)}
		}
		weight, err := ops.ParseWeight(number)
		if err != nil {
			return nil, usageError{fmt.Errorf("--weight (%s): %w", text, err)}
		}
		named, err := c.Queues().Scenario(ctx, taskType, 0, name)
		if err != nil {
			return nil, err
		}
		for _, uuid := range named.Remove {
			weights[uuid] = weight
		}
	}
	return weights, nil
}

func planText(s screen, p ops.Preview) string {
	var parts []string
	if len(p.Moves) > 0 {
		columns := moveColumns
		if p.Load != nil {
			columns = slices.Insert(slices.Clone(columns), 3, moveLoadColumn)
		}
		parts = append(parts, render(s, p.Moves, columns))
	}
	total := "no queue would move"
	if len(p.Moves) > 0 {
		total = plural.Of(p.Moved(), "queue", "queues") + " would move"
	}
	if unowned := len(p.Moves) - p.Moved(); unowned > 0 {
		total += fmt.Sprintf("; %d would have no owner", unowned)
	}
	columns := shareColumns
	if p.Load != nil {
		total += "\n" + loadText(p)
		columns = slices.Concat(columns, shareLoadColumns)
	}
	return strings.Join(append(parts, total, render(s, p.Shares, columns)), "\n\n")
}

// loadText says what is known of the load.
func loadText(p ops.Preview) string {
	l := p.Load
	text := fmt.Sprintf("%d of %s measured; a server of weight 1 should have a load of %.2f",
		l.Measured, plural.Of(l.Queues, "queue is", "queues are"), l.Fair)
	switch {
	case l.Incomplete:
		text += "\nno queue moves to even the load before nine tenths of the queues are measured"
	case !l.InForce:
		text += "\nthe servers do not plan so, because balance is QUEUES"
	case p.LoadMoves() > l.Budget:
		text += fmt.Sprintf("\nload_moves_per_hour lets %d of the %d queues that even the load move now", l.Budget,
			p.LoadMoves())
	}
	if len(l.TooLarge) > 0 {
		text += "\n" + plural.Of(len(l.TooLarge), "queue has", "queues have") +
			" more than that and cannot be divided: " + firstOf(l.TooLarge, 5)
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

var moveColumns = []column[ops.Move]{
	{title: "QUEUE", text: func(m ops.Move) string { return m.QueueID }},
	{title: "FROM", text: func(m ops.Move) string { return valueOrDash(m.CurServer) }, uuid: true},
	{title: "TO", text: func(m ops.Move) string { return valueOrDash(m.NextServer) }, uuid: true},
	{title: "REASON", text: moveText, truncate: true},
}

var moveLoadColumn = column[ops.Move]{
	title: "LOAD", text: func(m ops.Move) string { return figure(m.Load) },
	right: true,
}

func moveText(m ops.Move) string {
	if m.Requested {
		return m.Reason + "; already requested"
	}
	return m.Reason
}

var shareColumns = []column[ops.Share]{
	{title: "SERVER", text: func(s ops.Share) string { return s.UUID }, uuid: true},
	{title: "STATE", text: func(s ops.Share) string { return s.State }, color: byMeaning[ops.Share]},
	{title: "QUEUES", text: func(s ops.Share) string { return fmt.Sprint(s.Queues) }, right: true},
	{title: "PLANNED", text: func(s ops.Share) string { return fmt.Sprint(s.Next) }, right: true},
}

var shareLoadColumns = []column[ops.Share]{
	{title: "LOAD", text: func(s ops.Share) string { return figure(s.Load) }, right: true},
	{title: "PLANNED LOAD", text: func(s ops.Share) string { return figure(s.NextLoad) }, right: true},
}

// figure returns a load as text.
func figure(load *float64) string {
	if load == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *load)
}
