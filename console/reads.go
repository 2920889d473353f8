package console

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dutyrota/rota/center"
)

const (
	// readEvery is the least time between two runs of a query.
	readEvery = time.Second
	// readShare is the greatest part of the time that a query runs while the roster changes, up to maxReadEvery: one in so
	// many.
	readShare = 50
	// maxReadEvery is the most time between two runs of a query that viewers look at while the roster changes.
	maxReadEvery = 10 * time.Second
	// calmEvery and maxCalmEvery bound the time between two runs while nothing has changed. A query that takes twice as
	// long runs a quarter as often: one of 1 ms each five seconds, one of 10 ms each 50 s, from 25 ms on each five minutes.
	// Runs in progress are never calm.
	calmEvery    = 5 * time.Second
	maxCalmEvery = 5 * time.Minute
	calmUnit     = 2 * time.Microsecond
	// pulsePatience is how long a viewer waits to learn whether something has changed.
	pulsePatience = 100 * time.Millisecond
	// retryEvery is the least time between two runs of a query that fails.
	retryEvery = 2 * time.Second
	// readLimit is how long a query may run.
	readLimit = time.Second
	// diagnosisLimit is how long the checks of the doctor may run, which are many queries.
	diagnosisLimit = 10 * time.Second
	// diagnosisPatience is how long a viewer waits for the checks. The page has them two seconds later.
	diagnosisPatience = 60 * time.Millisecond
	// patience is how long a viewer waits for a query.
	patience = time.Second
	// linkShare is how many times the duration of the pulse a query takes without costing the database anything: the link
	// may be slow, or the machine busy.
	linkShare = 3
	// maxReads is how many queries with their results are kept. Addresses with other parameters are other queries.
	maxReads = 500
	// maxQueries is how many queries run at a time.
	maxQueries = 4
)

// reads keeps the last result of each query, for all viewers.
type reads struct {
	slots chan struct{} // has room for the queries that run

	mu    sync.Mutex
	byKey map[string]*read
	pulse center.Pulse // the last one that was read
	beat  time.Time    // when
}

// read is a query and its last result.
type read struct {
	value   any           // nil until the query has succeeded
	at      time.Time     // when value was read
	asOf    time.Time     // when value was still what a query would return, but for the progress of work
	tried   time.Time     // when the query last ended
	took    time.Duration // how long the query takes in the database; one slow run counts as twice the time of the run before at the most
	live    bool          // value has runs in progress
	err     error         // of the last run; nil if it succeeded
	failing time.Time     // when the first of the runs ended that have failed since value was read
	used    time.Time
	stale   bool          // something was changed here after the query began
	pulse   center.Pulse  // the last one when the query began
	running chan struct{} // closed when the run ends; nil if none runs
}

func newReads(slots chan struct{}) *reads {
	return &reads{slots: slots, byKey: map[string]*read{}}
}

// pulseKey is the query that says whether something has changed.
const pulseKey = "pulse"

// due reports whether the query may run again. calm means that nothing has changed since it ran.
func (r *read) due(now time.Time, calm bool) bool {
	pause := min(max(readEvery, readShare*r.took), maxReadEvery)
	switch {
	case r.err != nil:
		pause = retryEvery
	case calm && !r.live:
		pause = min(max(calmEvery, r.took*(min(r.took, time.Second)/calmUnit)), maxCalmEvery)
	}
	return r.running == nil && (r.stale || now.Sub(r.tried) >= pause)
}

// load returns the result of a query, which is some seconds old at the most while the database answers. key names the
// query with its parameters. If the query fails, load returns the result of its last success, with the error.
func load[T any](ctx context.Context, v *view, key string, query func(context.Context) (T, error)) (T, error) {
	return loadWithin(ctx, v, readLimit, key, query)
}

// loadWithin is load with another limit.
func loadWithin[T any](ctx context.Context, v *view, limit time.Duration, key string, query func(context.Context) (T, error)) (T, error) {
	v.takePulse(ctx)
	r := v.reads.refresh(ctx, key, limit, func(ctx context.Context) (any, error) { return query(ctx) })
	value, ok := r.value.(T)
	if !ok {
		v.noteFailure(r)
		return value, cmpError(r.err, ctx.Err())
	}
	v.note(key, r)
	return value, nil
}

// takePulse learns whether something has changed, at most once for a page.
func (v *view) takePulse(ctx context.Context) {
	if v.pulsed {
		return
	}
	v.pulsed = true
	ctx, cancel := context.WithTimeout(ctx, pulsePatience)
	defer cancel()
	r := v.reads.refresh(ctx, pulseKey, readLimit, func(ctx context.Context) (any, error) { return v.center.Pulse(ctx) })
	if pulse, ok := r.value.(center.Pulse); ok {
		v.reads.setPulse(pulse, r.at)
	}
	v.noteFailure(r) // the other queries may rest for minutes, and not notice that the database is away
}

func (s *reads) setPulse(pulse center.Pulse, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.beat) {
		s.pulse, s.beat = pulse, at
	}
}

// cmpError returns the first error that is not nil.
func cmpError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return errors.New("the database has not answered yet")
}

// refresh runs a query if it is due, for limit at the most, and waits until it ends. A viewer runs out of patience.
func (s *reads) refresh(ctx context.Context, key string, limit time.Duration, query func(context.Context) (any, error)) read {
	enough, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		s.mu.Lock()
		r := s.find(key)
		if r.due(time.Now(), r.pulse == s.pulse && key != pulseKey) {
			r.running, r.stale, r.pulse = make(chan struct{}), false, s.pulse
			go s.run(context.WithoutCancel(ctx), r, limit, query)
		}
		result := *r
		if result.err == nil && result.pulse == s.pulse && s.beat.After(result.at) {
			result.asOf = s.beat
		}
		s.mu.Unlock()
		if result.running == nil || enough.Err() != nil {
			return result
		}
		select {
		case <-result.running:
		case <-enough.Done():
		}
	}
}

// peek returns the last result of a query, or nil, without running it.
func (s *reads) peek(key string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.byKey[key]; ok {
		return r.value
	}
	return nil
}

// outdate makes all queries run again before a viewer gets their results: something was changed.
func (s *reads) outdate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.byKey {
		r.stale = true
	}
}

// run runs a query. It does not end with the request of a viewer, because other viewers wait for it too.
func (s *reads) run(ctx context.Context, r *read, limit time.Duration, query func(context.Context) (any, error)) {
	s.slots <- struct{}{}
	ctx, cancel := context.WithTimeout(ctx, limit)
	begin := time.Now()
	value, err := query(ctx)
	cancel()
	<-s.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	r.tried, r.err = time.Now(), err
	switch {
	case err == nil:
		r.took = s.cost(r, time.Since(begin))
		r.value, r.live = value, inProgress(value)
		r.at, r.asOf, r.failing = begin, begin, time.Time{}
	case r.failing.IsZero():
		r.failing = r.tried
	}
	close(r.running)
	r.running = nil
}

// cost returns how long a query takes in the database, after it has taken so long in all. The caller holds the lock.
func (s *reads) cost(r *read, took time.Duration) time.Duration {
	if pulse := s.find(pulseKey); pulse != r {
		took = max(took-linkShare*pulse.took, time.Millisecond)
	}
	if r.took > 0 {
		took = min(took, 2*r.took)
	}
	return took
}

// inProgress reports whether a result has runs in progress. Their progress does not change the pulse, and people follow it.
func inProgress(value any) bool {
	switch value := value.(type) {
	case []center.RunRecord:
		return slices.ContainsFunc(value, runs)
	case center.RunDetails:
		return runs(value.Run)
	}
	return false
}

func runs(r center.RunRecord) bool {
	return r.State == center.RunReady || r.State == center.RunRunning
}

// find returns the query with this key. It forgets the query that was used the longest ago if there are too many. The
// caller holds the lock.
func (s *reads) find(key string) *read {
	r, ok := s.byKey[key]
	if !ok {
		if len(s.byKey) >= maxReads {
			s.forget()
		}
		r = &read{}
		s.byKey[key] = r
	}
	r.used = time.Now()
	return r
}

func (s *reads) forget() {
	oldest := ""
	for key, r := range s.byKey {
		if r.running == nil && (oldest == "" || r.used.Before(s.byKey[oldest].used)) {
			oldest = key
		}
	}
	delete(s.byKey, oldest)
}
