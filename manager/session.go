package manager

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// The states of a server, as Ready and Status report them. See the package comment for the picture.
const (
	stateJoining = "joining"
	stateServing = "serving"
	stateFenced  = "fenced"
	stateLeaving = "leaving"
)

// session is one registration of a server, from the insertion of its row to its end. Its methods run in the server's
// own goroutine, except cancelAll, report and statistics. A server whose row is gone forgets everything and begins
// another session, under a new uuid (S6).
//
// Its fields are the kernel of a session. Options are in parts.
type session struct {
	*base
	server *server

	planner    *planner
	reconciler *reconciler
	halt       *halt
	config     *configurer
	jobs       *jobRunner
	parts      []part

	reply  heartbeatReply // the last one
	rejoin bool           // the row is gone, and another session is to begin
}

// newSession returns a session that is not registered yet.
func newSession(s *server) *session {
	b := s.base
	ss := &session{server: s, base: &b}
	b.reg = newRegistration(s.host, b.settings, func() {
		if s.session.Load() == ss {
			ss.cancelAll()
		}
	})
	b.reg.report, b.reg.statistics = ss.report, ss.statistics
	b.uuid = b.reg.uuid
	b.log = b.logOf(b.taskType)
	b.agenda = &agenda{}
	b.agenda.add(time.Now(), rebalance) // the roster has one more server
	b.view = &ownView{base: &b}
	b.alerter = &alerter{
		base: &b, incoming: s.alerts, episodes: s.episodes.begin(), lastBusy: time.Now(), progressAt: time.Now(),
	}
	ss.jobs = newJobRunner(&b)
	ss.planner = &planner{base: &b}
	ss.halt = &halt{base: &b}
	ss.config = &configurer{base: &b, rejected: &s.rejected, adopted: &s.adopted, settingsVersion: unknownVersion}
	hung := hungQueues(b.proc)
	ss.reconciler = newReconciler(ss, hung)
	ss.parts = []part{
		windowPart(&b, &s.started), sharePart(&b), hungPart(&b, hung), crashPart(&b), historyPart(&b, s.memory),
		witnessPart(ss.planner), dataPart(&b), itemPart(&b), hintPart(&b), backlogPart(&b, s.backlog), failingPart(ss),
	}
	if b.inRuns() {
		ss.parts = append(ss.parts, runPart(&b, ss.reconciler))
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

// pollInterval is the pause between two polls of a server that waits for a requested queue (S8).
const pollInterval = 100 * time.Millisecond

// outcome says how a wait ended.
type outcome int

const (
	handled   outcome = iota // the session has handled an event
	stopped                  // the context is done
	leaseLost                // the row is gone, or the lease has expired
)

// wait starts the job that is due, waits for the next event of a session whose lease is valid, and deals with it.
func (s *session) wait(ctx context.Context) outcome {
	if !s.reg.lease.valid() {
		return leaseLost
	}
	s.jobs.startNext(ctx, s.job)
	timer := time.NewTimer(max(atOnce, time.Until(s.wakeAt())))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return stopped
	case <-s.reg.gone:
		return leaseLost
	case <-timer.C:
		s.onTime(ctx)
	case r := <-s.reg.replies:
		s.follow(ctx, r)
	case a := <-s.server.ahead:
		for _, p := range s.parts {
			if p.ahead != nil {
				p.ahead(a)
			}
		}
	case <-s.server.ended:
		s.agenda.add(time.Now(), expireEnded)
	case <-s.server.told:
		s.lookAtOnce(ctx)
	case err := <-s.jobs.ended:
		if s.jobs.finish(ctx, err) {
			s.reconcile(ctx, false)
		}
		if s.planner.begins {
			s.planner.begins = false
			s.heartbeater.soon() // the reply has the share (P10)
		}
	case <-s.proc.Drained():
		s.reconcile(ctx, lostByFence(s.proc))
	case <-s.proc.Emptied():
		s.reconcile(ctx, false)
	}
	return handled
}

// job returns the job of a duty, or nil if there is nothing to do.
func (s *session) job(d duty) *job {
	switch d {
	case announceDrain:
		return s.halt.announce()
	case moveQueues:
		return s.reconciler.moveQueues()
	case readSettings:
		return s.config.read(s.reply.SettingsVersion)
	case rebalance:
		return s.planner.rebalance(s.reply, false)
	case audit:
		return s.planner.audit(s.reply)
	case tellAlerts:
		return s.alerter.tellRoster()
	}
	for _, p := range s.parts {
		if newJob := p.jobs[d]; newJob != nil {
			return newJob()
		}
	}
	return nil
}

// wakeAt returns when the session has something to do if nothing happens before. While a job runs, no other starts.
func (s *session) wakeAt() time.Time {
	at := earliest(time.Now().Add(s.reg.lease.left()), s.view.pollAt(s.halt.awaitsRequesters()), s.changes())
	if s.jobs.idle() {
		return earliest(at, s.agenda.begins())
	}
	return at
}

// changes returns when a part changes next by itself which queues must not be worked, or the zero time.
func (s *session) changes() (at time.Time) {
	for _, p := range s.parts {
		if p.changes != nil {
			at = earliest(at, p.changes())
		}
	}
	return at
}

// onTime does what the session's own goroutine does when it is time. It polls, that is, it reads whether a queue has
// arrived. A server that hands everything over reads all its queues, because it waits until their requesters know of
// it.
func (s *session) onTime(ctx context.Context) {
	now := time.Now()
	switch {
	case reached(s.view.pollAt(s.halt.awaitsRequesters()), now):
		if s.halt.handingOver() || !s.view.fresh || !s.view.unchanged(ctx) {
			s.reconcile(ctx, true)
		}
		s.view.checked = time.Now() // the pause begins when a slow database has answered
	case reached(s.changes(), now):
		s.reconcile(ctx, false)
	}
}

// follow takes a heartbeat's reply: it puts what the reply asks for on the agenda, and reconciles.
func (s *session) follow(ctx context.Context, r heartbeatReply) {
	s.view.checked = time.Now()
	s.proc.Wake() // the lease was renewed; executors that met its end ask again
	mustRead := !s.halt.isConfirmed() || s.view.mustRead(r.HeartbeatReply)
	if s.halt.follow(ctx, r); s.halt.isConfirmed() {
		s.server.lateReplies = 0
	}
	if r.History.EpochFloor != s.reply.History.EpochFloor {
		s.config.settingsVersion = unknownVersion // the version may repeat one of the lost history
	}
	now := time.Now()
	*s.agenda = s.agenda.after(r, s.config.settingsVersion, now)
	s.reply = r
	for _, p := range s.parts {
		if s.agenda.add(now, p.beats...); p.follow != nil {
			p.follow(r)
		}
	}
	s.planner.block(r.Skipped)
	s.reconcile(ctx, mustRead)
	s.tellOwners(r)
	s.look(ctx)
}

// look sees the conditions that last, after a heartbeat's reply, and has the roster told of them.
func (s *session) look(ctx context.Context) {
	restricted := s.reconciler.restricted()
	s.alerter.look(s.reply.HeartbeatReply, restricted)
	for _, p := range s.parts {
		if p.look != nil {
			p.look(ctx, restricted)
		}
	}
	s.alerter.looked()
}

// lookAtOnce reads the rows because a hint says that they have changed, or because hints arrive again (X9). Owners that
// could not be told before are told after the next heartbeat (H4).
func (s *session) lookAtOnce(ctx context.Context) {
	for _, p := range s.parts {
		if p.told != nil {
			p.told()
		}
	}
	s.reconcile(ctx, true)
	if s.view.hasNewRequests() {
		s.heartbeater.soon()
	}
}

// tellOwners tells the owners of the queues that this server requests, once for each request, that a heartbeat has
// shown that it knows of them (H4). Without the hint they find that out with heartbeats of their own (X9).
func (s *session) tellOwners(r heartbeatReply) {
	if !s.view.hasNewRequests() || r.read < s.view.NewestRequest(s.uuid) {
		return
	}
	var owners []string
	for _, q := range s.view.Queues {
		if q.Owner != s.uuid && q.Owner != "" {
			owners = append(owners, q.Owner)
		}
	}
	if s.roster.Tell(owners...) {
		s.view.shown = s.view.NewestRequest(s.uuid)
	}
}

// reconcile brings processor and roster in line. With reread it reads the rows again first, even if they are fresh. If
// they have new requests, a heartbeat follows at once, because the owners wait for it (H4), whatever made the server
// read its rows: a heartbeat, a poll, a hint or its own plan.
func (s *session) reconcile(ctx context.Context, reread bool) {
	if reread {
		s.view.invalidate()
	}
	err := s.reconciler.reconcile(ctx)
	s.jobs.logChange(ctx, "read the queues", err)
	if newest := s.view.NewestRequest(s.uuid); newest > s.view.reported {
		s.view.reported = newest
		s.heartbeater.soon()
	}
}

// fenced cancels what is in flight and starts nothing, because the lease has expired or the row is gone (S6). If the
// row is still there when the database answers again, work resumes under the same epochs after a fresh read. If the row
// is gone, another session begins when the old batches have ended, or after the grace. It gets no queue whose calls
// have not ended (P9).
func (s *session) fenced(ctx context.Context) stateFunc {
	s.server.state.Store(stateFenced)
	s.cancelAll()
	if !s.reg.ended() {
		s.log.LogAttrs(ctx, slog.LevelWarn,
			"lease expired without a heartbeat: the database did not answer, or this process stood still; all work is "+
				"stopped until the database answers")
		late, stop := awaitLateReplies(ctx, s.settings.JudgeDeadInterval/2, s.own(), s.reg.lease)
		defer stop()
		select {
		case <-ctx.Done():
			return s.leaving
		case r := <-s.reg.replies:
			s.log.LogAttrs(ctx, slog.LevelInfo, "the database answers and the row is still there; work resumes")
			s.follow(ctx, r)
			return s.serving
		case <-s.reg.gone:
			s.log.LogAttrs(ctx, slog.LevelWarn, "expired by another worker; joining again without queues")
		case <-late:
			s.giveUp(ctx)
		}
	}
	s.jobs.abandon()
	if s.reg.ended() {
		s.server.memory.EndSession(s.reg.beats)
	}
	grace := time.After(s.cfg.Grace)
	for forgetDrained(s.proc) > 0 {
		select {
		case <-ctx.Done():
			return nil // there is nothing left to hand over
		case <-s.proc.Drained():
		case <-grace:
			const text = "a dealer still works a lost queue; this worker does not get the queue again before the dealer returns"
			s.log.LogAttrs(ctx, slog.LevelWarn, text)
			s.rejoin = true
			return nil
		}
	}
	s.rejoin = true
	return nil
}

// cancelAll cancels what is in flight. The calls learn that their queues are lost only if the row is gone: a server
// whose lease has expired may find itself still the owner. Any goroutine may call it.
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
	b := roster.ServerReport{
		UUID: s.uuid, TaskType: s.taskType, State: ops.StateStandby,
		WatchingSince: s.reg.watch.since, WatchRange: s.reg.watchRange,
	}
	if s.view.owned.Load() > 0 {
		b.State = ops.StateServing
	}
	if read := s.view.seen.Load(); read != nil {
		b.ReadPlanVersion, b.ReadSum = read.plan, read.sum
	}
	for _, p := range s.parts {
		if p.report != nil {
			p.report(&b)
		}
	}
	return b
}

// statistics returns what people read about this server. The statisticsWriter calls it, in its own goroutine, and the
// session itself at its end.
func (s *session) statistics() roster.Statistics {
	stats := s.proc.Stats()
	b := roster.StatisticsOf(s.uuid)
	b.FetchCount, b.FetchItemCount = stats.FetchCount, stats.FetchItemCount
	b.SuccessCount, b.FailureCount, b.SkipCount = stats.SuccessCount, stats.FailureCount, stats.SkipCount
	b.ExecuteTime, b.InFlight, b.FailedCalls = stats.ExecuteTime, int64(stats.InFlight), stats.FailedCalls
	b.LastFetch, b.OldestInFlight = s.reg.dbTime(stats.LastFetchTime), s.reg.dbTime(stats.OldestCallSince)
	switch bad := s.server.rejected.Load(); {
	case bad != nil:
		b.LastError, b.LastErrorAt = bad.text, s.reg.dbTime(bad.at)
	case stats.LastError != nil:
		b.LastError, b.LastErrorAt = stats.LastError.Error(), s.reg.dbTime(stats.LastErrorTime)
	}
	for _, p := range s.parts {
		if p.statistics != nil {
			p.statistics(&b)
		}
	}
	return b
}

// awaitLateReplies finds out whether heartbeats arrive although the lease is expired, because their replies come too
// late to renew it. Over a slow link such a server would keep its queues idle for as long as the link is slow: it works
// nothing, and no other server expires it (S12). awaitLateReplies looks at intervals, and closes the channel when two
// looks in succession have found a fresh heartbeat in the roster. stop ends it.
func awaitLateReplies(
	ctx context.Context, every time.Duration, server roster.Server, l *lease,
) (late <-chan struct{}, stop func()) {
	ctx, stop = context.WithCancel(ctx)
	found := make(chan struct{})
	go func() {
		for fresh := 0; fresh < 2; {
			if sleep(ctx, every); ctx.Err() != nil {
				return
			}
			age, err := server.HeartbeatAge(ctx)
			if fresh++; err != nil || age > 2*every || l.valid() {
				fresh = 0
			}
		}
		close(found)
	}()
	return found, stop
}

// giveUp leaves the roster because replies come too late: other servers take the queues over at once. It raises an
// alert.
func (s *session) giveUp(ctx context.Context) {
	s.server.lateReplies++
	text := fmt.Sprintf("heartbeats of %s arrive, and their replies come too late: it gives its queues away. "+
		"It joins again after %s, if a round trip takes at most %s",
		s.uuid, s.server.rejoinPause(), s.slowestRoundTrip().Round(time.Millisecond))
	s.log.LogAttrs(ctx, slog.LevelError, text)
	s.heartbeater.remove(s.reg)
	s.reg.lease.end()
	call, cancel := s.withTimeout(ctx)
	defer cancel()
	if err := s.own().Leave(call, notDrained(s.proc), roster.Reservation{}); err != nil {
		const text = "giving the queues away failed; the other workers take over after judge_dead_interval"
		s.log.LogAttrs(ctx, slog.LevelWarn, text, slog.Any("error", err))
		s.server.unleft = err
	}
	c := condition.Condition{
		Kind: condition.LateReplies.Name, TaskType: s.taskType, Subject: s.server.host, Text: text,
	}.Complete()
	s.alerter.episodes.see(c, reported) // so that Conditions has it; the next session tells the roster if this call cannot
	s.alerter.episodes.checked(reported)
	err := s.alerter.tell(call, &c, *s.settings)
	s.alerter.told(ctx, c, err)
}
