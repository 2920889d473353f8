package main

import (
	"context"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/records"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// runSubmit is the command's flags.
type runSubmit struct {
	key, params string
	after       []string
	wait        bool
	out         output
}

func newRunSubmitCommand() *cobra.Command {
	var s runSubmit
	cmd := &cobra.Command{
		Use:   "submit TASK",
		Short: "Submit a run of a task type and print its id",
		Long: `Submit a run of a task type of mode RUN, and of everything that runs after it,
and print its id. There is one run per key: submitting the key again prints the
id of the first run, and starts it if it was SKIPPED. A run starts when no other
run of its task type is RUNNING and, with --after, when the named runs have
succeeded. A submitted run is never skipped. A task type that runs after several
ones has its run when a run of the same key is submitted for each of them.

With --wait the exit code is 0 if the run succeeds, as with "rota run wait".`,
		Example: `  rota run submit reindex
  rota run submit reindex --key 2026-11-21 --params '{"full": true}' --wait
  rota run submit report --after $(rota run submit reindex)`,
		Args:              arguments("TASK"),
		ValidArgsFunction: complete(listRunTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				return s.run(ctx, cmd, c, args[0])
			})
		},
	}
	addRosterFlags(cmd)
	addOutputFlags(cmd, &s.out)
	flags := cmd.Flags()
	flags.StringVar(&s.key, "key", "", "there is one run per key; without a key each call makes a run")
	flags.StringVar(&s.params, "params", "", "parameters for the dealer: any text, such as JSON")
	flags.StringSliceVar(&s.after, "after", nil, "run to wait for, by its id or its task type; repeatable")
	flags.BoolVar(&s.wait, "wait", false, "wait for the end of the run and show its progress on stderr")
	completeFlag(cmd, "after", listRuns(anyRun))
	return cmd
}

func (s *runSubmit) run(ctx context.Context, cmd *cobra.Command, c *center.Center, taskType string) error {
	after, err := resolveRunIDs(ctx, c, s.after)
	if err != nil {
		return err
	}
	id, existed, err := c.Runs().SubmitAs(ctx, taskType, s.key, s.params, actor(), after...)
	if err != nil {
		return err
	}
	if existed {
		cmd.PrintErrf("rota: a run of key %s exists already\n", escape.Text(s.key))
	}
	if err := s.out.reply(cmd, id, records.Object{records.M("run_id", id), records.M("existed", existed)}); err != nil || !s.wait {
		return err
	}
	w := waiter{c: c, runID: id, out: cmd.ErrOrStderr(), errors: cmd.ErrOrStderr()}
	return w.run(ctx)
}
