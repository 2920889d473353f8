package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/center"
)

func newRunWaitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait RUN",
		Short: "Wait for the end of a run; exit 0 if it has succeeded",
		Long: `Wait for the end of a run, and show how far it is: on a terminal all the time,
into a pipe a line now and then. The exit code is 0 if it has succeeded, else 1,
with the reason. Ctrl-C ends the wait and not the run.

RUN is a run's id, or the name of a task type: its newest run.`,
		Example: `  rota run wait reindex
  rota run wait 019aa3c5-7f8e-7c31-b9a0-5d0e6a1f2b3c --timeout 4h && echo done`,
		Args:              arguments("RUN"),
		ValidArgsFunction: complete(runRefs(openRun)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return usageError{fmt.Errorf("--timeout (%s): must not be negative", timeout)}
			}
			return withRoster(cmd, func(ctx context.Context, c *center.Center) error {
				r, err := resolveRun(ctx, c, args[0])
				if err != nil {
					return err
				}
				w := waiter{c: c, runID: r.ID, out: cmd.OutOrStdout(), errors: cmd.ErrOrStderr(), timeout: timeout, last: r}
				return w.run(ctx)
			})
		},
	}
	addRosterFlags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "exit 1 if it takes longer than 30m, 4h, ...; 0: wait for ever")
	return cmd
}

const (
	lookEvery = 500 * time.Millisecond // how old what a terminal shows may be
	tellEvery = 30 * time.Second       // how often a pipe gets a line while only the numbers change
)

// waiter waits for the end of a run.
type waiter struct {
	c       *center.Center
	runID   string
	out     io.Writer // gets how far it is
	errors  io.Writer
	timeout time.Duration // 0: for ever

	last  runRecord // as it was last seen
	said  string    // the state and the note of the last line,
	saidN int64     // the sum of the numbers that it told,
	at    time.Time // and when
}

// errLeft is the end of a wait by SIGINT or SIGTERM.
var errLeft = errors.New("not waited for its end; it goes on")

// run returns nil when the run has succeeded. Trouble with the database is told once and waited out.
func (w *waiter) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	expired := make(<-chan time.Time)
	if w.timeout > 0 {
		expired = time.After(w.timeout)
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		ended, err := w.look(ctx)
		if ctx.Err() != nil {
			w.clear()
			return fmt.Errorf("run %s: %w", w.runID, errLeft)
		}
		if err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done(): // the next look tells
		case <-expired:
			w.clear()
			return fmt.Errorf("run %s (%s) is still %s after %s: %s", w.runID, w.last.TaskType, w.last.State, w.timeout, progressText(w.last))
		case <-ticker.C:
		}
	}
}

// look tells how the run is doing, and whether it has ended.
func (w *waiter) look(ctx context.Context) (ended bool, err error) {
	list, err := w.c.RunRecords(ctx, center.RunFilter{RunID: w.runID}, 1)
	var note string
	if err == nil && len(list) == 0 {
		return false, fmt.Errorf("run %s: %w: it was deleted while it was waited for", w.runID, center.ErrUnknownRun)
	}
	if err == nil && !list[0].Ended() {
		note, err = runNote(ctx, w.c, list[0])
	}
	if err != nil {
		return false, w.trouble(err)
	}
	w.last = list[0]
	if !w.last.Ended() {
		return false, w.tell(note)
	}
	w.clear()
	if w.last.State == center.RunSuccess {
		_, err := fmt.Fprintln(w.out, runLine(w.last, ""))
		return true, err
	}
	return true, endError(w.last)
}

// trouble is nil for what trying again may mend.
func (w *waiter) trouble(err error) error {
	if !w.c.IsTransient(err) {
		return err
	}
	if w.said != err.Error() {
		w.said = err.Error()
		w.clear()
		fmt.Fprintf(w.errors, "rota: %v; trying again\n", err) //nolint:errcheck // as run
	}
	return nil
}

// tell draws the bar over the last one, or writes a line where there is news.
func (w *waiter) tell(note string) error {
	if s := screenOf(w.out); s.width > 0 {
		w.said = ""
		head := w.last.TaskType + " " + runState(w.last) + " "
		_, err := fmt.Fprint(w.out, "\r"+text.Snip(head+runBar(w.last, s.width-len(head)-1)+noteText(note), s.width-1, "…")+"\x1b[K")
		return err
	}
	numbers, state := finishedQueues(w.last)+w.last.ItemsDone+w.last.ItemsFailed, runState(w.last)+note
	if state == w.said && (numbers == w.saidN || time.Since(w.at) < tellEvery) {
		return nil
	}
	w.said, w.saidN, w.at = state, numbers, time.Now()
	_, err := fmt.Fprintln(w.out, runLine(w.last, note))
	return err
}

// clear removes the bar.
func (w *waiter) clear() {
	if screenOf(w.out).width > 0 {
		fmt.Fprint(w.out, "\r\x1b[K") //nolint:errcheck // the next write tells
	}
}

// endError says why a run has not succeeded.
func endError(r runRecord) error {
	why := ""
	if r.Message != "" {
		why = ": " + line(r.Message)
	}
	return fmt.Errorf("run %s (%s) is %s%s", r.ID, r.TaskType, r.State, why)
}

// runLine is a run in a line.
func runLine(r runRecord, note string) string {
	return fmt.Sprintf("run %s (%s) is %s: %s%s", r.ID, r.TaskType, runState(r), progressText(r), noteText(note))
}

func noteText(note string) string {
	if note == "" {
		return ""
	}
	return "; " + note
}

func finishedQueues(r runRecord) int64 { return r.QueuesDone + r.QueuesFailed + r.QueuesCancelled }

// progressText is how far a run is.
func progressText(r runRecord) string {
	if r.Queues() == 0 {
		return "not begun"
	}
	parts := []string{fmt.Sprintf("%d of %s", finishedQueues(r), plural(r.Queues(), "queue", "queues")), plural(r.ItemsDone, "item", "items")}
	if r.QueuesFailed > 0 {
		parts[0] += fmt.Sprintf(", %d of them failed", r.QueuesFailed)
	}
	if r.ItemsFailed > 0 {
		parts = append(parts, plural(r.ItemsFailed, "item", "items")+" failed")
	}
	return strings.Join(append(parts, took(r)), ", ")
}

// leastBar and mostBar bound the length of a bar.
const leastBar, mostBar = 5, 40

// runBar is how far a run is, with a bar, in so many characters if that is possible.
func runBar(r runRecord, width int) string {
	told := progressText(r)
	if r.Queues() == 0 {
		return told
	}
	room := max(min(width-text.StringWidth(told)-len("[] "), mostBar), leastBar)
	full := int(int64(room) * finishedQueues(r) / r.Queues())
	return "[" + strings.Repeat("█", full) + strings.Repeat("░", room-full) + "] " + told
}

// runNote says what an open run waits for beside its queues, if anything.
func runNote(ctx context.Context, c *center.Center, r runRecord) (string, error) {
	if r.Paused {
		return "see rota run resume", nil
	}
	tasks, err := c.Tasks(ctx, r.TaskType)
	if errors.Is(err, center.ErrUnknownTask) {
		return "its task type is gone", nil
	}
	if err != nil {
		return "", err
	}
	t := tasks[0]
	switch {
	case r.State == center.RunWaiting:
		return "waits for its upstreams", nil
	case t.Servers == t.DeadServers:
		return "nobody serves " + r.TaskType, nil
	case t.Paused:
		return r.TaskType + " is paused", nil
	case r.State == center.RunReady && t.RunID != nil:
		return "waits for the end of run " + *t.RunID, nil
	}
	return "", nil
}
