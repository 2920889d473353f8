package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/fit"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// server serves one task type in this process, over all its sessions.
type server struct {
	base
	task    Task
	host    string
	process string        // its id: the same for all servers of the Manager
	backlog *backlogMeter // nil if the dealer is no Backlogger
	peeking chan struct{} // shared by the servers of the process: Env.Peeking
	alone   chan struct{} // shared by the servers of the process: held while an item is executed alone (S14)

	started  time.Time                        // of the first session, by the database's clock
	alerts   chan condition.Condition         // from the executors to the session's alerter
	ahead    chan roster.AheadError           // from the executors: a data database has a later owner of a queue
	episodes *episodes                        // of all sessions
	memory   *roster.Memory                   // of all sessions
	ended    chan struct{}                    // capacity 1: another process of the host has ended
	told     chan struct{}                    // capacity 1: a hint says that queues or requests have changed (X9)
	rejected atomic.Pointer[rejectedSettings] // nil while the settings in the row are in force

	// For the server's own goroutine:
	unleft      error // why a session that has ended is still in the roster, until the next one
	lateReplies int   // how many sessions in succession ended because no reply came in time

	adopted atomic.Int64            // how often settings that have changed were adopted
	session atomic.Pointer[session] // the present one, for executors, the lease and Status; nil before the first
	state   atomic.Value            // the name of the state, for Ready
	err     error                   // the result of run
}

func newServer(m *Manager, t Task) *server {
	s := &server{
		base: base{
			taskType: t.name, roster: m.c, settings: new(Settings), cfg: m.cfg,
			heartbeater: m.heartbeater, witness: m.witness, hearing: m.hearing, auditing: m.auditing,
		},
		task: t, host: hostName(), process: m.process, alone: m.alone, peeking: m.peeking,
		alerts: make(chan condition.Condition, 16), ahead: make(chan roster.AheadError, 16), episodes: newEpisodes(),
		memory: roster.NewMemory(), ended: make(chan struct{}, 1), told: make(chan struct{}, 1),
	}
	s.log = s.logOf(s.taskType)
	if t.backlogger != nil {
		s.backlog = newBacklogMeter(s, t.backlogger)
	}
	s.state.Store(stateJoining)
	return s
}

// run serves the task type until ctx is done and everything is handed over.
func (s *server) run(ctx context.Context) error {
	if err := s.define(ctx); err != nil || s.proc == nil {
		return err
	}
	processing, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ctx starts the drain, not the end
	metered, meters := make(chan struct{}), s.backlog != nil && !s.inRuns()
	go func() {
		defer close(metered)
		if meters {
			s.backlog.run(processing)
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.logInternal(processing, s.proc.Run(processing))
		<-metered
	}()
	for rejoin := true; rejoin; {
		session := s.join(ctx)
		rejoin = session != nil && session.run(ctx)
	}
	if s.unleft != nil {
		s.fail(s.notLeft(s.unleft))
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(s.cfg.Grace):
		s.fail(fmt.Errorf("stop task %s: a dealer still runs %s after its context was cancelled", s.taskType, s.cfg.Grace))
	}
	return s.err
}

// define writes the task type's rows if they are missing, and makes the processor. It tries again while the database is
// busy or away, while a task type that this one runs after is not defined, because another program may define it later,
// and while the rows have what this process cannot work by: an operator may change that, and the other tasks of the
// process go on meanwhile (S13). If ctx is done first, define makes no processor: there is nothing to serve or hand
// over.
func (s *server) define(ctx context.Context) (err error) {
	*s.settings = s.task.settings.WithDefaults()
	most, apply := s.settings.HeartbeatInterval, s.cfg.ApplySettings
	line := retryLine{log: s.log, text: "task type not served; trying again"}
	defer line.flush(ctx)
	for pause := pollInterval; ctx.Err() == nil; sleep(ctx, pause) {
		if s.proc, err = s.adopt(ctx, &apply); err == nil {
			s.compare(ctx)
			return nil
		}
		if isRefusal(err) {
			s.tellRefusal(ctx, err)
		} else if !s.maySucceed(err) {
			return err
		}
		if pause = min(2*pause, most); pause == most {
			line.failed(ctx, err) // not at once: another task of this program may define it
		}
	}
	return nil
}

// errRefused says that this process cannot work by the settings in the database. It could by the settings that its task
// states.
var errRefused = errors.New("the settings in the database do not suit this process")

// adopt defines the task type and returns a processor with the settings in force. It first applies what the task
// states, if apply is set, and then clears apply: an operator who changes the settings while this process waits must
// not have the change undone.
func (s *server) adopt(ctx context.Context, apply *bool) (*engine.Processor, error) {
	row, err := s.defineOnce(ctx)
	if err == nil && *apply {
		row, err = s.applyOnce(ctx, row)
		*apply = err != nil
	}
	if err != nil {
		return nil, err
	}
	*s.settings = row
	proc, err := s.newProcessor()
	if err == nil {
		return proc, nil
	}
	*s.settings = s.task.settings.WithDefaults() // those of the row may be no settings at all
	if _, contradiction := s.newProcessor(); contradiction != nil {
		s.tellRefusal(ctx, err)
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", errRefused, err)
}

// isRefusal reports whether an error says that this process cannot work by what the rows of the task type have: it
// waits until somebody changes that.
func isRefusal(err error) bool {
	return errors.Is(err, errRefused) || errors.Is(err, roster.ErrUnsuited) || errors.Is(err, roster.ErrRestart) ||
		roster.IsUnreadable(err)
}

// compare says which stated settings are not in force, and how to apply them.
func (s *server) compare(ctx context.Context) {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	if c, differ := ops.New(s.roster).StatedDiffer(ctx, s.taskType, *s.settings, s.task.texts()); differ {
		s.log.LogAttrs(ctx, slog.LevelWarn, c.Text+"; "+c.Hint)
	}
}

// newProcessor makes the processor, unless this process cannot work by the settings in force.
func (s *server) newProcessor() (*engine.Processor, error) {
	if err := s.settings.Validate(); err != nil {
		return nil, fmt.Errorf("task %s: settings in schedule_task_type: %w", s.taskType, err)
	}
	databases, err := s.checkDatabases()
	if err != nil {
		return nil, err
	}
	env := s.env()
	env.Databases = databases
	return s.task.newProcessor(env, fit.Processor(*s.settings))
}

func (s *server) defineOnce(ctx context.Context) (Settings, error) {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	return ops.New(s.roster).Tasks().Define(ctx, s.taskType, s.task.settings)
}

// maySucceed reports whether defining or applying again may succeed: the database is away or busy, another program may
// define what the task type runs after, or has changed the settings meanwhile.
func (s *server) maySucceed(err error) bool {
	return s.roster.IsTransient(err) || errors.Is(err, center.ErrUnknownTask) || errors.Is(err, ops.ErrChanged)
}

// applyOnce applies what the task states, and returns the settings in force then. It logs why they are refused, because
// the server can work by those in the row.
func (s *server) applyOnce(ctx context.Context, row Settings) (Settings, error) {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	text, err := Apply(ctx, s.roster, s.task)
	switch {
	case err == nil:
		s.log.LogAttrs(ctx, slog.LevelInfo, "settings applied: "+text)
		return ops.New(s.roster).Tasks().Settings(ctx, s.taskType)
	case s.maySucceed(err):
		return row, err
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "settings not applied", slog.Any("error", err))
	return row, nil
}

// join registers, under a new uuid each time, and returns the session. It returns nil when ctx is done, or if the first
// registration fails with an error that is not transient.
func (s *server) join(ctx context.Context) *session {
	s.state.Store(stateJoining)
	first := s.session.Load() == nil
	sleep(ctx, s.rejoinPause())
	line := retryLine{log: s.log, text: "registration failed; trying again"}
	defer line.flush(ctx)
	for ctx.Err() == nil {
		session, err := s.register(ctx, first)
		if err == nil {
			line.flush(ctx) // before the line that reports the success
			session.log.LogAttrs(ctx, slog.LevelInfo, "joined")
			s.session.Store(session)
			s.unleft = nil // the others have taken over, or do so while this session works
			s.episodes.end(condition.Refused)
			s.heartbeater.add(session.reg)
			return session
		}
		if isRefusal(err) {
			s.tellRefusal(ctx, err)
		} else if first && !s.roster.IsTransient(err) {
			s.fail(fmt.Errorf("task %s: %w", s.taskType, err))
			return nil
		}
		if errors.Is(err, center.ErrUnknownCommit) {
			s.unleft = err // a row may be there
		}
		line.failed(ctx, err)
		sleep(ctx, s.settings.HeartbeatInterval)
	}
	return nil
}

// register writes the row of a new session. Before each session except the first it defines the task type again,
// because the roster may have been deleted while this process was away.
func (s *server) register(ctx context.Context, first bool) (*session, error) {
	if s.lateReplies > 0 {
		if err := s.measureLink(ctx); err != nil {
			return nil, err
		}
	}
	if !first {
		row, err := s.defineOnce(ctx)
		if err != nil {
			return nil, err
		}
		if row.Mode != s.settings.Mode {
			return nil, fmt.Errorf("%w: mode was %s and is %s", roster.ErrRestart, s.settings.Mode, row.Mode)
		}
	}
	session := newSession(s)
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	ended, err := s.witness.ended()
	if err == nil && len(ended) > 0 {
		_, err = s.roster.Roster().Planner(s.taskType, session.uuid).ExpireEnded(ctx, ended)
	}
	if err != nil {
		const text = "looking for workers whose processes have ended failed; they are expired after judge_dead_interval"
		s.log.LogAttrs(ctx, slog.LevelWarn, text, slog.Any("error", err))
	}
	info := roster.ServerInfo{
		UUID: session.uuid, TaskType: s.taskType, Host: s.host, IP: hostIP(), PID: os.Getpid(),
		ThreadNumber: s.settings.ThreadNumber, JudgeDeadInterval: s.settings.JudgeDeadInterval,
		HeartbeatToken: session.reg.token, LibraryVersion: libraryVersion(), Weight: s.cfg.Weight,
		GivenSettings: s.task.texts(),
		Database:      s.settings.Database, Offers: s.proc.Capabilities(), Labels: s.cfg.Labels, Process: s.process,
		Name: s.cfg.Name,
	}
	for _, p := range session.parts {
		if p.register != nil {
			p.register(&info)
		}
	}
	reg, err := s.roster.Roster().Register(ctx, info)
	if err != nil {
		return nil, err
	}
	if first {
		s.started = reg.At
	}
	session.reg.confirm(reg)
	for _, p := range session.parts {
		if p.registered != nil {
			p.registered(reg)
		}
	}
	return session, nil
}

// maxRejoinPause is the longest pause before a server joins again that got its replies too late.
const maxRejoinPause = 5 * time.Minute

// rejoinPause returns how long a server waits before it joins again. It doubles with each session in succession that
// got its replies too late (S12).
func (s *server) rejoinPause() time.Duration {
	if s.lateReplies == 0 {
		return 0
	}
	return min(s.settings.JudgeDeadInterval<<min(s.lateReplies-1, 10), maxRejoinPause)
}

// errSlowLink says that the database answers too slowly for this server's lease.
var errSlowLink = errors.New("the database is too far away")

// measureLink fails unless a round trip to the database is short enough for heartbeats to renew the lease. A server
// that got its replies too late before joins again only then: otherwise it would be assigned queues again and again
// and never work them.
func (s *server) measureLink(ctx context.Context) error {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	took, err := s.roster.Roster().RoundTrip(ctx)
	if err != nil {
		return err
	}
	if most := s.slowestRoundTrip(); took > most {
		return fmt.Errorf("%w: a round trip takes %s, and judge_dead_interval (%s) allows %s", errSlowLink,
			took.Round(time.Millisecond), s.settings.JudgeDeadInterval, most.Round(time.Millisecond))
	}
	return nil
}

// fail keeps the errors, for run.
func (s *server) fail(err error) {
	if s.err != nil {
		err = fmt.Errorf("%w; %w", s.err, err)
	}
	s.err = err
}

// env returns what connects the processor to the roster: the lease, the fence's batch in the contexts of Execute, and
// the stores of failed items and cursors. The executors call its functions.
func (s *server) env() engine.Env {
	return engine.Env{
		TaskType: s.taskType, OwnSign: s.roster.OwnSign(), Logger: s.cfg.Logger, Hooks: s.cfg.Hooks,
		Server:  func() string { return s.session.Load().uuid }, // queues are granted to a session
		Trusted: s.leaseValid, Enter: s.enter, Bind: s.bind, Lost: center.IsFenced, DataError: s.roster.IsDataError,
		Items: itemStore{s}, Cursors: cursorStore{s}, Alert: s.queueAlert, Alone: s.alone, Redact: s.cfg.Redact,
		Peeking: s.peeking, Hears: s.hearing.on.Load,
	}
}

func (s *server) leaseValid() bool {
	session := s.session.Load()
	return session != nil && session.reg.lease.valid()
}

func (s *server) bind(ctx context.Context, q processor.Queue, cursor *string) context.Context {
	b := center.Batch{
		Server: s.session.Load().uuid, TaskType: s.taskType, Queue: center.QueueEpoch{ID: q.ID, Epoch: q.Epoch},
		Database: q.Database,
	}
	if cursor != nil {
		b.Cursor = &center.CursorMove{From: q.Cursor, To: *cursor}
	}
	if q.Run != nil {
		b.Run = q.Run.ID
		ctx = processor.WithRun(ctx, q.Run)
	}
	return s.roster.Bind(ctx, b)
}

// queueAlert passes an alert to the server's own goroutine. It drops the alert if the channel is full.
func (s *server) queueAlert(a engine.Alert) {
	offer(s.alerts, condition.Condition{Kind: a.Kind, QueueID: a.Queue, Subject: a.Subject, Text: a.Text})
}
