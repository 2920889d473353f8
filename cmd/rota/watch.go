package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/ops"

	"github.com/spf13/cobra"
)

// minWatch limits the load of a watch on the database.
const minWatch = 100 * time.Millisecond

// query reads what a command shows. A watch calls it repeatedly.
type query func(ctx context.Context, c *ops.Client) (result, error)

// show runs the query and writes its result: once, or with --watch until
// SIGINT.
func show(cmd *cobra.Command, o output, q query) error {
	if cmd.Flags().Changed("watch") && o.watch < minWatch {
		return usageError{fmt.Errorf("--watch (%s) must be at least %s", o.watch, minWatch)}
	}
	return withRoster(cmd, func(ctx context.Context, c *ops.Client) error {
		if o.watch > 0 {
			ctx, stop := untilSignal(ctx)
			defer stop()
			return watch(ctx, cmd, o, c, q)
		}
		r, err := q(ctx, c)
		if err != nil {
			return err
		}
		return o.write(cmd.OutOrStdout(), r)
	})
}

// untilSignal returns a context that SIGINT and SIGTERM end.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// watch refreshes the result until the context ends or the result is final. It reports a transient
// error of the database and continues; another error ends it.
func watch(ctx context.Context, cmd *cobra.Command, o output, c *ops.Client, q query) error {
	out := cmd.OutOrStdout()
	if o.redraws(out) {
		fmt.Fprint(out, "\x1b[?25l\x1b[2J")        //nolint:errcheck // the next write returns the error
		defer fmt.Fprint(out, "\r\x1b[K\x1b[?25h") //nolint:errcheck // the last write; it covers the ^C
	}
	ticker := time.NewTicker(o.watch)
	defer ticker.Stop()
	for {
		r, err := q(ctx, c)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !c.IsTransient(err):
			return err
		case err != nil:
			fmt.Fprintf(cmd.ErrOrStderr(), "rota: %s; trying again\n", escape.Text(err.Error())) //nolint:errcheck // stderr is the last channel
		default:
			if err := o.redraw(out, cmd.CommandPath(), r); err != nil || r.final {
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
func (o output) redraws(out io.Writer) bool { return o.isTable() && screenOf(out).width > 0 }

func (o output) redraw(out io.Writer, title string, r result) error {
	if !o.redraws(out) {
		return o.write(out, r)
	}
	s := screenOf(out)
	lines := strings.Split(strings.TrimRight(r.text(s), "\n"), "\n")
	head := fmt.Sprintf("%s, every %s, at %s; Ctrl-C ends it", title, o.watch, time.Now().UTC().Format("15:04:05Z"))
	table, note := splitNote(lines)
	if room := s.height - 3 - len(note); len(table) > room && room > 0 {
		table = append(slices.Clip(table[:room]), fmt.Sprintf("... and %d more lines", len(table)-room))
	}
	lines = slices.Concat(table, note)
	_, err := fmt.Fprint(out, "\x1b[H"+head+"\x1b[K\r\n"+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K\r\n\x1b[J")
	return err
}
