package console

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// waits is the patience of a viewer who learns the result of each query, or its error.
const waits = readLimit + 100*time.Millisecond

// slowQuery is a query that counts its runs. It returns the time of its beginning.
type slowQuery struct {
	runs atomic.Int64
	now  atomic.Int64 // how many are under way
	most atomic.Int64
	took time.Duration
	err  atomic.Pointer[error]
}

func (q *slowQuery) run(ctx context.Context) (any, error) {
	q.runs.Add(1)
	q.most.Store(max(q.most.Load(), q.now.Add(1)))
	defer q.now.Add(-1)
	begin := time.Now()
	if err := q.err.Load(); err != nil {
		return nil, *err
	}
	select {
	case <-time.After(q.took):
		return begin, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (q *slowQuery) request(key string, life time.Duration) request {
	return request{key, life, readLimit, q.run}
}

// look reads for a number of viewers, ten times a second each, and hands what they see to check.
func look(c *cache, r request, viewers int, span time.Duration, check func(part)) {
	var all sync.WaitGroup
	for range viewers {
		all.Go(func() {
			for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				check(c.get(context.Background(), r, waits))
			}
		})
	}
	all.Wait()
}

// However many viewers look, a query runs once in the life of its result, and no viewer sees anything that is older
// than that and the time that the query takes. A query that takes long is no exception.
func TestOneQueryForAllViewers(t *testing.T) {
	for _, life := range []time.Duration{shortLife, longLife} {
		for _, took := range []time.Duration{time.Millisecond, 25 * time.Millisecond, 900 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				q, c := &slowQuery{took: took}, newCache()
				const span = 2 * time.Minute
				look(c, q.request("q", life), 50, span, func(p part) {
					if age := time.Since(p.at); p.err != nil || age > max(life, took) || age > maxAge || p.value != p.at {
						t.Errorf("life %s, took %s: a viewer sees %v, which is %s old, error %v", life, took, p.value, age, p.err)
					}
				})
				if n, want := q.runs.Load(), int64(span/life); n > want+1 || n < want*8/10 {
					t.Errorf("a query of %s ran %d times in %s, want %d", took, n, span, want)
				}
			})
		}
	}
}

// A viewer who does not wait sees the last result, with its age and since when the query is under way. Before the first
// result, the viewer sees that it is not known. The part of a page is fine until it is ten seconds old.
func TestImpatientViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, c := &slowQuery{took: time.Hour}, newCache()
		r := request{"q", shortLife, 2 * time.Hour, q.run}
		see := func() part { return c.get(t.Context(), r, diagnosisPatience) }
		began := time.Now()
		for range 3 {
			if p := see(); p.known() || p.fine() || p.err != nil || !p.asking.Equal(began) {
				t.Errorf("before the first result a viewer sees %+v, want a query that began at %s", p, began)
			}
		}
		time.Sleep(time.Hour)
		read := see().at
		for age := time.Since(read); age < 2*maxAge; age = time.Since(read) {
			p := see()
			if !p.known() || p.err != nil || p.asking.IsZero() || p.fine() != (time.Since(read) <= maxAge) {
				t.Errorf("after %s a viewer sees %+v", time.Since(read), p)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Hour)
	})
}

// A viewer who has waited for a query that began before a change learns that the result is from before.
func TestResultFromBeforeAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, c := &slowQuery{took: time.Second}, newCache()
		r := q.request("q", shortLife)
		if p := c.get(t.Context(), r, waits); !p.fine() {
			t.Errorf("before the change: %+v", p)
		}
		c.outdate()
		if p := c.get(t.Context(), r, patience); p.fine() || !p.known() || !p.outdated {
			t.Errorf("while the database is asked after the change: %+v", p)
		}
		time.Sleep(time.Second)
		if p := c.get(t.Context(), r, patience); !p.fine() {
			t.Errorf("after the change: %+v", p)
		}
	})
}

// While the database is away, viewers see what was read last, and since when it does not answer. The query is tried
// again as often as it ran before.
func TestPartsOutliveAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, c := &slowQuery{took: time.Millisecond}, newCache()
		r := q.request("q", shortLife)
		last := c.get(t.Context(), r, waits)
		before, away := q.runs.Load(), errors.New("connection refused")
		q.err.Store(&away)
		time.Sleep(shortLife)
		begin := time.Now()
		look(c, r, 3, time.Hour, func(p part) {
			if p.value != last.value || !errors.Is(p.err, away) || !p.failing.Equal(begin) {
				t.Errorf("%+v, want the value %v and the error since %s", p, last.value, begin)
			}
		})
		if n := q.runs.Load() - before; n < 1700 || n > 1801 {
			t.Errorf("%d tries in an hour, want 1,800", n)
		}
		q.err.Store(nil)
		time.Sleep(shortLife)
		if p := c.get(t.Context(), r, waits); p.err != nil || !p.failing.IsZero() || p.value == last.value {
			t.Errorf("after the outage: %+v", p)
		}
	})
}

// Queries that hang end after thirty seconds, and no viewer waits for longer, also if all of them begin at once. They do
// not hold up other queries for longer than that.
func TestQueriesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, q := newCache(), &slowQuery{took: time.Hour}
		var all sync.WaitGroup
		for i := range 3 * maxQueries {
			all.Go(func() {
				begin := time.Now()
				p := c.get(t.Context(), q.request(fmt.Sprint(i), shortLife), waits)
				if took := time.Since(begin); took > waits || p.value != nil || p.err == nil {
					t.Errorf("a viewer waited for %s: %+v", took, p)
				}
			})
		}
		all.Wait()
		if n := q.most.Load(); n != maxQueries {
			t.Errorf("%d queries ran at a time, want %d", n, maxQueries)
		}
		healthy := &slowQuery{took: time.Millisecond}
		if p := c.get(t.Context(), healthy.request("healthy", shortLife), waits); p.err != nil {
			t.Errorf("a healthy query after those that hang: %+v", p)
		}
	})
}

// The results that were used last are kept, and not more than fit.
func TestResultsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, q := newCache(), &slowQuery{took: time.Millisecond}
		runs := func(key string) int64 {
			before := q.runs.Load()
			c.get(t.Context(), q.request(key, time.Hour), waits)
			return q.runs.Load() - before
		}
		for i := range 2 * maxCached {
			runs(fmt.Sprint(i))
			if i > 0 && runs("0") != 0 {
				t.Fatalf("the result that is used is forgotten after %d others", i)
			}
		}
		if n := runs(fmt.Sprint(2*maxCached - 1)); n != 0 || runs("1") != 1 || c.parts.Len() != maxCached {
			t.Errorf("the newest query ran %d times again; %d results are kept, want %d", n, c.parts.Len(), maxCached)
		}
	})
}

// After a change a viewer sees only what a query has read since, also if a query was running when the change was made.
func TestAChangeShowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, q := newCache(), &slowQuery{took: 100 * time.Millisecond}
		see := func() (begun time.Time) { return c.get(t.Context(), q.request("q", shortLife), waits).at }
		see()
		changed := time.Now()
		c.outdate()
		if at := see(); at.Before(changed) {
			t.Errorf("after a change at %s a viewer sees what was read at %s", changed, at)
		}
		time.Sleep(shortLife)
		other := make(chan struct{})
		go func() {
			defer close(other)
			slow := &slowQuery{took: 300 * time.Millisecond} // begins before the change, and ends after the next query
			c.get(t.Context(), slow.request("q", shortLife), waits)
		}()
		time.Sleep(50 * time.Millisecond)
		changed = time.Now()
		c.outdate()
		if at := see(); at.Before(changed) {
			t.Errorf("a viewer sees what was read at %s, before the change at %s", at, changed)
		}
		<-other
		if p, _ := c.find("q"); p.at.Before(changed) {
			t.Errorf("the query that began before the change has replaced the newer one: %s", p.at)
		}
	})
}

// The age of a page is that of its oldest part.
func TestAgeOfAPage(t *testing.T) {
	now := time.Now()
	v := &viewer{}
	v.note("new", part{value: 1, at: now})
	v.note("old", part{value: 1, at: now.Add(-4 * time.Second)})
	v.note("failed", part{err: errors.New("away"), failing: now.Add(-time.Second)})
	v.note("middle", part{value: 1, at: now.Add(-2 * time.Second)})
	if want := now.Add(-4 * time.Second); !v.asOf().Equal(want) || !v.failing().Equal(now.Add(-time.Second)) {
		t.Errorf("the page is as of %s, want %s; the database is away since %s", v.asOf(), want, v.failing())
	}
}

// In a roster of more than 1,000 queues results live longer.
func TestLifeOfResults(t *testing.T) {
	t.Parallel()
	c := centertest.Open(t, testdb.URL(t, testdb.SQLite), center.Options{})
	v := &viewer{console: newSite(c, Options{}).main}
	for _, step := range []struct {
		queues int64
		want   time.Duration
	}{{1, shortLife}, {manyQueues / 2, shortLife}, {manyQueues/2 + 1, longLife}} {
		record := ops.TaskRecord{QueueTotal: step.queues}
		v.cache.keep(v.partKey("tasks"), part{value: []ops.TaskRecord{record, record}})
		if got := v.life(); got != step.want {
			t.Errorf("2 task types of %d queues: results live for %s, want %s", step.queues, got, step.want)
		}
	}
}

// A query of the environment X after eleven changes is another one than that of 1X after one change.
func TestCacheTellsEnvironmentsApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCache()
		read := func(of string, release <-chan struct{}) part {
			query := func(context.Context) (any, error) { <-release; return of, nil }
			return c.get(t.Context(), request{of + "\x00tasks", shortLife, readLimit, query}, readLimit)
		}
		slow, fast := make(chan struct{}), make(chan struct{})
		close(fast)
		c.outdate()
		go read("1X", slow)
		synctest.Wait()
		for range 10 {
			c.outdate()
		}
		if p := read("X", fast); p.value != "X" {
			t.Errorf("X has the result of %v", p.value)
		}
		close(slow)
		synctest.Wait()
	})
}
