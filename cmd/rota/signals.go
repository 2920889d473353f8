package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
)

// echo is how long after the first signal another one is the same request:
// timeout(1) and some supervisors signal a process and then its whole group.
const echo = 500 * time.Millisecond

// drainOnSignal returns a context that ends at the first SIGTERM or SIGINT. A
// second one ends the process, whatever it is doing: somebody wants it gone,
// and the others take over as after a crash. release gives the signals back.
func drainOnSignal(ctx context.Context, log logrus.FieldLogger) (drained context.Context, release func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	released, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		obey(signals, released, cancel, log)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		<-ended
		cancel()
	}
}

func obey(signals <-chan os.Signal, released <-chan struct{}, drain func(), log logrus.FieldLogger) {
	var first time.Time
	for {
		select {
		case <-released:
			return
		case s := <-signals:
			switch {
			case first.IsZero():
				first = time.Now()
				log.Infof("%s: draining and handing over; a second one leaves at once", name(s))
				drain()
			case time.Since(first) > echo:
				log.Warnf("%s again: leaving at once; what is held here is taken over when judge_dead_interval has passed", name(s))
				os.Exit(exitFailed)
			}
		}
	}
}

func name(s os.Signal) string {
	if s == os.Interrupt {
		return "SIGINT"
	}
	return "SIGTERM"
}
