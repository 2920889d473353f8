package manager

import (
	"context"
	"log/slog"
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
