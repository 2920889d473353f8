package manager

import (
	"context"
	"log/slog"
	"time"
)

// job is a call of the roster that may wait for the lock row, or that has many statements. It runs beside the session's
// own goroutine (S10).
type job struct {
	name string // for the log
	// call runs in a goroutine of its own. It uses nothing that the session's goroutine may change meanwhile.
	call func(context.Context) error
	// then takes the error of call, in the session's goroutine, and reports whether the session has more to do at once.
	then func(ctx context.Context, err error) (more bool)
}

// jobRunner runs the jobs of a session one after the other. They do not overlap, because each is decided on by what the
// ones before it have left in the roster.
type jobRunner struct {
	*base
	running *job // nil: none
	cancel  context.CancelFunc
	ended   chan error      // capacity 1
	failing map[string]bool // the names of the jobs whose last call failed
}

func newJobRunner(b *base) *jobRunner {
	return &jobRunner{base: b, ended: make(chan error, 1), failing: map[string]bool{}}
}

func (r *jobRunner) idle() bool { return r.running == nil }

// start starts a job. No other may be running.
func (r *jobRunner) start(ctx context.Context, j *job) {
	ctx, r.cancel = r.withTimeout(ctx)
	r.running = j
	go func() { r.ended <- j.call(ctx) }()
}

// finish ends the running job, whose call has returned err, and reports whether the session has more to do at once.
func (r *jobRunner) finish(ctx context.Context, err error) (more bool) {
	j := r.running
	r.running = nil
	r.cancel()
	r.logChange(ctx, j.name, err)
	return j.then(ctx, err)
}

// wait waits for the running job, if there is one, and ends it.
func (r *jobRunner) wait(ctx context.Context) {
	if !r.idle() {
		r.finish(ctx, <-r.ended)
	}
}

// abandon cancels the running job, because the server's row is gone and its outcome does not matter any more.
func (r *jobRunner) abandon() {
	if !r.idle() {
		r.cancel()
	}
}

// logChange logs the first failure of a job and its recovery, and nothing in between.
func (r *jobRunner) logChange(ctx context.Context, name string, err error) {
	failed := err != nil && !r.roster.IsTransient(err)
	job := slog.String("job", name)
	switch {
	case failed && !r.failing[name]:
		r.log.LogAttrs(ctx, slog.LevelError, "the roster refused a step; trying again", job, slog.Any("error", err))
	case err != nil:
		r.log.LogAttrs(ctx, slog.LevelDebug, "a step failed; trying again", job, slog.Any("error", err))
	case r.failing[name]:
		r.log.LogAttrs(ctx, slog.LevelInfo, "the roster takes the step again", job)
	}
	r.failing[name] = failed
}

// nextJob returns the most urgent job that is due, or nil. How sweeps have ended is saved before their queues are
// released, because the next owner of a queue would sweep it again.
func (s *session) nextJob() *job {
	var next []func() *job
	if s.ticker == nil {
		next = []func() *job{s.announcement, s.reconciler.nextJob, s.config.nextJob, s.hung.nextJob, s.planner.nextJob, s.alerter.nextJob, s.failures.nextJob}
	} else {
		claim := func() *job { return s.sweeper.claim(s.reconciler.claimable) }
		next = []func() *job{s.announcement, s.sweeper.saveEnds, s.reconciler.nextJob, s.config.nextJob, s.hung.nextJob, s.planner.nextJob, claim, s.ticker.nextJob, s.problems.nextJob, s.alerter.nextJob}
	}
	for _, due := range next {
		if j := due(); j != nil {
			return j
		}
	}
	return nil
}

// startJob starts the next job, unless one is running.
func (s *session) startJob(ctx context.Context) {
	if !s.jobs.idle() {
		return
	}
	if j := s.nextJob(); j != nil {
		s.jobs.start(ctx, j)
	}
}

// jobEnded ends the running job and does what has become possible. A job that failed is decided on again after the next
// heartbeat, when the rows are read again.
func (s *session) jobEnded(ctx context.Context, err error) {
	if err != nil {
		s.view.invalidate()
	}
	if s.jobs.finish(ctx, err) {
		s.reconcile(ctx, false)
	}
}

// pollInterval is the pause between two polls of a server that waits for a requested queue (S8).
const pollInterval = 200 * time.Millisecond

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
	s.startJob(ctx)
	var poll, tick <-chan time.Time
	if s.mustPoll() {
		poll = time.After(max(atOnce, time.Until(s.view.checked.Add(pollInterval))))
	}
	if s.ticker != nil && s.jobs.idle() {
		tick = s.ticker.timer()
	}
	expiry := time.NewTimer(max(atOnce, s.reg.lease.left()))
	defer expiry.Stop()
	select {
	case <-ctx.Done():
		return stopped
	case <-s.reg.gone:
		return leaseLost
	case <-expiry.C:
		if !s.reg.lease.valid() { // a heartbeat may have renewed it meanwhile
			return leaseLost
		}
	case r := <-s.reg.replies:
		s.follow(ctx, r)
	case <-s.server.ended:
		s.planner.endedDue = true // startJob starts it
	case err := <-s.jobs.ended:
		s.jobEnded(ctx, err)
	case <-s.proc.Drained():
		s.reconcile(ctx, lostByFence(s.proc.Queues()))
	case <-s.proc.Emptied():
		s.reconcile(ctx, false)
	case <-s.window.timer():
		s.reconcile(ctx, false)
	case <-tick: // startJob starts it
	case <-poll:
		s.poll(ctx)
	}
	return handled
}

// follow notes what a heartbeat's reply asks for, and reconciles. A step that needs a call of the database becomes a
// job. The read of the rows does not.
func (s *session) follow(ctx context.Context, r heartbeatReply) {
	s.view.checked = time.Now()
	s.proc.Wake() // the lease was renewed; executors that met its end ask again
	mustRead := !s.halt.isConfirmed() || s.view.mustRead(r.HeartbeatReply)
	if s.halt.follow(ctx, r); s.halt.isConfirmed() {
		s.server.unheard = 0
	}
	if s.ticker != nil {
		s.ticker.follow(r.HeartbeatReply)
	}
	s.share.follow(r.Share)
	s.config.follow(r.HeartbeatReply)
	s.planner.follow(r, s.halt.barrierPassed(r.HeartbeatReply))
	failing := s.failing(s.proc.Stats())
	s.failures.follow(failing)
	s.reconcile(ctx, mustRead)
	s.alerter.follow(ctx, r.HeartbeatReply, failing, s.reconciler.restricted())
}

// mustPoll reports whether to poll early: another server still owns a queue that this server requests, or this server
// hands everything over and waits until the requesters know of it. A server that keeps working reads its requests with
// each heartbeat only. When many servers join, every other server has to hand a queue over, and polls by all of them
// would be most of the load of the database.
func (s *session) mustPoll() bool {
	return s.halt.handingOver() && !s.halt.overdue() || s.view.hasIncoming()
}

// poll reads whether a queue has arrived. A server that hands everything over reads all its queues, because it waits
// until their requesters know of it.
func (s *session) poll(ctx context.Context) {
	defer func() { s.view.checked = time.Now() }() // at the end: the pause begins when a slow database has answered
	if !s.halt.handingOver() && s.view.fresh && s.view.incomingUnchanged(ctx) {
		return
	}
	s.reconcile(ctx, true)
}
