package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
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

--by-load shows which queues would move so that no server is much busier than
the others. The load of a queue is the number of executors that it needs to keep
up with what arrives, as its owner measures it beside its backlog. The servers
move these queues if the setting balance is LOAD. Otherwise they balance the
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
			if byLoad && (add > 0 || len(remove) > 0 || len(weights) > 0) {
				return usageError{errors.New("--by-load shows the servers as they are: without --add, --remove and --weight")}
			}
			if byLoad {
				return show(cmd, o, func(ctx context.Context, c *center.Center) (result, error) {
					return showPlanByLoad(ctx, c, args[0])
				})
			}
			return show(cmd, o, func(ctx context.Context, c *center.Center) (result, error) {
				return showPlan(ctx, c, args[0], add, remove, weights)
			})
		},
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &o)
	cmd.Flags().IntVar(&add, "add", 0, "as if this many servers joined")
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "as if this `SERVER` (a uuid, host:pid or host) stopped; repeatable")
	completeFlag(cmd, "remove", listServers)
	cmd.Flags().BoolVar(&byLoad, "by-load", false, "which queues would move to even the measured load")
	cmd.Flags().StringArrayVar(&weights, "weight", nil, "as if a server had another weight: `SERVER=WEIGHT`; repeatable")
	return cmd
}

// planRecord is the output in JSON.
type planRecord struct {
	TaskType string         `json:"task_type"`
	OwnSign  string         `json:"own_sign"`
	Moves    []center.Move  `json:"moves"`
	Moved    int            `json:"moved"`
	Minimum  int            `json:"minimum"`
	Servers  []center.Share `json:"servers"`
}

// csvRecords implements csvRecorder.
func (p planRecord) csvRecords() any { return p.Moves }

func showPlan(ctx context.Context, c *center.Center, taskType string, add int, remove, weights []string) (result, error) {
	if err := requireTask(ctx, c, taskType); err != nil {
		return result{}, err
	}
	scenario, err := c.Queues().Scenario(ctx, taskType, add, remove...)
	if err != nil {
		return result{}, err
	}
	if scenario.Weights, err = weightsOf(ctx, c, taskType, weights); err != nil {
		return result{}, err
	}
	p, err := c.Queues().Plan(ctx, taskType, scenario)
	if err != nil {
		return result{}, err
	}
	record := planRecord{taskType, c.OwnSign(), p.Moves, p.Moved(), p.Minimum, p.Shares}
	if record.Moves == nil {
		record.Moves = []center.Move{} // [] in JSON
	}
	return result{records: record, text: func(sc screen) string { return planText(sc, p) }}, nil
}

// weightsOf returns the weights by uuid. Each text is SERVER=WEIGHT.
func weightsOf(ctx context.Context, c *center.Center, taskType string, texts []string) (map[string]int, error) {
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

func planText(s screen, p center.Preview) string {
	shares := render(s, p.Shares, shareColumns)
	if len(p.Moves) == 0 {
		return "no queue would move\n\n" + shares
	}
	total := fmt.Sprintf("%s would move; the minimum that balances the load is %d", plural.Of(p.Moved(), "queue", "queues"), p.Minimum)
	if unowned := len(p.Moves) - p.Moved(); unowned > 0 {
		total += fmt.Sprintf("; %d would have no owner", unowned)
	}
	return render(s, p.Moves, moveColumns) + "\n\n" + total + "\n\n" + shares
}

var moveColumns = []column[center.Move]{
	{title: "QUEUE", text: func(m center.Move) string { return m.QueueID }},
	{title: "FROM", text: func(m center.Move) string { return valueOrDash(m.CurServer) }, uuid: true},
	{title: "TO", text: func(m center.Move) string { return valueOrDash(m.NextServer) }, uuid: true},
	{title: "REASON", text: moveReason, truncate: true},
}

func moveReason(m center.Move) string {
	if m.Requested {
		return m.Reason + "; already requested"
	}
	return m.Reason
}

var shareColumns = []column[center.Share]{
	{title: "SERVER", text: func(s center.Share) string { return s.UUID }, uuid: true},
	{title: "STATE", text: func(s center.Share) string { return s.State }, color: byMeaning[center.Share]},
	{title: "QUEUES", text: func(s center.Share) string { return fmt.Sprint(s.Queues) }, right: true},
	{title: "PLANNED", text: func(s center.Share) string { return fmt.Sprint(s.Next) }, right: true},
}
