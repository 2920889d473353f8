package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"
)

// minWatch limits the load of a watch on the database.
const minWatch = 100 * time.Millisecond

// Query reads what a command shows. A watch calls it repeatedly, with the same args.
type Query func(ctx context.Context, c *ops.Client, args []string) (Result, error)

// Shows completes a command that shows what q reads: once, or with --watch until SIGINT.
func Shows(cmd *cobra.Command, o *Output, q Query, arguments ...Lister) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("watch") && o.Watch < minWatch {
			return Usage(fmt.Errorf("--watch (%s) must be at least %s", o.Watch, minWatch))
		}
		return WithRoster(cmd, func(ctx context.Context, c *ops.Client) error {
			if o.Watch > 0 && o.screen != nil && o.redraws(cmd.OutOrStdout()) && IsTerminal(os.Stdin) {
				return o.screen(ctx, c, args)
			}
			if o.Watch > 0 {
				ctx, stop := UntilSignal(ctx)
				defer stop()
				return watch(ctx, cmd, *o, func() (Result, error) { return q(ctx, c, args) }, c.IsTransient)
			}
			r, err := q(ctx, c, args)
			if err != nil {
				return err
			}
			return o.Write(cmd.OutOrStdout(), r)
		})
	}
	cmd.Flags().DurationVarP(&o.Watch, "watch", "w", 0, "refresh every 2s until Ctrl-C; --watch=5s sets the interval")
	cmd.Flags().Lookup("watch").NoOptDefVal = "2s"
	return Command(cmd, o, arguments...)
}

// OnTerminal makes a command of Shows call show instead of a watch, if a person is at its terminal.
func OnTerminal(o *Output, show func(ctx context.Context, c *ops.Client, args []string) error) {
	o.screen = show
}

// Lists completes a command that lists records of the task type in its argument, or of all. A task type that was
// deleted is unknown when it has no records any more.
func Lists(cmd *cobra.Command, tasks Lister,
	list func(ctx context.Context, c *ops.Client, taskType string) (Result, error),
) *cobra.Command {
	return Shows(cmd, new(Output), func(ctx context.Context, c *ops.Client, args []string) (Result, error) {
		r, err := list(ctx, c, FirstArg(args))
		if records := reflect.ValueOf(r.Records); err == nil && (records.Kind() != reflect.Slice || records.Len() == 0) {
			err = RequireTask(ctx, c, FirstArg(args))
		}
		return r, err
	}, tasks)
}

// AddLimit adds --limit, which the command checks before it connects.
func AddLimit(cmd *cobra.Command, limit *int, usage string) {
	cmd.Flags().IntVar(limit, "limit", 100, usage)
	Check(cmd, func([]string) error {
		if *limit < 1 {
			return fmt.Errorf("--limit (%d) must be at least 1", *limit)
		}
		return nil
	})
}

// UntilSignal returns a context that SIGINT and SIGTERM end.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// watch refreshes the result until the context ends or the result is final. It reports a transient
// error of the database and continues; another error ends it.
func watch(ctx context.Context, cmd *cobra.Command, o Output, q func() (Result, error),
	isTransient func(error) bool,
) error {
	out := cmd.OutOrStdout()
	if o.redraws(out) {
		fmt.Fprint(out, "\x1b[?25l\x1b[2J")        //nolint:errcheck // the next write returns the error
		defer fmt.Fprint(out, "\r\x1b[K\x1b[?25h") //nolint:errcheck // the last write; it covers the ^C
	}
	ticker := time.NewTicker(o.Watch)
	defer ticker.Stop()
	for {
		r, err := q()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !isTransient(err):
			return err
		case err != nil:
			fmt.Fprintf(cmd.ErrOrStderr(), "rota: %s; trying again\n", escape.Text(err.Error())) //nolint:errcheck // stderr is the last channel
		default:
			if err := o.redraw(out, cmd.CommandPath(), r); err != nil || r.Final {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// redraws reports whether a watch replaces its last result: a table on a
// terminal. Otherwise it appends.
func (o Output) redraws(out io.Writer) bool { return o.IsTable() && ScreenOf(out).Width > 0 }

func (o Output) redraw(out io.Writer, title string, r Result) error {
	if !o.redraws(out) {
		return o.Write(out, r)
	}
	s := ScreenOf(out)
	head := fmt.Sprintf("%s, every %s, at %s; Ctrl-C ends it", title, o.Watch, time.Now().UTC().Format("15:04:05Z"))
	_, err := fmt.Fprint(out, "\x1b[H"+strings.Join(s.picture(head, r.Text(s)), "\x1b[K\r\n")+"\x1b[K\r\n\x1b[J")
	return err
}

// picture returns the lines of a head and a result that fit into the screen, which would scroll otherwise.
func (s Screen) picture(head, result string) []string {
	table, note := splitNote(strings.Split(strings.TrimRight(result, "\n"), "\n"))
	if room := s.Height - 3 - len(note); len(table) > room && room > 0 {
		table = append(slices.Clip(table[:room]), fmt.Sprintf("... and %d more lines", len(table)-room))
	}
	lines := slices.Concat([]string{head}, table, note)
	for i, line := range lines {
		lines[i] = text.Snip(line, s.Width, "…")
	}
	return lines[:min(len(lines), max(1, s.Height-1))]
}
