package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
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

	life *life                // the server's own goroutine
	cur  atomic.Pointer[life] // the same, for executors and the heart
	now  atomic.Value         // the state's name, for Ready
	err  error                // why run ends, if not in order
}

func newServer(m *Manager, t Task) *server {
	s := &server{m: m, c: m.c, task: t, host: hostName()}
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
// until ctx is done; then there is nothing to serve and nothing to hand over.
func (s *server) define(ctx context.Context) (err error) {
	given := s.task.settings
	s.settings = given.WithDefaults()
	for ctx.Err() == nil {
		s.settings, err = s.defineOnce(ctx, given)
		if err == nil {
			break
		}
		s.settings = given.WithDefaults()
		if !s.c.IsTransient(err) {
			return err
		}
		s.log.WithError(err).Warn("cannot define the task type; trying again")
		sleep(ctx, s.settings.HeartbeatInterval)
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
	ctx, cancel := s.statement(ctx)
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

func processorSettings(s Settings) processor.Settings {
	return processor.Settings{
		ThreadNumber: s.ThreadNumber, FetchNumber: s.FetchNumber, ExecuteNumber: s.ExecuteNumber,
		SleepTimeNoData: s.SleepTimeNoData, SleepTimeInterval: s.SleepTimeInterval,
		Retry: s.ItemRetry, RetryMax: s.ItemRetryMax, Parameter: s.TaskParameter,
	}
}

// env is how the processor asks whether it may go on, and how the fence's batch gets into the
// contexts of Execute. Its functions are called from the executors.
func (s *server) env() processor.Env {
	return processor.Env{
		TaskType: s.task.name, OwnSign: s.c.OwnSign(), Log: s.m.cfg.Logger,
		Trusted: func() bool {
			l := s.cur.Load()
			return l != nil && l.lease.valid()
		},
		Bind: func(ctx context.Context, queues []processor.Queue) context.Context {
			b := center.Batch{Server: s.cur.Load().uuid, TaskType: s.task.name, Queues: make([]center.Held, len(queues))}
			for i, q := range queues {
				b.Queues[i] = center.Held{ID: q.ID, Epoch: q.Epoch}
			}
			return s.c.Bind(ctx, b)
		},
		Lost: center.IsFenced,
	}
}

// register begins a new life in the table.
func (s *server) register(ctx context.Context) (*life, error) {
	l := newLife(s.host, s.settings, s.cut)
	l.report = func() center.ServerBeat { return s.report(l) }
	ctx, cancel := s.statement(ctx)
	defer cancel()
	reg, err := s.c.Register(ctx, center.Server{
		UUID: l.uuid, TaskType: s.task.name, Host: s.host, IP: hostIP(), PID: os.Getpid(),
		ThreadNumber: s.settings.ThreadNumber, JudgeDeadInterval: s.settings.JudgeDeadInterval,
		BeatToken: l.token, LibraryVersion: libraryVersion(),
	})
	if err != nil {
		return nil, err
	}
	l.clock.Store(&clockPair{db: reg.At, local: time.Now()})
	l.watch.begin(reg.WatchingSince, reg.At, time.Now())
	return l, nil
}

// statement bounds a call of the center. The signal to leave does not cut it off: nobody would know
// what became of it.
func (s *server) statement(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), statementTimeout(s.settings.HeartbeatInterval))
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
		UUID: l.uuid, State: center.StateStandby,
		FetchCount: stats.FetchCount, FetchItemCount: stats.FetchItemCount,
		SuccessCount: stats.SuccessCount, FailureCount: stats.FailureCount, SkipCount: stats.SkipCount,
		ExecuteTime: stats.ExecuteTime, InHand: int64(stats.InHand),
		LastFetch: l.dbTime(stats.LastFetchTime), OldestInHand: l.dbTime(stats.OldestInHandSince),
		WatchingSince: l.watch.since, DrainedPartition: l.drained.Load(),
	}
	if len(s.proc.Held()) > 0 {
		b.State = center.StateServing
	}
	if stats.LastError != nil {
		b.LastError = stats.LastError.Error()
	}
	return b
}

// refresh brings the roster, the view of it and the processor in line, as far as can be done at
// once: plan if that is due, read if something changed, then take the steps that decide names.
func (s *server) refresh(ctx context.Context, p *pulse, leaving bool) {
	err := s.follow(ctx, p)
	for err == nil {
		if err = s.readView(ctx); err != nil {
			break
		}
		actions := decide(s.facts(leaving))
		var changed bool
		if changed, err = s.perform(ctx, actions); err == nil && !changed {
			s.acknowledge()
			return
		}
	}
	s.life.stale = true // whatever it was, the next pulse tries again
	if !s.c.IsTransient(err) && !errors.Is(err, context.Canceled) {
		s.log.WithError(err).Error("roster")
		return
	}
	s.log.WithError(err).Debug("roster; trying again")
}

func (s *server) facts(leaving bool) facts {
	l := s.life
	return facts{
		uuid: l.uuid, rows: l.view.Queues, held: s.proc.Held(),
		spent: l.spent, blocked: l.blocked, halted: l.halted, leaving: leaving,
	}
}

// follow does what a pulse asks for.
func (s *server) follow(ctx context.Context, p *pulse) error {
	if p == nil {
		return nil
	}
	l := s.life
	s.proc.Wake() // the lease was renewed; executors that met its end ask again
	if l.lapsed.Swap(false) || !l.matches(p.Pulse) {
		l.stale = true
	}
	s.halt(p.Pulse)
	if p.SettingsVersion != l.settings && p.SettingsVersion >= 0 {
		if err := s.reconfigure(ctx, p.SettingsVersion); err != nil {
			return err
		}
	}
	if dead := p.AnyDead && p.watched > 0; dead || p.MembershipVersion != p.PlannedVersion {
		if err := s.plan(ctx, p.watched); err != nil {
			return err
		}
	}
	if p.AllDrained && l.drained.Load() == p.PartitionVersion {
		if err := s.finishRepartition(ctx); err != nil {
			return err
		}
	}
	if p.AuditDue {
		return s.audit(ctx)
	}
	return nil
}

// halt notes whether queues may be worked at all: not while the task type or this server is paused, nor
// while everybody drains for another number of queues.
func (s *server) halt(p center.Pulse) {
	l := s.life
	halted := p.Paused || p.State == center.StatePaused || p.RequestedTotal > 0
	if halted != l.halted {
		s.log.WithFields(logrus.Fields{"paused": p.Paused || p.State == center.StatePaused, "repartition": p.RequestedTotal > 0}).
			Infof("halted: %t", halted)
	}
	l.halted, l.barrier = halted, 0
	if p.RequestedTotal > 0 {
		l.barrier = p.PartitionVersion
	}
	if l.drained.Load() != l.barrier {
		l.drained.Store(0) // what was drained for another request does not count
	}
}

// acknowledge tells with the next heartbeat that nothing is in hand, and that nothing will start before
// the number of queues has changed or the request for that is withdrawn (N1).
func (s *server) acknowledge() {
	if s.life.barrier != 0 && s.idle() {
		s.life.drained.Store(s.life.barrier)
	}
}

func (s *server) finishRepartition(ctx context.Context) error {
	s.life.stale = true
	ctx, cancel := s.statement(ctx)
	defer cancel()
	done, err := s.c.FinishRepartition(ctx, s.task.name, s.life.uuid)
	if done {
		s.log.Info("the number of queues has changed")
	}
	return err
}

// audit repairs what was edited by hand, and forgets what is old, once per interval and roster.
func (s *server) audit(ctx context.Context) error {
	ctx, cancel := s.statement(ctx)
	defer cancel()
	turn, err := s.c.Audit(ctx, s.task.name, s.life.uuid)
	if err != nil || !turn {
		return err
	}
	s.life.stale = true
	_, err = s.c.Clean(ctx, s.m.cfg.Retention)
	return err
}

// plan deals the queues, and buries the dead first, if we have watched for long enough.
func (s *server) plan(ctx context.Context, watched time.Duration) error {
	s.life.stale = true
	ctx, cancel := s.statement(ctx)
	defer cancel()
	blocked, err := s.c.Assign(ctx, s.task.name, center.Assignment{
		Actor: s.life.uuid, Watched: watched, BeatWithin: 2 * s.settings.HeartbeatInterval,
	})
	if err != nil {
		return err
	}
	s.life.blocked = map[string]bool{}
	for _, id := range blocked {
		s.life.blocked[id] = true
	}
	return nil
}

// reconfigure takes over settings that were changed in the row. Bad ones are refused: the last good
// ones stay in force.
func (s *server) reconfigure(ctx context.Context, version int64) error {
	ctx, cancel := s.statement(ctx)
	defer cancel()
	row, err := s.c.Settings(ctx, s.task.name)
	if err != nil {
		return err
	}
	first := s.life.settings == unknownVersion
	s.life.settings = version
	if err := row.Validate(); err != nil {
		s.log.WithError(err).Error("the settings in schedule_task_type are not taken over")
		return nil
	}
	if err := s.proc.Configure(processorSettings(row)); err != nil {
		s.log.WithError(err).Error("the settings in schedule_task_type are not taken over")
		return nil
	}
	// The intervals of a registration stay what others were told in its row.
	row.HeartbeatInterval, row.JudgeDeadInterval = s.settings.HeartbeatInterval, s.settings.JudgeDeadInterval
	s.settings = row
	if !first {
		s.log.Info("took over the settings that were changed in schedule_task_type")
	}
	return nil
}

func (s *server) readView(ctx context.Context) error {
	if !s.life.stale {
		return nil
	}
	ctx, cancel := s.statement(ctx)
	defer cancel()
	v, err := s.c.View(ctx, s.task.name, s.life.uuid)
	if err != nil {
		return err
	}
	s.life.view, s.life.stale = v, false
	return nil
}

// perform takes the steps, and tells whether there may be more to take at once. Steps in the database make the
// view stale, also when they fail or find nothing to change; the next pulse then looks again.
func (s *server) perform(ctx context.Context, actions []action) (changed bool, err error) {
	var handovers []center.Handover
	again := false
	for _, a := range actions {
		switch a.verb {
		case grant:
			s.grant(a.row)
		case drain:
			s.proc.Drain(a.id)
		case resume:
			s.proc.Resume(a.id)
		case revoke:
			s.queueLog(a.id).Warn("queue lost")
			s.proc.Revoke(a.id)
		case forget:
			changed = s.proc.Forget(a.id) || changed // it may be begun anew, under another epoch
		case release:
			handovers = append(handovers, center.Handover{QueueID: a.id, Epoch: a.row.Epoch, To: a.row.Req})
		case retake:
			kept, err := s.retake(ctx, a.row)
			if err != nil {
				return changed, err
			}
			changed = changed || kept
		case replan:
			again = true
		}
	}
	if again {
		before := len(s.life.blocked)
		if err := s.plan(ctx, 0); err != nil {
			return changed, err
		}
		changed = changed || len(s.life.blocked) < before
	}
	if len(handovers) > 0 {
		released, err := s.release(ctx, handovers)
		return changed || released, err
	}
	return changed, nil
}

func (s *server) queueLog(id string) logrus.FieldLogger { return s.log.WithField("queue", id) }

func (s *server) grant(row center.ViewQueue) {
	q := processor.Queue{ID: row.ID, Index: row.Index, Parameter: row.Parameter, Cursor: row.Cursor, Epoch: row.Epoch}
	s.queueLog(row.ID).WithField("epoch", row.Epoch).Info("queue taken up")
	s.must(s.proc.Grant(q, s.life.view.QueueTotal))
}

// release hands over queues that are drained. From the moment it is sent they are not worked again
// under these epochs, whatever the reply (H3): the processor forgets them first.
func (s *server) release(ctx context.Context, handovers []center.Handover) (bool, error) {
	for _, h := range handovers {
		s.proc.Forget(h.QueueID)
		s.life.spent[h.QueueID] = h.Epoch
	}
	s.life.stale = true
	ctx, cancel := s.statement(ctx)
	defer cancel()
	released, err := s.c.Release(ctx, s.task.name, s.life.uuid, handovers)
	for _, h := range handovers {
		if slices.Contains(released, h.QueueID) {
			s.queueLog(h.QueueID).WithField("to", h.To).Info("queue handed over")
		}
	}
	return len(released) > 0, err
}

func (s *server) retake(ctx context.Context, row center.ViewQueue) (bool, error) {
	s.life.stale = true
	ctx, cancel := s.statement(ctx)
	defer cancel()
	return s.c.Retake(ctx, s.task.name, s.life.uuid, row.ID, row.Epoch)
}
