package console

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// readEvery is the least time between two runs of a query.
	readEvery = time.Second
	// maxReadEvery is the most time between two runs of a query that viewers look at.
	maxReadEvery = 10 * time.Second
	// readShare is the greatest part of the time that a query runs, up to maxReadEvery: one in so many.
	readShare = 50
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
}

// read is a query and its last result.
type read struct {
	value   any       // nil until the query has succeeded
	at      time.Time // when value was read
	tried   time.Time // when the query last ended
	took    time.Duration
	err     error     // of the last run; nil if it succeeded
	failing time.Time // when the first of the runs ended that have failed since value was read
	used    time.Time
	stale   bool          // something was changed after the query began
	running chan struct{} // closed when the run ends; nil if none runs
}

func newReads(slots chan struct{}) *reads {
	return &reads{slots: slots, byKey: map[string]*read{}}
}

// due reports whether the query may run again.
func (r *read) due(now time.Time) bool {
	pause := min(max(readEvery, readShare*r.took), maxReadEvery)
	if r.err != nil {
		pause = retryEvery
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
	r := v.reads.refresh(ctx, key, limit, func(ctx context.Context) (any, error) { return query(ctx) })
	value, ok := r.value.(T)
	if !ok {
		return value, cmpError(r.err, ctx.Err())
	}
	v.note(r)
	return value, nil
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
		if r.due(time.Now()) {
			r.running, r.stale = make(chan struct{}), false
			go s.run(context.WithoutCancel(ctx), r, limit, query)
		}
		result := *r
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
	r.tried, r.took, r.err = time.Now(), time.Since(begin), err
	switch {
	case err == nil:
		r.value, r.at, r.failing = value, begin, time.Time{}
	case r.failing.IsZero():
		r.failing = r.tried
	}
	close(r.running)
	r.running = nil
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
