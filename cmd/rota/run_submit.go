package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/records"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// runSubmit is the command's flags.
type runSubmit struct {
	center.Submission
	notBefore, deadline string
	wait                bool
	out                 output
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

A TIME is in RFC 3339, or a duration from now on, such as 90m.

With --wait the exit code is 0 if the run succeeds, as with "rota run wait".`,
		Example: `  rota run submit reindex
  rota run submit reindex --key 2026-11-21 --params '{"full": true}' --wait
  rota run submit report --after $(rota run submit reindex)
  rota run submit import --priority 5 --not-before 2h --deadline 8h --attempts 1`,
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
	flags.StringVar(&s.Key, "key", "", "there is one run per key; without a key each call makes a run")
	flags.StringVar(&s.Params, "params", "", "parameters for the dealer: any text, such as JSON")
	flags.StringSliceVar(&s.After, "after", nil, "run to wait for, by its id or its task type; repeatable")
	flags.IntVar(&s.Priority, "priority", 0, "the highest priority is opened first")
	flags.StringVar(&s.notBefore, "not-before", "", "`TIME` before which the run does not start")
	flags.StringVar(&s.deadline, "deadline", "", "`TIME` at which the run fails if it has not ended")
	flags.IntVar(&s.MaxAttempts, "attempts", 0, "attempts of each queue; 0 is the setting queue_max_attempts")
	flags.BoolVar(&s.wait, "wait", false, "wait for the end of the run and show its progress on stderr")
	completeFlag(cmd, "after", listRuns(anyRun))
	return cmd
}

func (s *runSubmit) run(ctx context.Context, cmd *cobra.Command, c *center.Center, taskType string) error {
	if err := s.readTimes(); err != nil {
		return err
	}
	var err error
	if s.After, err = resolveRunIDs(ctx, c, s.After); err != nil {
		return err
	}
	s.Actor = actor()
	id, existed, err := c.Runs().Submit(ctx, taskType, s.Submission)
	if err != nil {
		return err
	}
	if existed {
		cmd.PrintErrf("rota: a run of key %s exists already\n", escape.Text(s.Key))
	}
	if err := s.out.reply(cmd, id, records.Object{records.M("run_id", id), records.M("existed", existed)}); err != nil || !s.wait {
		return err
	}
	w := waiter{c: c, runID: id, out: cmd.ErrOrStderr(), errors: cmd.ErrOrStderr()}
	return w.run(ctx)
}

// readTimes reads the flags that are times. Durations count from this computer's clock: the person who types one looks at
// it.
func (s *runSubmit) readTimes() (err error) {
	if s.NotBefore, err = timeFrom("--not-before", s.notBefore); err == nil {
		s.EndBefore, err = timeFrom("--deadline", s.deadline)
	}
	return err
}

// timeFrom reads a time in RFC 3339, or a duration from now on. An empty text is the zero time.
func timeFrom(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return time.Now().Add(d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s (%q) must be a time such as 2026-08-01T12:00:00Z, or a duration such as 90m", flag, text)
	}
	return at, nil
}
