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

// change returns a job that reports whether it has changed the roster. changed is called if it has.
func (b *base) change(
	name string, call func(context.Context) (bool, error), changed func(context.Context),
) *job {
	var done bool
	return &job{
		name: name,
		call: func(ctx context.Context) (err error) {
			done, err = call(ctx)
			return err
		},
		then: func(ctx context.Context, _ error) (more bool) {
			if b.view.invalidate(); done {
				changed(ctx)
			}
			return done
		},
	}
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

// startNext starts the job of the most urgent duty that is due, unless a job is running. jobOf returns nil for a
// duty for which there is nothing to do.
func (r *jobRunner) startNext(ctx context.Context, jobOf func(duty) *job) {
	for r.idle() {
		d, due := r.agenda.next(time.Now())
		if !due {
			return
		}
		r.agenda[d] = time.Time{}
		if j := jobOf(d); j != nil {
			r.start(ctx, j)
		}
	}
}

// start starts a job. No other may be running.
func (r *jobRunner) start(ctx context.Context, j *job) {
	ctx, r.cancel = r.withTimeout(ctx)
	r.running = j
	go func() { r.ended <- j.call(ctx) }()
}

// finish ends the running job, whose call has returned err, and reports whether the session has more to do at once.
// After a job that failed the rows are read again with the next heartbeat.
func (r *jobRunner) finish(ctx context.Context, err error) (more bool) {
	j := r.running
	r.running = nil
	r.cancel()
	if err != nil {
		r.view.invalidate()
	}
	r.logChange(ctx, j.name, err)
	return j.then(ctx, err)
}

// wait waits for the running job, if there is one, and ends it. If the lease expires before, the database does not
// answer: wait abandons the job and reports false.
func (r *jobRunner) wait(ctx context.Context) (ended bool) {
	for !r.idle() {
		expires := time.NewTimer(max(atOnce, r.reg.lease.left()))
		select {
		case err := <-r.ended:
			r.finish(ctx, err)
		case <-expires.C:
			if !r.reg.lease.valid() {
				r.abandon()
				return false
			}
		}
		expires.Stop()
	}
	return true
}

// abandon cancels the running job, because the server's row is gone, or its lease, and the outcome does not matter any
// more.
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
