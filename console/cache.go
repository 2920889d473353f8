package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"

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
	// maxCached is how many bytes of results are kept. The results that were not used for the longest time go first.
	maxCached = 128 << 20
	// keptFor is how long a result is kept after its last use.
	keptFor = 10 * time.Minute
)

// errLate is the error of a query that has not ended while its viewer waited, and has no result of the last ten
// seconds.
var errLate = errors.New("the database has not answered yet")

// cache keeps the last result of each query, for all viewers. Requests for the same data wait for the same query.
type cache struct {
	slots   chan struct{} // has room for the queries that run
	flights singleflight.Group

	mu       sync.Mutex
	byKey    map[string]part
	bytes    int // of all parts
	changes  int // how many changes were made here
	sweeping bool
}

// part is what a query has returned, as a part of pages.
type part struct {
	value   any       // of the last success; nil before it
	at      time.Time // when the query for value began
	err     error     // of the last run; nil if it succeeded
	failing time.Time // when the first of the runs ended that have failed since value was read

	tried   time.Time // when the last run began
	changes int       // how many changes had been made here by then
	used    time.Time
	bytes   int
}

func newCache() *cache {
	return &cache{slots: make(chan struct{}, maxQueries), byKey: map[string]part{}}
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
	p, ok := c.byKey[key]
	if ok {
		p.used = time.Now()
		c.byKey[key] = p
	}
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
	p.bytes = 2*len(r.key) + sizeOf(reflect.ValueOf(p))
	c.keep(r.key, p)
	return p
}

// keep keeps a result, unless the cache has the result of a query that began after a later change.
func (c *cache) keep(key string, p part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[key].changes > p.changes {
		return
	}
	p.used = time.Now()
	c.bytes += p.bytes - c.byKey[key].bytes
	c.byKey[key] = p
	for c.bytes > maxCached {
		c.dropOldestLocked()
	}
	if !c.sweeping {
		c.sweeping = true
		time.AfterFunc(keptFor, c.sweep)
	}
}

func (c *cache) dropOldestLocked() {
	oldest := ""
	for key, p := range c.byKey {
		if oldest == "" || p.used.Before(c.byKey[oldest].used) {
			oldest = key
		}
	}
	c.bytes -= c.byKey[oldest].bytes
	delete(c.byKey, oldest)
}

// sweep drops what nobody has used for long, and runs again later while anything is left.
func (c *cache) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.byKey, func(_ string, p part) bool {
		old := time.Since(p.used) >= keptFor
		if old {
			c.bytes -= p.bytes
		}
		return old
	})
	if c.sweeping = len(c.byKey) > 0; c.sweeping {
		time.AfterFunc(keptFor, c.sweep)
	}
}

// outdate makes all queries run again before a viewer gets their results: something was changed.
func (c *cache) outdate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
}

// sizeOf returns about how many bytes a value takes with all that it points to.
func sizeOf(v reflect.Value) int {
	size := 0
	if v.IsValid() {
		size = int(v.Type().Size())
	}
	switch v.Kind() {
	case reflect.String:
		size += v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*time.Location]() {
			size += sizeOf(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			size += sizeOf(v.Index(i))
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			size += sizeOf(key) + sizeOf(value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			size += sizeOf(field) - int(field.Type().Size())
		}
	}
	return size
}
