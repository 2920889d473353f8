package daemon

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// WhileRead returns a context that ends when the process has written to out although nobody reads it any more: the
// other end of a pipe has ended, for example by the Ctrl-C that ends all of a pipeline. Without WhileRead, SIGPIPE
// ends the process at once. stop restores that.
func WhileRead(ctx context.Context, out *os.File) (read context.Context, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE) // to ignore it would make programs that the process starts ignore it
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals: // also for a connection that the other side has closed
				if unread(out) {
					return
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
		<-ended
	}
}
