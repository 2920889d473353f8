package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
)

func newRunShowCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show the progress of a run, its queues and its dependencies",
		Long: `Show the progress of a run, its queues, its upstreams and its dependants. Failed
and running queues come first. Below are the first ten items that failed. With
--watch it ends when the run has ended.

RUN is the id of a run, or a task type, which stands for its newest run.`,
		Example: `  rota run show reindex --watch
  rota run show 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c -o json | jq .run.state
  rota run show reindex -o csv             its queues`,
		Args:              arguments("RUN"),
		ValidArgsFunction: complete(listRuns(anyRun)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			return show(cmd, o, func(ctx context.Context, c *ops.Client) (result, error) {
				details, err := ops.ReadRunDetails(ctx, c, name)
				if err == nil {
					name = details.Run.ID // a watch of a task type stays with the run
				}
				d := runDetails{details}
				return result{records: d, text: d.text, final: details.Run.Ended()}, err
			})
		},
	}
	addRosterFlags(cmd)
	addWatchFlags(cmd, &o)
	return cmd
}

// runDetails shows the details of a run.
type runDetails struct{ ops.RunDetails }

// MarshalJSON implements json.Marshaler.
func (d runDetails) MarshalJSON() ([]byte, error) {
	return records.Object{
		records.M("run", records.Of(d.Run)),
		records.M("queues", records.List(d.Queues)),
		records.M("failed_items", records.List(d.FailedItems)),
		records.M("graph", records.Object{
			records.M("runs", records.List(d.Graph.Runs)),
			records.M("deps", records.List(d.Graph.Deps)),
		}),
	}.MarshalJSON()
}

// csvRecords implements csvRecorder.
func (d runDetails) csvRecords() any { return d.Queues }
