package runcmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/verbcmd"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/records"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// newRunSubmitCommand makes the command of the verb, which can also wait for the end of the run.
func newRunSubmitCommand() *cobra.Command {
	v := verbcmd.New("run submit")
	cmd := v.Command()
	wait := cmd.Flags().Bool("wait", false, "wait for the end of the run and show its progress on stderr")
	v.After = func(ctx context.Context, c *ops.Client, done []verbs.Done) error {
		if !*wait {
			return nil
		}
		w := waiter{Wait: cli.Wait{Errors: cmd.ErrOrStderr()}, c: c, runID: done[0].ID, out: cmd.ErrOrStderr()}
		return w.run(ctx)
	}
	return cmd
}

func newRunWaitCommand() *cobra.Command {
	var wait cli.Wait
	var o cli.Output
	var graph bool
	cmd := cli.Command(&cobra.Command{
		Use:   "wait RUN",
		Short: "Wait for the end of a run; exit 0 if it succeeded",
		Long: `Wait for the end of a run and show its progress: on a terminal all the time,
into a pipe a line when the state changes, or every 30 s. The exit code is 0 if
the run succeeded, else 1, with the reason. Ctrl-C ends the wait; the run
continues. With -o json and -o csv the progress is on stderr, and the run's last
state is the output.

With --graph it waits until all runs have ended that dependencies connect with
RUN, also those that get into the graph meanwhile. The exit code is 1 if one of
them has not succeeded, with the names of those.

` + runHelp,
		Example: `  rota run wait reindex
  rota run wait rebuild --graph            the newest graph with that name
  rota run wait 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c --timeout 4h && echo done`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.WithRoster(cmd, func(ctx context.Context, c *ops.Client) error {
				r, err := c.Runs().Find(ctx, args[0])
				if err != nil {
					return err
				}
				wait.Errors = cmd.ErrOrStderr()
				if graph {
					return waitForGraph(ctx, cmd, &graphWaiter{Wait: wait, c: c, of: r}, o)
				}
				w := waiter{Wait: wait, c: c, runID: r.ID, out: cmd.OutOrStdout(), last: r}
				if o.IsTable() {
					return w.run(ctx)
				}
				w.out = cmd.ErrOrStderr()
				err = w.run(ctx)
				return errors.Join(err, o.Write(cmd.OutOrStdout(), cli.Result{Records: records.Of(w.last)}))
			})
		},
	}, &o, cli.Names("open run"))
	wait.AddTimeout(cmd, "the run takes")
	addGraph(cmd, &graph)
	return cmd
}

// waitForGraph waits for a graph. The progress of programs is on stderr, and the last states are the output.
func waitForGraph(ctx context.Context, cmd *cobra.Command, w *graphWaiter, o cli.Output) error {
	w.out = cmd.OutOrStdout()
	if o.IsTable() {
		return w.run(ctx)
	}
	w.out = cmd.ErrOrStderr()
	err := w.run(ctx)
	return errors.Join(err, o.Write(cmd.OutOrStdout(), cli.Result{Records: graphDetails{w.graph, w.of}}))
}

func addGraph(cmd *cobra.Command, graph *bool) {
	cmd.Flags().BoolVar(graph, "graph", false, "all runs that dependencies connect with it")
}

// waiter waits for the end of a run and shows its progress.
type waiter struct {
	cli.Wait
	c     *ops.Client
	runID string
	out   io.Writer

	progress *cli.Progress
	last     runs.Record // the last reading
	state    string      // that was last shown
}

// run returns nil when the run has succeeded, and why it has not otherwise.
func (w *waiter) run(ctx context.Context) error {
	w.progress = cli.NewProgress(w.out)
	w.IsTransient, w.Clear = w.c.IsTransient, w.progress.Clear
	switch err := w.Until(ctx, w.look); {
	case errors.Is(err, cli.ErrInterrupted):
		return fmt.Errorf("wait for run %s: %w; the run continues", w.runID, err)
	case errors.Is(err, cli.ErrTimeout):
		return fmt.Errorf("%s is still %s after %s: %s", w.name(), w.last.State, w.Timeout, progressText(w.last))
	case err != nil:
		return err
	}
	if w.last.State != runs.Success {
		return endError(w.last.Run)
	}
	_, err := fmt.Fprintln(w.out, escape.Text(runLine(w.name(), w.last, "")))
	return err
}

// look reads the run, shows its progress and reports whether it has ended.
func (w *waiter) look(ctx context.Context) (ended bool, err error) {
	r, err := w.c.Runs().Get(ctx, w.runID)
	if errors.Is(err, runs.ErrUnknownRun) {
		return false, fmt.Errorf("wait for run %s: it was deleted: %w", w.runID, runs.ErrUnknownRun)
	}
	var blocker string
	if err == nil && !r.Ended() {
		blocker, err = ops.FindBlocker(ctx, w.c, r)
	}
	if err != nil {
		return false, err
	}
	if w.last = r; !r.Ended() {
		w.show(blocker)
	}
	return r.Ended(), nil
}

// show says how far the run is: into a pipe at once if there is news.
func (w *waiter) show(blocker string) {
	if state := w.last.DisplayState() + trouble(w.last, blocker); state != w.state {
		w.state = state
		w.progress.Clear()
	}
	name := w.last.TaskType // fits on a terminal
	if cli.ScreenOf(w.out).Width == 0 {
		name = w.name()
	}
	w.progress.Show(runLine(name, w.last, blocker), 0, 0)
}

func (w *waiter) name() string { return fmt.Sprintf("run %s (%s)", w.runID, w.last.TaskType) }

// endError says why a run did not succeed.
func endError(r runs.Run) error {
	reason := ""
	if r.Message != "" {
		reason = ": " + cli.OneLine(r.Message)
	}
	return fmt.Errorf("run %s (%s) is %s%s", r.ID, r.TaskType, r.State, reason)
}
