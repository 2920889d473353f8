package manager

import (
	"testing"
	"testing/synctest"
	"time"
)

var tenSeconds = intervals{2 * time.Second, 10 * time.Second}

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expiries := 0
		l := newLease(tenSeconds, time.Now(), func() { expiries++ })
		defer l.stop()
		time.Sleep(8*time.Second - time.Nanosecond)
		if !l.valid() {
			t.Error("expired before judge_dead_interval less the margin")
		}
		time.Sleep(time.Nanosecond)
		if l.valid() {
			t.Fatal("still valid when other servers may soon expire this one") // its alarm would never end
		}
		synctest.Wait()
		if expiries != 1 {
			t.Errorf("called %d times at the expiry, want once", expiries)
		}
		start := time.Now()
		time.Sleep(3 * time.Second) // a slow heartbeat counts from its start
		l.renew(tenSeconds, start)
		if left := l.left(); left != 5*time.Second {
			t.Errorf("%s are left, want 5 s", left)
		}
		l.end()
		time.Sleep(atOnce)
		synctest.Wait()
		if l.valid() || expiries != 2 {
			t.Errorf("after the row is gone: valid %t, called %d times, want false, 2", l.valid(), expiries)
		}
	})
}

func TestMargin(t *testing.T) {
	for _, c := range []struct{ judgeDead, heartbeat, want time.Duration }{
		{10 * time.Second, 2 * time.Second, 2 * time.Second},
		{100 * time.Second, 2 * time.Second, 15 * time.Second},
	} {
		if got := (intervals{c.heartbeat, c.judgeDead}).margin(); got != c.want {
			t.Errorf("margin(%s, %s) is %s, want %s", c.judgeDead, c.heartbeat, got, c.want)
		}
	}
}

// S5: the larger of the two clocks counts. A machine that slept moves only the wall clock. After the wall clock was set
// back, the monotonic one is still right.
func TestElapsed(t *testing.T) {
	now := time.Now()
	slept := now.Round(0).Add(time.Hour) // no monotonic reading: only the wall clock can be compared
	if got := elapsed(now, slept); got != time.Hour {
		t.Errorf("%s, want an hour", got)
	}
	if got := elapsed(now, now.Add(time.Second)); got != time.Second {
		t.Errorf("%s, want a second", got)
	}
}

// S6: a timer stands still while the machine sleeps, and the lease expires by the wall clock. The alarm notices that
// within a heartbeat of waking up.
func TestLeaseAfterSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		expired := make(chan time.Time, 1)
		l := newLease(intervals{5 * time.Second, 50 * time.Second}, time.Now(), func() { expired <- time.Now() })
		defer l.stop()
		time.Sleep(time.Second)
		slept := time.Now().Round(0).Add(-time.Hour) // without the reading of the monotonic clock
		l.term.Store(&term{l.intervals(), slept})
		woke := time.Now()
		if took := (<-expired).Sub(woke); took > 5*time.Second {
			t.Errorf("the alarm came %s after the machine woke up", took)
		}
	})
}
