package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// server is this process's part in one task type, over all its lives.
type server struct {
	m    *Manager
	c    *center.Center
	task Task
	log  logrus.FieldLogger
	host string

	settings Settings             // in force
	proc     *processor.Processor // one for all lives, so that an old batch that hangs still bars its queue

	started     time.Time               // by the database's clock
	alerts      chan center.Alert       // from the executors; the server's own goroutine raises them
	told        map[string]time.Time    // alerts that were raised, and when
	badSettings atomic.Pointer[trouble] // why the row's settings are not in force; nil: they are
	items       int64                   // version of the failed items that the processor knows

	life *life                // the server's own goroutine
	cur  atomic.Pointer[life] // the same, for executors and the heart
	now  atomic.Value         // the state's name, for Ready
	err  error                // why run ends, if not in order
}

// trouble is what went wrong, and when.
type trouble struct {
	text string
	at   time.Time
}

func newServer(m *Manager, t Task) *server {
	s := &server{
		m: m, c: m.c, task: t, host: hostName(),
		alerts: make(chan center.Alert, 16), told: map[string]time.Time{},
	}
	s.log = m.cfg.Logger.WithFields(logrus.Fields{"task_type": t.name, "own_sign": m.c.OwnSign()})
	s.now.Store(stateJoining)
	return s
}

func (s *server) state() string { return s.now.Load().(string) }

// run lives until ctx is done and everything is handed over.
func (s *server) run(ctx context.Context) error {
	if err := s.define(ctx); err != nil || s.proc == nil {
		return err
	}
	processing, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ctx starts the drain, not the end
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.must(s.proc.Run(processing))
	}()
	s.live(ctx)
	cancel()
	select {
	case <-ended:
	case <-time.After(s.m.cfg.Grace):
		s.fail(fmt.Errorf("task %s: a dealer went on for more than %s after its context was cancelled", s.task.name, s.m.cfg.Grace))
	}
	return s.err
}

// define makes the task type's rows and the processor. A database that is busy or away is asked again
// until ctx is done; then there is nothing to serve and nothing to hand over. The same while nobody has defined
// a task type that this one runs after: that may be another program's, which starts later.
func (s *server) define(ctx context.Context) (err error) {
	given := s.task.settings
	s.settings = given.WithDefaults()
	for pause := pollInterval; ctx.Err() == nil; {
		s.settings, err = s.defineOnce(ctx, given)
		if err == nil {
			break
		}
		s.settings = given.WithDefaults()
		if !s.c.IsTransient(err) && !errors.Is(err, center.ErrUnknownTask) {
			return err
		}
		if pause = min(2*pause, s.settings.HeartbeatInterval); pause == s.settings.HeartbeatInterval {
			s.log.WithError(err).Warn("cannot define the task type; trying again") // not at once: a task next to this one may be about to
		}
		sleep(ctx, pause)
	}
	if ctx.Err() != nil {
		return nil
	}
	for _, d := range given.DiffersFrom(s.settings) {
		s.log.Warnf("%s is %s in the database, which is in force, and %s in this program's settings", d.Name, d.Row, d.Given)
	}
	if err := s.settings.Validate(); err != nil {
		return fmt.Errorf("task %s: the row in schedule_task_type: %w", s.task.name, err)
	}
	s.proc, err = s.task.newProcessor(s.env(), processorSettings(s.settings))
	return err
}

func (s *server) defineOnce(ctx context.Context, given Settings) (Settings, error) {
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	return s.c.Define(ctx, s.task.name, given)
}

// must is for what cannot fail unless this package is wrong.
func (s *server) must(err error) {
	if err != nil {
		s.log.WithError(err).Error("internal error")
	}
}

func (s *server) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// register begins a new life in the table. It may be that the roster was forgotten while this process was
// away: any life but the first sees to it that its rows are there.
func (s *server) register(ctx context.Context, first bool) (*life, error) {
	if !first {
		if _, err := s.defineOnce(ctx, s.task.settings); err != nil {
			return nil, err
		}
	}
	l := newLife(s.host, s.settings, s.cut)
	l.report = func() center.ServerBeat { return s.report(l) }
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	reg, err := s.c.Register(ctx, center.Server{
		UUID: l.uuid, TaskType: s.task.name, Host: s.host, IP: hostIP(), PID: os.Getpid(),
		ThreadNumber: s.settings.ThreadNumber, JudgeDeadInterval: s.settings.JudgeDeadInterval,
		BeatToken: l.token, LibraryVersion: libraryVersion(), Given: s.task.settings,
	})
	if err != nil {
		return nil, err
	}
	l.clock.Store(&clockPair{db: reg.At, local: time.Now()})
	l.joined, s.items = reg.At, reg.ItemVersion
	if first {
		s.started = reg.At
	}
	l.watch.begin(reg.WatchingSince, reg.At, time.Now())
	return l, nil
}

// transaction bounds a call of the center. It has a dozen statements, and each may be a while on its
// way, so that it gets more than one heartbeat; the lease needs no statement to end. The signal to
// leave does not cut it off: nobody would know what became of it.
func (s *server) transaction(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), max(s.settings.JudgeDeadInterval, 5*time.Second))
}

// cut cancels what is in hand when the lease of a life is over. It is called from the lease's goroutine.
func (s *server) cut(l *life) {
	if s.cur.Load() != l {
		return
	}
	l.lapsed.Store(true)
	for _, h := range s.proc.Held() {
		s.proc.Revoke(h.Queue.ID)
	}
}

// report is what the heart tells of this server. It is called from the heart's goroutine.
func (s *server) report(l *life) center.ServerBeat {
	stats := s.proc.Stats()
	b := center.ServerBeat{
		UUID: l.uuid, TaskType: s.task.name, State: center.StateStandby,
		FetchCount: stats.FetchCount, FetchItemCount: stats.FetchItemCount,
		SuccessCount: stats.SuccessCount, FailureCount: stats.FailureCount, SkipCount: stats.SkipCount,
		ExecuteTime: stats.ExecuteTime, InHand: int64(stats.InHand),
		LastFetch: l.dbTime(stats.LastFetchTime), OldestInHand: l.dbTime(stats.OldestInHandSince),
		WatchingSince: l.watch.since, Ring: l.ring, DrainedPartition: l.drained.Load(), InRuns: l.inRuns,
	}
	if w := l.window.Load(); w != nil {
		b.NextRunStart, b.NextRunEnd = w.NextStart, w.NextEnd
	}
	if l.owned.Load() > 0 {
		b.State = center.StateServing
	}
	switch bad := s.badSettings.Load(); {
	case bad != nil:
		b.LastError, b.LastErrorAt = bad.text, l.dbTime(bad.at)
	case stats.LastError != nil:
		b.LastError, b.LastErrorAt = stats.LastError.Error(), l.dbTime(stats.LastErrorTime)
	}
	return b
}
