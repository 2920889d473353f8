package manager

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/center"
)

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		overs := 0
		l := newLease(10*time.Second, 2*time.Second, time.Now(), func() { overs++ })
		time.Sleep(8*time.Second - time.Nanosecond)
		if !l.valid() {
			t.Error("over before judge_dead_interval less the margin")
		}
		time.Sleep(time.Nanosecond)
		if l.valid() {
			t.Error("still believed when others may soon call us dead")
		}
		synctest.Wait()
		if overs != 1 {
			t.Errorf("told %d times that it is over", overs)
		}
		start := time.Now()
		time.Sleep(3 * time.Second) // a heartbeat that is long on its way counts from its start
		l.renew(start)
		if left := l.left(); left != 5*time.Second {
			t.Errorf("%s are left, want 5 s", left)
		}
		l.end()
		synctest.Wait()
		if l.valid() || overs != 2 {
			t.Errorf("not over when the row is gone: valid %t, told %d times", l.valid(), overs)
		}
	})
}

func TestMargin(t *testing.T) {
	for _, c := range []struct{ judgeDead, heartbeat, want time.Duration }{
		{10 * time.Second, 2 * time.Second, 2 * time.Second},
		{100 * time.Second, 2 * time.Second, 15 * time.Second},
	} {
		if got := margin(c.judgeDead, c.heartbeat); got != c.want {
			t.Errorf("margin(%s, %s) is %s, want %s", c.judgeDead, c.heartbeat, got, c.want)
		}
	}
}

// S5: the larger of the two clocks counts. A machine that slept moves the wall clock alone; one
// whose wall clock was set back is still right by the monotonic one.
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

// S7: who may call others dead.
func TestWatch(t *testing.T) {
	const judgeDead = 10 * time.Second
	type beat struct{ db, local time.Duration } // since the beat before
	steady := func(n int) (beats []beat) {
		for range n {
			beats = append(beats, beat{2 * time.Second, 2 * time.Second})
		}
		return beats
	}
	second := time.Second
	cases := map[string]struct {
		beats []beat
		may   bool
	}{
		"not before a whole interval":       {steady(4), false},
		"after a whole interval":            {steady(5), true},
		"a gap begins the watch anew":       {append(steady(5), beat{5 * second, 5 * second}), false},
		"the database's clock was stepped":  {append(steady(5), beat{602 * second, 2 * second}), false},
		"the database's clock was set back": {append(steady(5), beat{-598 * second, 2 * second}), false},
		"our own clock was stepped":         {append(steady(5), beat{2 * second, 4 * second}), false},
		"a small difference is none":        {append(steady(5), beat{2 * second, 2*second + 900*time.Millisecond}), true},
		"and again, after the gap":          {append(append(steady(5), beat{5 * second, 5 * second}), steady(5)...), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := watch{judgeDead: judgeDead, margin: margin(judgeDead, 2*time.Second)}
			db, local := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Now()
			w.observe(db, local)
			for _, b := range c.beats {
				db, local = db.Add(b.db), local.Add(b.local)
				w.observe(db, local)
			}
			if w.mayExpire() != c.may {
				t.Fatalf("may expire: %v, want %v", !c.may, c.may)
			}
		})
	}
}

// S2: whatever differs from what was read makes the view stale.
func TestMatches(t *testing.T) {
	l := &ownView{base: &base{uuid: "me"}, View: center.View{PlanVersion: 3, QueueTotal: 3, Removing: []string{"0"}, Queues: []center.ViewQueue{
		{ID: "0", Cur: "me", Epoch: 4, PlanVersion: 2},
		{ID: "1", Cur: "me", Req: "you", Epoch: 6, PlanVersion: 1},
		{ID: "2", Cur: "you", Req: "me", Epoch: 8, PlanVersion: 3},
	}}}
	same := center.Pulse{PlanVersion: 9, QueueTotal: 3, Removing: []string{"0"}, Owned: 2, EpochSum: 10, OwnedPlan: 2, Requested: 1, Awaited: 1}
	if !l.matches(same) {
		t.Fatal("the same differs")
	}
	for name, spoil := range map[string]func(*center.Pulse){
		"plan":      func(p *center.Pulse) { p.OwnedPlan = 1 }, // older, after a promoted standby lost some
		"total":     func(p *center.Pulse) { p.QueueTotal++ },
		"removing":  func(p *center.Pulse) { p.Removing = []string{"1"} },
		"owned":     func(p *center.Pulse) { p.Owned++ },
		"epochs":    func(p *center.Pulse) { p.EpochSum-- },
		"requested": func(p *center.Pulse) { p.Requested = 0 },
		"awaited":   func(p *center.Pulse) { p.Awaited = 0 },
	} {
		p := same
		spoil(&p)
		if l.matches(p) {
			t.Errorf("%s differs, and is not noticed", name)
		}
	}
}
