package console

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"
)

const (
	// shortLife is how long the result of a query serves all viewers. A roster of more than manyQueues queues has
	// longLife.
	shortLife  = 2 * time.Second
	longLife   = 5 * time.Second
	manyQueues = 1000
	// maxAge is the age from which a page says at a part itself how old it is.
	maxAge = 10 * time.Second
	// readLimit is how long a query may take, with the wait for its turn. A database that takes a second for each
	// statement answers in less: a run is about ten of them.
	readLimit = 30 * time.Second
	// patience is how long a page waits for all its queries together. What has not answered by then is in the next
	// update of the page.
	patience = 500 * time.Millisecond
	// longPatience is how long an answer waits that must have all its parts.
	longPatience = 20 * time.Second
	// maxQueries is how many queries run at a time.
	maxQueries = 4
	// maxCached is how many results are kept. The least recently used go first.
	maxCached = 256
)

// errBusy is the error of a query that has not got its turn.
var errBusy = fmt.Errorf("%d other queries have been waiting for the database for too long", maxQueries)

// cache keeps the last result of each query, for all viewers. Requests for the same data wait for the same query.
type cache struct {
	slots   chan struct{} // has room for the queries that run
	flights singleflight.Group

	mu      sync.Mutex
	parts   *simplelru.LRU[string, part]
	changes int // how many changes were made here
}

// part is what a query has returned, as a part of pages.
type part struct {
	value   any       // of the last success; nil before it
	at      time.Time // when the query for value began
	err     error     // of the last run; nil if it succeeded
	failing time.Time // when the first of the runs ended that have failed since value was read

	tried   time.Time // when the last run began that has ended
	changes int       // how many changes had been made here by then
	asking  time.Time // when the run began that is under way; zero if none is

	outdated bool // a change was made here since, and the query has not ended that began after it
}

// known reports whether the query has ever succeeded.
func (p part) known() bool { return p.value != nil }

func newCache() *cache {
	parts, err := simplelru.NewLRU[string, part](maxCached, nil)
	if err != nil {
		panic(err) // only a size below 1 is refused
	}
	return &cache{slots: make(chan struct{}, maxQueries), parts: parts}
}

// request is a query with what identifies it.
type request struct {
	key   string
	life  time.Duration // of its result
	limit time.Duration
	query func(context.Context) (any, error)
}

// get returns the result of a query. It runs the query if the last run is older than its life or than a change, and
// waits for it with the given patience. If the query takes longer, get returns the last result, and the query goes on
// for the next viewer. If it fails, get returns the last result with the error.
func (c *cache) get(ctx context.Context, r request, patience time.Duration) part {
	p, changes := c.find(r.key)
	if p.fresh(r.life, changes) {
		return p
	}
	done := c.flights.DoChan(fmt.Sprintf("%d %s", changes, r.key), func() (any, error) {
		return c.run(context.WithoutCancel(ctx), r, changes), nil
	})
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case result := <-done:
		return result.Val.(part)
	case <-enough.C:
	case <-ctx.Done():
	}
	p, _ = c.find(r.key) // says since when the query is under way
	p.outdated = p.changes != changes
	return p
}

// find returns the last result of a query, and how many changes were made here.
func (c *cache) find(key string) (part, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, _ := c.parts.Get(key)
	return p, c.changes
}

func (p part) fresh(life time.Duration, changes int) bool {
	return !p.tried.IsZero() && time.Since(p.tried) < life && p.changes == changes
}

// run runs a query and keeps its result. It does not end with the request of a viewer, because other viewers wait for
// it.
func (c *cache) run(ctx context.Context, r request, changes int) part {
	p, _ := c.find(r.key)
	if p.fresh(r.life, changes) {
		return p // another viewer's query ended just before this one began
	}
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	p.asking = time.Now()
	c.keep(r.key, p)
	p.tried, p.changes, p.asking = p.asking, changes, time.Time{}
	var value any
	select {
	case c.slots <- struct{}{}:
		value, p.err = r.query(ctx)
		<-c.slots
	case <-ctx.Done():
		p.err = errBusy
	}
	if errors.Is(p.err, context.DeadlineExceeded) {
		p.err = fmt.Errorf("no answer within %s", r.limit)
	}
	switch {
	case p.err == nil:
		p.value, p.at, p.failing = value, p.tried, time.Time{}
	case p.failing.IsZero():
		p.failing = time.Now()
	}
	c.keep(r.key, p)
	return p
}

// keep keeps a result, unless the cache has the result of a query that began after a later change.
func (c *cache) keep(key string, p part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, _ := c.parts.Peek(key); last.changes <= p.changes {
		c.parts.Add(key, p)
	}
}

// outdate makes all queries run again before a viewer gets their results: something was changed.
func (c *cache) outdate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
}
