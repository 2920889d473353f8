package manager

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// The states of a server, as Ready and Status report them. See the package comment for the picture.
const (
	stateJoining = "joining"
	stateServing = "serving"
	stateFenced  = "fenced"
	stateLeaving = "leaving"
)

// session is one registration of a server, from the insertion of its row to its end. Its methods run in the server's
// own goroutine, except cancelAll and report. A server whose row is gone forgets everything and begins another session,
// under a new uuid (S6).
//
// It has 20 methods: three states, the events of wait, the jobs, and the steps of leaving. They use the same parts, so
// a second type would hold the same fields.
type session struct {
	*base
	server      *server
	reg         *registration
	heartbeater *heartbeater

	view       *ownView
	planner    *planner
	reconciler *reconciler
	halt       *halt
	share      *callShare
	hung       *hungCalls
	window     *permitWindow
	alerter    *alerter
	failures   *failingQueues
	config     *configurer
	ticker     *runTicker   // nil in mode CONTINUOUS
	sweeper    *sweeper     // nil in mode CONTINUOUS
	problems   *runProblems // nil in mode CONTINUOUS
	jobs       *jobRunner

	rejoin bool // the row is gone, and another session is to begin
}

// newSession returns a session that is not registered yet.
func newSession(s *server) *session {
	b := s.base
	ss := &session{server: s, base: &b, heartbeater: s.heartbeater}
	ss.reg = newRegistration(s.host, b.settings, func() {
		if s.session.Load() == ss {
			ss.cancelAll()
		}
	})
	ss.reg.report = ss.report
	b.uuid = ss.reg.uuid
	b.log = b.logOf(b.taskType)
	ss.view = &ownView{base: &b}
	ss.jobs = newJobRunner(&b)
	ss.alerter = &alerter{base: &b, incoming: s.alerts, episodes: s.episodes, backlog: s.backlog, lastBusy: time.Now(), progressAt: time.Now()}
	ss.planner = &planner{base: &b, view: ss.view, alerter: ss.alerter, rebalanceDue: true, soon: s.heartbeater.soon, witness: s.witness} // the roster has one more server
	ss.halt = &halt{base: &b, reg: ss.reg}
	ss.share = &callShare{base: &b, soon: s.heartbeater.soon}
	ss.hung = &hungCalls{base: &b, planner: ss.planner, listed: hungQueues(b.proc)}
	ss.window = &permitWindow{base: &b, reg: ss.reg}
	ss.config = &configurer{base: &b, reg: ss.reg, soon: s.heartbeater.soon, window: ss.window, rejected: &s.rejected, settingsVersion: unknownVersion, settingsDue: -1}
	if b.inRuns() {
		ss.ticker = &runTicker{base: &b}
		ss.sweeper = &sweeper{base: &b, view: ss.view, ticker: ss.ticker, sweeps: map[string]*sweep{}}
		ss.problems = &runProblems{base: &b, alerter: ss.alerter}
	}
	ss.reconciler = &reconciler{
		base: &b, view: ss.view, planner: ss.planner, halt: ss.halt, window: ss.window, sweeper: ss.sweeper,
		crashes: &crashCounts{base: &b, survived: map[string]int64{}, reset: map[string]int64{}},
		drains:  map[string]time.Time{}, lost: map[string]bool{}, retired: map[string]int64{},
	}
	ss.failures = &failingQueues{base: &b, reg: ss.reg, view: ss.view, reconciler: ss.reconciler}
	for id := range ss.hung.listed {
		ss.reconciler.lost[id] = true // by a former session, which has said so
	}
	return ss
}

// stateFunc is a state. It runs until the session leaves it and returns the next one, or nil at the end of the session.
type stateFunc func(context.Context) stateFunc

// run goes through the states and reports whether another session must begin.
func (s *session) run(ctx context.Context) (rejoin bool) {
	for state := s.serving; state != nil; {
		state = state(ctx)
	}
	return s.rejoin
}

// serving follows the roster while the lease is valid. It works nothing before the first heartbeat's reply (S11).
func (s *session) serving(ctx context.Context) stateFunc {
	s.server.state.Store(stateServing)
	for {
		switch s.wait(ctx) {
		case stopped:
			return s.leaving
		case leaseLost:
			return s.fenced
		case handled:
		}
	}
}

// reconcile brings processor and roster in line. With reread it reads the rows again first, even if they are fresh.
func (s *session) reconcile(ctx context.Context, reread bool) {
	if reread {
		s.view.invalidate()
	}
	err := s.reconciler.reconcile(ctx)
	s.hung.due = true
	s.share.lowerEarly()
	s.jobs.logChange(ctx, "read the queues", err)
}

// fenced cancels what is in flight and starts nothing, because the lease has expired or the row is gone (S6). If the
// row is still there when the database answers again, work resumes under the same epochs after a fresh read. If the row
// is gone, another session begins when the old batches have ended, or after the grace. It gets no queue whose calls
// have not ended (P9).
func (s *session) fenced(ctx context.Context) stateFunc {
	s.server.state.Store(stateFenced)
	s.cancelAll()
	if !s.reg.ended() {
		s.log.LogAttrs(ctx, slog.LevelWarn, "lease expired without a heartbeat; all work is stopped until the database answers")
		unheard, stop := s.listen(ctx)
		defer stop()
		select {
		case <-ctx.Done():
			return s.leaving
		case r := <-s.reg.replies:
			s.log.LogAttrs(ctx, slog.LevelInfo, "the database answers and the row is still there; work resumes")
			s.follow(ctx, r)
			return s.serving
		case <-s.reg.gone:
			s.log.LogAttrs(ctx, slog.LevelWarn, "expired by another server; joining again without queues")
		case <-unheard:
			s.giveUp(ctx)
		}
	}
	s.jobs.abandon()
	grace := time.After(s.cfg.Grace)
	for forgetDrained(s.proc) > 0 {
		select {
		case <-ctx.Done():
			return nil // there is nothing left to hand over
		case <-s.proc.Drained():
		case <-grace:
			s.log.LogAttrs(ctx, slog.LevelWarn, "a dealer still works a lost queue; this server does not get the queue again before the dealer returns")
			s.rejoin = true
			return nil
		}
	}
	s.rejoin = true
	return nil
}

// cancelAll cancels what is in flight. The calls learn that their queues are lost only if the row is gone: a server whose
// lease has expired may find itself still the owner. Any goroutine may call it.
func (s *session) cancelAll() {
	s.reg.lapses.Add(1)
	var cause error
	if s.reg.ended() {
		cause = center.ErrFenced
	}
	for _, h := range s.proc.Queues() {
		s.proc.Revoke(h.Queue.ID, cause)
	}
}

// report returns what the heartbeat writes about this server. The heartbeater calls it, in its own goroutine.
func (s *session) report() roster.ServerReport {
	stats := s.proc.Stats()
	b := roster.ServerReport{
		UUID: s.uuid, TaskType: s.taskType, State: center.StateStandby,
		FetchCount: stats.FetchCount, FetchItemCount: stats.FetchItemCount,
		SuccessCount: stats.SuccessCount, FailureCount: stats.FailureCount, SkipCount: stats.SkipCount,
		ExecuteTime: stats.ExecuteTime, InFlight: int64(stats.InFlight),
		LastFetch: s.reg.dbTime(stats.LastFetchTime), OldestInFlight: s.reg.dbTime(stats.OldestCallSince),
		FailedCalls: stats.FailedCalls, WatchingSince: s.reg.watch.since, WatchRange: s.reg.watchRange, DrainedPartition: s.halt.drained.Load(), InRuns: s.ticker != nil,
		Lowering: s.share.lowering(),
	}
	if w := s.window.state.Load(); w != nil {
		b.NextRunStart, b.NextRunEnd = w.NextStart, w.NextEnd
	}
	if s.view.owned.Load() > 0 {
		b.State = center.StateServing
	}
	if e := s.failing(stats); e != nil {
		b.FailingSince = s.reg.dbTime(e.Since)
	}
	switch bad := s.server.rejected.Load(); {
	case bad != nil:
		b.LastError, b.LastErrorAt = bad.text, s.reg.dbTime(bad.at)
	case stats.LastError != nil:
		b.LastError, b.LastErrorAt = stats.LastError.Error(), s.reg.dbTime(stats.LastErrorTime)
	}
	return b
}

// A server is unheard if its heartbeats arrive, so that no other server expires it, and their replies come too late to renew
// its lease, so that it works nothing. It would keep its queues idle for as long as the link is slow (S12).

// listen looks, while the lease is expired, whether the server is unheard. It looks twice per judge_dead_interval, and closes
// the channel when two looks in succession have found a fresh heartbeat in the roster. stop ends it.
func (s *session) listen(ctx context.Context) (unheard <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan struct{})
	every, server := s.settings.JudgeDeadInterval/2, s.roster.Roster().Server(s.taskType, s.uuid)
	go func() {
		for fresh := 0; fresh < 2; {
			if sleep(ctx, every); ctx.Err() != nil {
				return
			}
			age, err := server.HeartbeatAge(ctx)
			if fresh++; err != nil || age > 2*every || s.reg.lease.valid() {
				fresh = 0
			}
		}
		close(found)
	}()
	return found, cancel
}

// giveUp leaves the roster because the server is unheard: other servers take its queues over at once. It raises an alert.
func (s *session) giveUp(ctx context.Context) {
	s.server.unheard++
	text := fmt.Sprintf("heartbeats of %s arrive, and their replies come too late: it gives its queues away. It joins again after %s, if a round trip takes at most %s",
		s.uuid, s.server.rejoinPause(), s.slowestRoundTrip().Round(time.Millisecond))
	s.log.LogAttrs(ctx, slog.LevelError, text)
	s.heartbeater.remove(s.reg)
	s.reg.lease.end()
	call, cancel := s.withTimeout(ctx)
	defer cancel()
	if err := s.roster.Roster().Server(s.taskType, s.uuid).Leave(call, notDrained(s.proc), roster.Reservation{}); err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "giving the queues away failed; the other servers take over after judge_dead_interval", slog.Any("error", err))
	}
	c := center.Condition{Kind: center.AlertUnheard, TaskType: s.taskType, Subject: s.server.host, Text: text}.Complete()
	begins, err := s.alerter.tell(call, &c, *s.settings)
	s.alerter.told(ctx, c, begins, err)
}
