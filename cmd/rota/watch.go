package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

// question asks the roster something, perhaps again and again.
type question func(ctx context.Context, c *center.Center) (reply, error)

// show asks and shows the answer: once, or until SIGINT with --watch.
func show(cmd *cobra.Command, o output, ask question) error {
	if cmd.Flags().Changed("watch") && o.watch < minWatch {
		return usageError{fmt.Errorf("--watch (%s): must be at least %s", o.watch, minWatch)}
	}
	return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
		if o.watch == 0 {
			a, err := ask(ctx, c)
			if err != nil {
				return err
			}
			return o.write(cmd.OutOrStdout(), a)
		}
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		return watch(ctx, cmd, o, c, ask)
	})
}

// minWatch keeps a watch from becoming a load.
const minWatch = 100 * time.Millisecond

// watch shows the answer until the context ends. Trouble with the database is told and waited out; what trying
// again cannot mend ends it.
func watch(ctx context.Context, cmd *cobra.Command, o output, c *center.Center, ask question) error {
	out := cmd.OutOrStdout()
	s := screenOf(out)
	if s.width > 0 && o.format.value == formatTable {
		fmt.Fprint(out, "\x1b[?25l\x1b[2J")        //nolint:errcheck // the next write tells
		defer fmt.Fprint(out, "\r\x1b[K\x1b[?25h") //nolint:errcheck // there is nobody left to tell; over the ^C
	}
	ticker := time.NewTicker(o.watch)
	defer ticker.Stop()
	for {
		a, err := ask(ctx, c)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !c.IsTransient(err) {
			return err
		}
		if err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "rota: %v; trying again\n", err) //nolint:errcheck // as run
		} else if err := o.redraw(out, cmd.CommandPath(), a); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// redraw writes over what a terminal shows, and after what a pipe has got.
func (o output) redraw(out io.Writer, title string, a reply) error {
	s := screenOf(out)
	if s.width == 0 || o.format.value != formatTable {
		return o.write(out, a)
	}
	lines := strings.Split(strings.TrimRight(a.text(s), "\n"), "\n")
	head := fmt.Sprintf("%s, every %s, at %s; Ctrl-C ends", title, o.watch, time.Now().UTC().Format("15:04:05Z"))
	if room := s.height - 3; len(lines) > room && room > 0 {
		lines = append(lines[:room], fmt.Sprintf("... and %d lines more", len(lines)-room))
	}
	_, err := fmt.Fprint(out, "\x1b[H"+head+"\x1b[K\r\n"+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K\r\n\x1b[J")
	return err
}
