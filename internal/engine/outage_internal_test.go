package engine

import (
	"cmp"
	"fmt"
	"testing"
	"time"
)

// failItems lets so many new items fail at intervals, and returns how many failures the breaker took to open; 0 if it
// stayed closed.
func failItems(o *outage, now *time.Time, from, n int, every time.Duration) (opened int) {
	for i := range n {
		if o.fail(*now, fmt.Sprint(from+i)) && opened == 0 {
			opened = i + 1
		}
		*now = now.Add(every)
	}
	return opened
}

// After a block of poison, it takes twice as many items to open the breaker, or ten seconds, until ten minutes are over
// or items that had failed succeed.
func TestBlocksOfPoisonRaiseTheThreshold(t *testing.T) {
	var o outage
	now := time.Now()
	if n := failItems(&o, &now, 0, 100, time.Millisecond); n != failuresToOpen {
		t.Errorf("opened after %d items, want %d", n, failuresToOpen)
	}
	if !o.succeed(now) || o.open() {
		t.Error("a success has not closed the breaker")
	}
	if n := failItems(&o, &now, 1000, 300, time.Millisecond); n != 200 {
		t.Errorf("opened after %d items behind a block of 100, want 200", n)
	}
	o.succeed(now)
	if n := failItems(&o, &now, 2000, 100, time.Second); n != 11 {
		t.Errorf("opened after %d items of a second each, want ten seconds", n)
	}
	o.succeed(now)
	for range 20 {
		o.observe(evidence{recovered: true}, true)
	}
	if n := failItems(&o, &now, 3000, 10, time.Millisecond); n != failuresToOpen {
		t.Errorf("opened after %d items, although what had failed has succeeded", n)
	}
	o.succeed(now)
	now = now.Add(blockFor)
	if n := failItems(&o, &now, 4000, 10, time.Millisecond); n != failuresToOpen {
		t.Errorf("opened after %d items, ten minutes after the block", n)
	}
}

// One item that fails again and again is one item.
func TestOneItemOpensNoBreaker(t *testing.T) {
	var o outage
	for i := range 100 {
		if o.fail(time.Now().Add(time.Duration(i)*time.Minute), "a1"); o.open() || o.doubted() {
			t.Fatalf("one item has opened the breaker after %d failures", i+1)
		}
	}
}

// A sample doubles while its probes fail fast, up to 100 items a second.
func TestSampleDoubles(t *testing.T) {
	var p sample
	p.begin(0, false)
	now, widths := time.Now(), []int(nil)
	for range 9 {
		n := p.claim(now)
		widths = append(widths, n)
		for range n {
			p.fail(time.Millisecond, 0)
		}
		if rate := float64(n) / p.next.Sub(now).Seconds(); rate > probesPerSecond || p.next.Sub(now) < selectEvery {
			t.Errorf("%d items in %s", n, p.next.Sub(now))
		}
		now = p.next
	}
	if got, want := fmt.Sprint(widths), "[1 2 4 8 16 32 64 100 100]"; got != want {
		t.Errorf("widths %s, want %s", got, want)
	}
	p.begin(0, true)
	if p.width != probesPerSecond {
		t.Errorf("the next sample begins with %d items, want the width that found the end of a block", p.width)
	}
}

// A probe that times out, or takes ten times as long as usual, makes the next round one item.
func TestSampleStaysNarrow(t *testing.T) {
	for name, slow := range map[string]func(*sample){
		"timeout": func(p *sample) { p.fail(time.Minute, time.Minute) },
		"slow":    func(p *sample) { p.fail(time.Second, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			p := sample{width: 64, usual: 50 * time.Millisecond}
			if slow(&p); p.claim(time.Now()) != 1 {
				t.Errorf("the next round is %d items, want 1", p.width)
			}
		})
	}
}

// What the end of a call says decides what becomes of the breaker (X5).
func TestOutageObserves(t *testing.T) {
	now := time.Now()
	failing := func(clean bool, open bool, items ...string) outage {
		o := outage{clean: clean}
		for _, item := range items {
			o.fail(now, item)
		}
		if !open {
			o.openSince = time.Time{}
		}
		return o
	}
	success := evidence{success: true}
	before := evidence{began: now.Add(-1), success: true}
	part := evidence{success: true, failed: true}
	two := func() outage { return failing(false, false, "a", "b") }
	failed := func(items ...string) evidence { return evidence{failed: true, items: items} }
	for name, test := range map[string]struct {
		o           outage
		e           evidence
		want        change
		clean, open bool
	}{
		"success, nothing has failed": {failing(true, false), success, noChange, true, false},
		"success after a failure":     {failing(false, false, "a"), success, firstSuccess, true, false},
		"a part of a batch":           {failing(true, false), part, firstSuccess, true, false},
		"success in an outage":        {failing(false, true, "a", "b", "c"), success, breakerClosed, true, false},
		"success begun before":        {failing(false, true, "a", "b", "c"), before, noChange, false, true},
		"success begun before two":    {two(), before, firstSuccess, true, false},
		"first failure":               {failing(true, false), failed("a"), noChange, false, false},
		"third item":                  {two(), failed("c"), breakerOpened, false, true},
		"second item again":           {two(), failed("b"), noChange, false, false},
		"no item is the cause":        {two(), failed(), breakerOpened, false, true},
		"third item, inconclusive":    {two(), evidence{failed: true, inconclusive: true}, noChange, false, false},
		"third item, known":           {two(), evidence{failed: true, known: true}, noChange, false, false},
		"third item, expected":        {two(), evidence{failed: true, expected: true}, noChange, false, false},
		"cancelled":                   {failing(true, false), evidence{}, noChange, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.o
			test.e.began, test.e.now = cmp.Or(test.e.began, now), now
			c := o.observe(test.e, true)
			if c != test.want || o.clean != test.clean || o.open() != test.open {
				t.Errorf("change %d, clean %t, open %t, want %d, %t, %t", c, o.clean, o.open(), test.want, test.clean, test.open)
			}
		})
	}
	o := two()
	if c := o.observe(failed("c"), false); c != noChange || o.open() {
		t.Errorf("without a breaker: change %d, open %t, want neither", c, o.open())
	}
}

// An item of a cursor that had failed before the last success is poison that nothing proves any more if nothing else is
// executed. Its failures count after the horizon, too: all items behind it wait.
func TestAKnownFailureIsNotDoubtedForEver(t *testing.T) {
	var o outage
	s := &Settings{ProbeMax: time.Second, ItemMaxAttempts: 3, Retry: time.Second, RetryFactor: 2, RetryMax: time.Minute}
	began := time.Now()
	for now := began; now.Sub(began) < s.horizon(); now = now.Add(time.Minute) {
		if !o.doubts(now, s, true) {
			t.Fatalf("a failure after %s is not doubted, want %s", now.Sub(began), s.horizon())
		}
		o.observe(evidence{began: now, now: now, failed: true, known: true}, true)
	}
	if o.doubts(began.Add(s.horizon()), s, true) {
		t.Errorf("a failure after %s is doubted", s.horizon())
	}
}

// A breaker that closes because nothing has failed for a while, and opens again, does not begin the time anew after which
// failures are no longer doubted: only a success does (X5).
func TestABreakerThatClosesByItselfDoubtsNothingForEver(t *testing.T) {
	var o outage
	s := &Settings{Retry: time.Second, RetryMax: time.Second, ItemMaxAttempts: 5, ProbeMax: 5 * time.Second}
	began := time.Now()
	for now := began; now.Before(began.Add(s.horizon())); now = now.Add(time.Minute) {
		for range failuresToOpen {
			o.observe(evidence{began: now, now: now, failed: true}, true)
		}
		if !o.open() || !o.doubts(now, s, true) {
			t.Fatalf("after %s the breaker is open: %t", now.Sub(began), o.open())
		}
		o.end() // it was quiet
	}
	if o.doubts(began.Add(s.horizon()), s, true) {
		t.Error("a failure is doubted although nothing has succeeded for the horizon")
	}
	later := began.Add(3 * s.horizon())
	if o.rest(later, s); !o.doubts(later, s, true) {
		t.Error("a failure is not doubted although nothing has failed for longer than the horizon")
	}
	o.observe(evidence{began: began, now: began.Add(s.horizon()), success: true}, true)
	if !o.doubts(began.Add(s.horizon()), s, true) {
		t.Error("a failure after a success is not doubted")
	}
}
