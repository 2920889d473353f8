package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newPlanCommand() *cobra.Command {
	var o output
	var add int
	var remove []string
	cmd := &cobra.Command{
		Use:   "plan TASK",
		Short: "See which queues would move, and why, without moving any",
		Long: `See which queues would move, and why, without moving any: as the rows are, or if
servers joined (--add) or stopped (--remove). Nothing is written.`,
		Example: `  rota plan settle
  rota plan settle --add 2
  rota plan settle --remove web1:4711 --remove web2:815`,
		Args:              arguments("TASK"),
		ValidArgsFunction: complete(taskNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if add < 0 || add > maxAdd {
				return usageError{fmt.Errorf("--add (%d): must be between 0 and %d", add, maxAdd)}
			}
			return show(cmd, o, func(ctx context.Context, c *center.Center) (reply, error) {
				return plan(ctx, c, args[0], add, remove)
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &o, true)
	cmd.Flags().IntVar(&add, "add", 0, "if so many servers joined")
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "if this server stopped; may be given several times")
	completeFlag(cmd, "remove", serverUUIDs)
	return cmd
}

// maxAdd is more servers than anybody has.
const maxAdd = 100_000

// planRecord is the answer in JSON.
type planRecord struct {
	TaskType string         `json:"task_type"`
	OwnSign  string         `json:"own_sign"`
	Moves    []center.Move  `json:"moves"`
	Moved    int            `json:"moved"`
	Minimum  int            `json:"minimum"`
	Servers  []center.Share `json:"servers"`
}

// CSV is of the moves alone.
func (p planRecord) rows() any { return p.Moves }

func plan(ctx context.Context, c *center.Center, task string, add int, remove []string) (reply, error) {
	s := center.Scenario{Add: add}
	if err := mustExist(ctx, c, task); err != nil {
		return reply{}, err
	}
	for _, name := range remove {
		server, err := resolveServer(ctx, c, name)
		if err != nil {
			return reply{}, err
		}
		if server.TaskType != task {
			return reply{}, usageError{fmt.Errorf("server %s serves %s, not %s", server.UUID, server.TaskType, task)}
		}
		s.Remove = append(s.Remove, server.UUID)
	}
	p, err := c.PreviewPlan(ctx, task, s)
	if err != nil {
		return reply{}, err
	}
	record := planRecord{task, c.OwnSign(), p.Moves, p.Moved(), p.Minimum, p.Shares}
	if record.Moves == nil {
		record.Moves = []center.Move{}
	}
	return reply{record, func(sc screen) string { return planText(sc, p) }}, nil
}

func planText(s screen, p center.Preview) string {
	shares := render(s, p.Shares, shareFields)
	if len(p.Moves) == 0 {
		return "nothing would move\n\n" + shares
	}
	total := fmt.Sprintf("%s would move; the least that balances the load is %d", plural(p.Moved(), "queue", "queues"), p.Minimum)
	if lost := len(p.Moves) - p.Moved(); lost > 0 {
		total += fmt.Sprintf("; %d would have no owner", lost)
	}
	return render(s, p.Moves, moveFields) + "\n\n" + total + "\n\n" + shares
}

var moveFields = []field[center.Move]{
	{title: "QUEUE", text: func(m center.Move) string { return m.QueueID }},
	{title: "FROM", text: func(m center.Move) string { return deref(m.CurServer) }, uuid: true},
	{title: "TO", text: func(m center.Move) string { return deref(m.NextServer) }, uuid: true},
	{title: "WHY", text: moveReason, free: true},
}

func moveReason(m center.Move) string {
	if m.Requested {
		return m.Reason + "; asked for already"
	}
	return m.Reason
}

var shareFields = []field[center.Share]{
	{title: "SERVER", text: func(s center.Share) string { return s.UUID }, uuid: true},
	{title: "STATE", text: func(s center.Share) string { return s.State }, color: byMeaning[center.Share]},
	{title: "QUEUES", text: func(s center.Share) string { return fmt.Sprint(s.Queues) }, right: true},
	{title: "THEN", text: func(s center.Share) string { return fmt.Sprint(s.Next) }, right: true},
}
