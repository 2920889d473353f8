package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/escape"
)

// waitEvery is how often a command that waits looks whether the wait is over.
const waitEvery = 500 * time.Millisecond

// ErrInterrupted ends a wait on SIGINT or SIGTERM, and ErrTimeout when its time is over.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrTimeout     = errors.New("not over")
)

// Wait is a command that waits for something in the database.
type Wait struct {
	Timeout     time.Duration    // 0: no limit
	IsTransient func(error) bool // of an error of the database: the next look may go well
	Clear       func()           // erases what the command shows on a terminal, before a line is written there
	Errors      io.Writer

	told string // the last transient error
}

// AddTimeout adds --timeout, which the command checks before it connects. what is what may take too long, such as "the
// run takes".
func (w *Wait) AddTimeout(cmd *cobra.Command, what string) {
	cmd.Flags().DurationVar(&w.Timeout, "timeout", 0, "exit 1 if "+what+" longer than 30m, 4h, ...; 0: no limit")
	Check(cmd, func([]string) error {
		if w.Timeout < 0 {
			return fmt.Errorf("--timeout (%s) must not be negative", w.Timeout)
		}
		return nil
	})
}

// Until looks again and again until the wait is over or a look fails. It says once that the database is away, and goes
// on.
func (w *Wait) Until(ctx context.Context, look func(context.Context) (over bool, err error)) error {
	ctx, stop := UntilSignal(ctx)
	defer stop()
	var expired <-chan time.Time
	if w.Timeout > 0 {
		expired = time.After(w.Timeout)
	}
	ticker := time.NewTicker(waitEvery)
	defer ticker.Stop()
	for {
		over, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			w.Clear()
			return ErrInterrupted
		case err != nil && !w.IsTransient(err):
			w.Clear()
			return err
		case err != nil:
			w.tell(err)
		case over:
			w.Clear()
			return nil
		default:
			w.told = ""
		}
		select {
		case <-ctx.Done(): // the next look returns
		case <-expired:
			w.Clear()
			return ErrTimeout
		case <-ticker.C:
		}
	}
}

// tell reports a transient error once.
func (w *Wait) tell(err error) {
	if w.told == err.Error() {
		return
	}
	w.told = err.Error()
	w.Clear()
	fmt.Fprintf(w.Errors, "rota: %s; trying again\n", escape.Text(w.told)) //nolint:errcheck // stderr is the last channel
}
