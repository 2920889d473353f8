package manager

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// base is what the parts of a server have in common: session, ownView, planner, reconciler, sweeper, runTicker and
// alerter. Each session has a copy with its own uuid and log.
//
// All calls about ownership go through roster, all calls about runs and their sweeps through runs.
type base struct {
	taskType string
	uuid     string // of the session; empty before the first one
	roster   *center.Center
	runs     *center.Center
	proc     *processor.Processor // one for all sessions, so that a batch that hangs still bars its queue
	settings *Settings            // in force; for the server's own goroutine
	cfg      Config
	log      logrus.FieldLogger
}

// call bounds a call of the roster. Such a call has a dozen statements and each may be slow, so it gets more than one
// heartbeat; the end of a lease waits for no statement. The signal to leave does not interrupt a call, because its
// outcome would be unknown.
func (b *base) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), max(b.settings.JudgeDeadInterval, 5*time.Second))
}

// inRuns reports whether queues are worked for runs, not because they are owned. The mode of a process never changes.
func (b *base) inRuns() bool { return b.settings.Mode == center.ModeRun }

func (b *base) queueLog(id string) logrus.FieldLogger { return b.log.WithField("queue", id) }

// moved tells the observer of a queue that came or went.
func (b *base) moved(kind string, took time.Duration) {
	if b.cfg.Observer != nil {
		b.cfg.Observer.Moved(b.taskType, kind, took)
	}
}

// must logs an error that only a defect of this package can cause.
func (b *base) logInternal(err error) {
	if err != nil {
		b.log.WithError(err).Error("internal error")
	}
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
