package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// runSubmit is the command's flags.
type runSubmit struct {
	key, params string
	after       []string
	wait        bool
}

func newRunSubmitCommand() *cobra.Command {
	var s runSubmit
	cmd := &cobra.Command{
		Use:   "submit TASK",
		Short: "Make a run of a task type, and print its id",
		Long: `Make a run of a task type of mode RUN, and of everything that runs after it, and
print its id. Of one key there is one run: to submit it again prints the id of
the first. A run begins when no other of its task type is RUNNING, and, with
--after, when those runs have succeeded. A submitted run is never skipped.

With --wait the exit code is 0 if the run has succeeded, as of "rota run wait".`,
		Example: `  rota run submit reindex
  rota run submit reindex --key 2026-11-21 --params '{"full": true}' --wait
  rota run submit report --after $(rota run submit reindex)`,
		Args:              arguments("TASK"),
		ValidArgsFunction: complete(runTasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				return s.run(ctx, cmd, c, args[0])
			})
		},
	}
	addRosterFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&s.key, "key", "", "of one key there is one run; without it each call makes one")
	flags.StringVar(&s.params, "params", "", "what the dealer is to know: any text, such as JSON")
	flags.StringSliceVar(&s.after, "after", nil, "run to wait for, by its id or its task type; may be repeated")
	flags.BoolVar(&s.wait, "wait", false, "wait for its end, and tell on stderr how far it is")
	completeFlag(cmd, "after", runRefs(anyRun))
	return cmd
}

func (s *runSubmit) run(ctx context.Context, cmd *cobra.Command, c *center.Center, task string) error {
	var after []string
	for _, name := range s.after {
		r, err := resolveRun(ctx, c, name)
		if err != nil {
			return err
		}
		after = append(after, r.ID)
	}
	id, there, err := c.SubmitOnce(ctx, task, s.key, s.params, after...)
	if err != nil {
		return err
	}
	if there {
		cmd.PrintErrf("rota: the run of key %s was there already\n", s.key)
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), id); err != nil || !s.wait {
		return err
	}
	w := waiter{c: c, runID: id, out: cmd.ErrOrStderr(), errors: cmd.ErrOrStderr()}
	return w.run(ctx)
}
