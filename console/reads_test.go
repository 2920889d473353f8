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
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
)

// counted is a query that counts its runs.
type counted struct {
	runs atomic.Int64
	took time.Duration
	err  atomic.Pointer[error]
}

func (q *counted) run(ctx context.Context) (any, error) {
	n := q.runs.Add(1)
	if err := q.err.Load(); err != nil {
		return nil, *err
	}
	select {
	case <-time.After(q.took):
		return n, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// look reads for a number of viewers, ten times a second.
func look(s *reads, q *counted, viewers int, span time.Duration) (last read) {
	var all sync.WaitGroup
	for i := range viewers {
		all.Go(func() {
			for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				r := s.refresh(context.Background(), "q", readLimit, q.run)
				if i == 0 {
					last = r
				}
			}
		})
	}
	all.Wait()
	return last
}

// However many viewers look, a query runs once a second, and less often if it takes long: much less often while nothing
// changes.
func TestOneReadForAllViewers(t *testing.T) {
	for _, c := range []struct {
		took, most time.Duration
		changes    bool
	}{
		{time.Millisecond, 5 * time.Second, false},
		{10 * time.Millisecond, 50 * time.Second, false},
		{900 * time.Millisecond, 5 * time.Minute, false},
		{time.Millisecond, time.Second, true},
		{100 * time.Millisecond, 5 * time.Second, true},
		{900 * time.Millisecond, 10 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			q, s := &counted{took: c.took}, newReads(make(chan struct{}, maxQueries))
			const span = 20 * time.Minute
			go func() {
				for i := range int64(span / time.Second) {
					pulse := center.Pulse{}
					if c.changes {
						pulse.Events = i
					}
					s.setPulse(pulse, time.Now())
					time.Sleep(time.Second)
				}
			}()
			last := look(s, q, 50, span)
			want := int64(span/(c.most+c.took)) + 1
			if n := q.runs.Load(); n > want || n < want-want/10-1 {
				t.Errorf("a query of %s ran %d times in %s, want about %d; changes: %t", c.took, n, span, want, c.changes)
			}
			if age := time.Since(last.at); last.err != nil || age > c.most+2*c.took {
				t.Errorf("the last read is %s old, error %v", age, last.err)
			}
			if age := time.Since(last.asOf); !c.changes && age > 2*time.Second+c.took {
				t.Errorf("a read after which nothing has changed is as of %s ago", age)
			}
			synctest.Wait()
		})
	}
}

// While the database is away, viewers get what was read last, and since when it does not answer. The query is tried again
// every two seconds.
func TestReadsOutliveAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := &counted{took: time.Millisecond}, newReads(make(chan struct{}, maxQueries))
		look(s, q, 3, 10*time.Second)
		before, away := q.runs.Load(), errors.New("connection refused")
		q.err.Store(&away)
		begin := time.Now()
		r := look(s, q, 3, time.Minute)
		if r.value != before || !errors.Is(r.err, away) || r.failing.Before(begin) || r.failing.Sub(begin) > 2*time.Second {
			t.Errorf("%+v, want the value %d and the error since %s", r, before, begin)
		}
		if n := q.runs.Load() - before; n < 25 || n > 31 {
			t.Errorf("%d tries in a minute, want about 30", n)
		}
		q.err.Store(nil)
		if r := look(s, q, 3, 5*time.Second); r.err != nil || !r.failing.IsZero() || r.value == before {
			t.Errorf("after the outage: %+v", r)
		}
		synctest.Wait()
	})
}

// A query that hangs ends after a second, and no viewer waits for longer. It does not hold up other queries.
func TestReadsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newReads(make(chan struct{}, maxQueries))
		for i := range 2 * maxQueries {
			begin := time.Now()
			r := s.refresh(t.Context(), fmt.Sprint(i), readLimit, (&counted{took: time.Hour}).run)
			if took := time.Since(begin); took > patience || r.value != nil {
				t.Errorf("a viewer waited for %s: %+v", took, r)
			}
		}
		begin := time.Now()
		if r := s.refresh(t.Context(), "healthy", readLimit, (&counted{took: time.Millisecond}).run); r.value == nil || time.Since(begin) > patience {
			t.Errorf("after %s: %+v", time.Since(begin), r)
		}
		time.Sleep(2 * readLimit)
	})
}

// The number of results that are kept is bounded.
func TestReadsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newReads(make(chan struct{}, maxQueries))
		for i := range 2 * maxReads {
			s.refresh(t.Context(), fmt.Sprint(i), readLimit, (&counted{took: time.Millisecond}).run)
		}
		if n := len(s.byKey); n > maxReads {
			t.Errorf("%d results are kept, want %d", n, maxReads)
		}
		if r := s.refresh(t.Context(), fmt.Sprint(2*maxReads-1), readLimit, (&counted{took: time.Millisecond}).run); r.value != int64(1) {
			t.Errorf("the newest result is %+v", r)
		}
		synctest.Wait()
	})
}

// After a change a viewer gets only what a query has read since, also if a query was running when the change was made.
func TestAChangeShowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, q := newReads(make(chan struct{}, maxQueries)), &counted{took: 100 * time.Millisecond}
		see := func() any { return s.refresh(t.Context(), "q", readLimit, q.run).value }
		if n := see(); n != int64(1) {
			t.Fatalf("the first read is %v", n)
		}
		s.outdate()
		if n := see(); n != int64(2) {
			t.Errorf("after a change a viewer sees read %v, want the second", n)
		}
		time.Sleep(2 * maxCalmEvery)
		other := make(chan struct{})
		go func() {
			defer close(other)
			see() // the third read begins before the change
		}()
		time.Sleep(50 * time.Millisecond)
		s.outdate()
		if n := see(); n != int64(4) {
			t.Errorf("a viewer sees read %v, want the fourth: the third began before the change", n)
		}
		<-other
		synctest.Wait()
	})
}

// Runs in progress are read again and again: nothing but the run itself tells how far it is.
func TestRunsInProgressAreNotCalm(t *testing.T) {
	for state, most := range map[string]time.Duration{center.RunRunning: time.Second, center.RunReady: time.Second, center.RunSuccess: 50 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newReads(make(chan struct{}, maxQueries))
			runs := 0
			list := func(context.Context) (any, error) {
				time.Sleep(10 * time.Millisecond)
				runs++
				return []center.RunRecord{{Run: center.Run{State: state}}}, nil
			}
			for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				s.refresh(t.Context(), "q", readLimit, list)
			}
			if want := int(10 * time.Minute / most); runs > want+1 || runs < want*8/10 {
				t.Errorf("a list with a run that is %s was read %d times in ten minutes, want about %d", state, runs, want)
			}
			synctest.Wait()
		})
	}
}

// A slow link costs the database nothing.
func TestSlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newReads(make(chan struct{}, maxQueries))
		q, pulse := &counted{took: 110 * time.Millisecond}, &counted{took: 100 * time.Millisecond}
		for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
			s.refresh(t.Context(), pulseKey, readLimit, pulse.run)
			s.refresh(t.Context(), "q", readLimit, q.run)
		}
		if n := q.runs.Load(); n < 80 {
			t.Errorf("the query ran %d times in ten minutes, want about 100", n)
		}
		synctest.Wait()
	})
}

// A page says that the database is away while its queries rest, which may be for minutes.
func TestOutageWhileQueriesRest(t *testing.T) {
	url := testdb.URL(t, testdb.SQLite)
	centertest.Open(t, url, center.Options{}) // makes the tables
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(c, Options{})
	look := func() *view {
		v := &view{console: s.main}
		if _, err := load(t.Context(), v, "q", func(context.Context) (bool, error) { return true, nil }); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := look(); !v.Failing.IsZero() {
		t.Errorf("the database answers, and a page says that it has been away since %s", v.Failing)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); look().Failing.IsZero(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no page says that the database is away")
		}
	}
}
