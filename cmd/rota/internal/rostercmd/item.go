package rostercmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/runcmd"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

func newItemListCommand() *cobra.Command {
	var f ops.ItemFilter
	var limit int
	var run string
	state := cli.Choice{Values: []string{ops.ItemRetry, ops.ItemStarted, ops.ItemDead}}
	cmd := cli.Lists(&cobra.Command{
		Use:   "list [TASK]",
		Short: "List failed items, the latest last",
		Long: `List failed items, the latest last.

The state of an item:
  RETRY    it is executed again at NEXT. In an outage its worker only samples
           items: NEXT then says that a sample must succeed first
  STARTED  it is executed alone, because workers have died with its queue
  DEAD     it is skipped until "rota item retry" or "rota item drop"

With --run, list the items that failed in a run, by queue. A queue of a run
records its first 100. "rota run rerun" tries them again. RUN is the id of a
run, or a task type, which stands for its newest run.`,
		Example: `  rota item list settle
  rota item list --state DEAD --limit 1000 -o csv
  rota item list settle --order-key 4711
  rota item list --run reindex`,
	}, cli.Names("task"), func(ctx context.Context, c *ops.Client, taskType string) (cli.Result, error) {
		if run != "" {
			return listRunItems(ctx, c, run, f.QueueID, limit)
		}
		f.TaskType, f.State = taskType, state.Value
		records, err := c.Items().List(ctx, f, limit)
		return cli.TableResult(records, ItemRow), err
	})
	cli.AddChoice(cmd, &state, "state", "", "only items in this state")
	cmd.Flags().StringVar(&f.QueueID, "queue", "", "only items of this queue")
	cli.CompleteFlag(cmd, "queue", cli.Names("queue"))
	cmd.Flags().StringVar(&f.OrderKey, "order-key", "", "only items with this order key")
	cmd.Flags().StringVar(&run, "run", "", "the items that failed in this run")
	cli.CompleteFlag(cmd, "run", cli.Names("run"))
	cli.AddLimit(cmd, &limit, "list at most this many")
	cli.Check(cmd, func(args []string) error {
		if run != "" && (len(args) > 0 || state.Value != "" || f.OrderKey != "") {
			return errors.New("--run lists items of a run: leave out TASK, --state and --order-key")
		}
		return nil
	})
	return cmd
}

func listRunItems(ctx context.Context, c *ops.Client, run, queue string, limit int) (cli.Result, error) {
	r, err := c.Runs().Find(ctx, run)
	if err != nil {
		return cli.Result{}, err
	}
	items, err := c.Runs().FailedItems(ctx, runs.FailedItemFilter{RunID: r.ID, QueueID: queue}, limit)
	return cli.TableResult(items, runcmd.RunItemRow), err
}

// ItemRow is an item that failed.
func ItemRow(i ops.ItemRecord) cli.Row {
	next := i.Next()
	if next == "" {
		next = cli.TimeText(*i.NextAttemptAt)
	}
	return cli.Row{
		cli.Text("TASK", i.TaskType).DropSame(2),
		cli.Name("QUEUE", i.QueueID),
		cli.Name("ITEM", i.ItemKey),
		cli.Text("ORDER KEY", escape.Name(i.OrderKey)).Drop(2),
		cli.State("STATE", i.State),
		cli.Figure("ATTEMPTS", i.Attempts),
		cli.Time("FIRST FAILED", i.FirstFailedAt).Drop(3),
		cli.Text("NEXT", next).Drop(2),
		cli.Long("LAST ERROR", i.LastError),
	}
}
