package rostercmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
)

// maxAdd is beyond any roster.
const maxAdd = 100_000

func newPlanCommand() *cobra.Command {
	var add int
	var remove, weights []string
	var byLoad bool
	cmd := cli.Shows(&cobra.Command{
		Use:   "plan TASK",
		Short: "Show which queues would move, and why; write nothing",
		Long: `Show which queues would move, and why: with the workers as they are, or if
workers joined (--add), stopped (--remove) or had another weight (--weight). It
writes nothing.

--by-load shows the plan that evens the load, so that no worker is much busier
than the others. The load of a queue is the number of executors that it needs to
keep up with what arrives, as its owner measures it beside its backlog. The
workers plan so if the setting balance is LOAD. Otherwise they balance the
numbers of queues.`,
		Example: `  rota plan settle
  rota plan settle --add 2
  rota plan settle --remove web1:4711 --remove web2:815
  rota plan settle --weight web1=3
  rota plan settle --by-load`,
	}, new(cli.Output), func(ctx context.Context, c *ops.Client, args []string) (cli.Result, error) {
		return showPlan(ctx, c, args[0], byLoad, add, remove, weights)
	}, cli.Names("task"))
	cli.Check(cmd, func([]string) error {
		if add < 0 || add > maxAdd {
			return fmt.Errorf("--add (%d) must be between 0 and %d", add, maxAdd)
		}
		return nil
	})
	cmd.Flags().IntVar(&add, "add", 0, "as if this many workers joined, each on a host of its own and without labels")
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "as if this `WORKER` (a uuid, host:pid or host) stopped; "+
		"repeatable")
	cli.CompleteFlag(cmd, "remove", cli.Names("worker"))
	cmd.Flags().BoolVar(&byLoad, "by-load", false, "as if balance were LOAD, without load_moves_per_hour")
	cmd.Flags().StringArrayVar(&weights, "weight", nil, "as if a worker had another weight: `WORKER=WEIGHT`; repeatable")
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

// CSVRecords implements csvRecorder.
func (p planRecord) CSVRecords() any { return p.Moves }

func showPlan(ctx context.Context, c *ops.Client, taskType string, byLoad bool, add int, remove,
	weights []string,
) (cli.Result, error) {
	if err := cli.RequireTask(ctx, c, taskType); err != nil {
		return cli.Result{}, err
	}
	scenario, err := c.Queues().Scenario(ctx, taskType, add, remove...)
	if err != nil {
		return cli.Result{}, err
	}
	scenario.ByLoad = byLoad
	if scenario.Weights, err = weightsOf(ctx, c, taskType, weights); err != nil {
		return cli.Result{}, err
	}
	p, err := c.Queues().Plan(ctx, taskType, scenario)
	if err != nil {
		return cli.Result{}, err
	}
	record := planRecord{taskType, c.OwnSign(), p.Moves, p.Moved(), p.Shares, p.Load}
	if record.Moves == nil {
		record.Moves = []ops.Move{} // [] in JSON
	}
	return cli.Result{Records: record, Text: func(sc cli.Screen) string { return PlanText(sc, p) }}, nil
}

// weightsOf returns the weights by uuid. Each text is WORKER=WEIGHT.
func weightsOf(ctx context.Context, c *ops.Client, taskType string, texts []string) (map[string]int, error) {
	weights := map[string]int{}
	for _, text := range texts {
		name, number, ok := strings.Cut(text, "=")
		if !ok {
			return nil, cli.Usage(fmt.Errorf("--weight (%s) must be WORKER=WEIGHT", text))
		}
		weight, err := verbs.ParseWeight(number)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("--weight (%s): %w", text, err))
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

// PlanText shows the moves of a plan and what each server owns after them.
func PlanText(s cli.Screen, p ops.Preview) string {
	var parts []string
	if len(p.Moves) > 0 {
		parts = append(parts, cli.Render(s, p.Moves, func(m ops.Move) cli.Row { return moveRow(m, p.Load != nil) }))
	}
	total := "no queue would move"
	if len(p.Moves) > 0 {
		total = human.Count(p.Moved(), "queue", "queues") + " would move"
	}
	if unowned := len(p.Moves) - p.Moved(); unowned > 0 {
		total += fmt.Sprintf("; %d would have no owner", unowned)
	}
	if p.Load != nil {
		total += "\n" + loadText(p)
	}
	shares := cli.Render(s, p.Shares, func(s ops.Share) cli.Row { return shareRow(s, p.Load != nil) })
	return strings.Join(append(parts, total, shares), "\n\n")
}

// loadText says what is known of the load.
func loadText(p ops.Preview) string {
	l := p.Load
	text := fmt.Sprintf("%d of %s measured; a worker of weight 1 should have a load of %.2f",
		l.Measured, human.Count(l.Queues, "queue is", "queues are"), l.Fair)
	switch {
	case l.Incomplete:
		text += "\nno queue moves to even the load before nine tenths of the queues are measured"
	case !l.InForce:
		text += "\nthe workers do not plan so, because balance is QUEUES"
	case p.LoadMoves() > l.Budget:
		text += fmt.Sprintf("\nload_moves_per_hour lets %d of the %d queues that even the load move now", l.Budget,
			p.LoadMoves())
	}
	if len(l.TooLarge) > 0 {
		text += "\n" + human.Count(len(l.TooLarge), "queue has", "queues have") +
			" more than that and cannot be divided: " + human.First(l.TooLarge, 5)
	}
	return text
}

// moveRow has the load of the queue if the plan has loads.
func moveRow(m ops.Move, load bool) cli.Row {
	row := cli.Row{cli.Name("QUEUE", m.QueueID), cli.UUID("FROM", m.CurServer), cli.UUID("TO", m.NextServer)}
	if load {
		row = append(row, loadCell("LOAD", m.Load))
	}
	return append(row, cli.Long("REASON", moveText(m)))
}

func moveText(m ops.Move) string {
	if m.Requested {
		return m.Reason + "; already requested"
	}
	return m.Reason
}

func shareRow(s ops.Share, load bool) cli.Row {
	row := cli.Row{
		cli.UUID("WORKER", s.UUID),
		cli.State("STATE", s.State),
		cli.Figure("QUEUES", s.Queues),
		cli.Figure("PLANNED", s.Next),
	}
	if load {
		row = append(row, loadCell("LOAD", s.Load), loadCell("PLANNED LOAD", s.NextLoad))
	}
	return row
}

func loadCell(title string, load *float64) cli.Cell {
	if load == nil {
		return cli.Text(title, "-").Right()
	}
	return cli.Text(title, fmt.Sprintf("%.2f", *load)).Right()
}
