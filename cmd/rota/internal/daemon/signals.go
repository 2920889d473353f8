package daemon

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
)

// repeatWindow is how long a signal counts as a repetition of the first:
// timeout(1) and some supervisors signal a process and then its whole group.
const repeatWindow = 500 * time.Millisecond

// DrainOnSignal returns a context that the first SIGTERM or SIGINT ends. A
// second signal ends the process at once, and the other servers take over as
// after a crash. release restores the default handling of the signals.
func DrainOnSignal(ctx context.Context, log logrus.FieldLogger) (drained context.Context, release func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	released, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		handleSignals(signals, released, cancel, log)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		<-ended
		cancel()
	}
}

func handleSignals(signals <-chan os.Signal, released <-chan struct{}, drain func(), log logrus.FieldLogger) {
	var first time.Time
	for {
		select {
		case <-released:
			return
		case s := <-signals:
			switch {
			case first.IsZero():
				first = time.Now()
				log.Infof("%s: draining and handing over; a second signal stops the process at once", signalName(s))
				drain()
			case time.Since(first) > repeatWindow:
				log.Warnf("%s again: stopping at once; other workers take over the queues after judge_dead_interval", signalName(s))
				os.Exit(cli.ExitFailed)
			}
		}
	}
}

func signalName(s os.Signal) string {
	if s == os.Interrupt {
		return "SIGINT"
	}
	return "SIGTERM"
}
