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
	// maxAge is the greatest age of what a page shows while the database answers.
	maxAge = 10 * time.Second
	// readLimit is how long a query may take, with the wait for its turn.
	readLimit = time.Second
	// patience is how long a viewer waits for a query: a little longer than it may take, and so the viewer learns its
	// error.
	patience = readLimit + 100*time.Millisecond
	// maxQueries is how many queries run at a time.
	maxQueries = 4
	// maxCached is how many results are kept. The least recently used go first.
	maxCached = 256
)

// errLate is the error of a query that has not ended while its viewer waited, and has no result of the last ten
// seconds.
var errLate = errors.New("the database has not answered yet")

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

	tried   time.Time // when the last run began
	changes int       // how many changes had been made here by then
}

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
// waits for it with the given patience. If the query fails, or takes longer, get returns the last result with an
// error.
func (c *cache) get(ctx context.Context, r request, patience time.Duration) part {
	p, changes := c.find(r.key)
	if p.fresh(r.life, changes) {
		return p
	}
	done := c.flights.DoChan(fmt.Sprint(changes, r.key), func() (any, error) {
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
	if p.err == nil && time.Since(p.at) > maxAge {
		p.err, p.failing = errLate, time.Now()
	}
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
	p.tried, p.changes = time.Now(), changes
	var value any
	select {
	case c.slots <- struct{}{}:
		value, p.err = r.query(ctx)
		<-c.slots
	case <-ctx.Done():
		p.err = ctx.Err()
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
