package processor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/processor"
)

// In an outage all items of a batch have the same error. Nobody but the dealer knows what stands where in the batch.
func TestFailuresSayEachTextOnce(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"items failed: 1; away":         {"away"},
		"items failed: 3; away":         {"away", "away", "away"},
		"items failed: 3; away; busy":   {"away", "busy", "away"},
		"items failed: 4; a; b; c; ...": {"a", "b", "c", "d"},
		"items failed: 5; a; b; c":      {"a", "b", "a", "c", "b"},
	} {
		var f processor.Failures
		for i, text := range texts {
			f.Add(i, errors.New(text))
		}
		if got := f.Err().Error(); got != want {
			t.Errorf("%q: got %s, want %s", texts, got, want)
		}
	}
}

// A test of a dealer, and a dealer that wraps another, can read what Execute has returned.
func TestErrorsCanBeRead(t *testing.T) {
	t.Parallel()
	cause := errors.New("no such device")
	var f processor.Failures
	f.Add(4, processor.Busy(time.Minute, cause))
	f.Add(1, processor.Permanent(cause))
	f.Add(1, errors.New("later"))
	f.Add(2, processor.RetryAfter(time.Hour, cause))
	err := fmt.Errorf("push: %w", f.Err())
	f.Add(0, cause) // changes no returned error
	type reading struct {
		index     int
		permanent bool
		after     time.Duration
		busy      bool
	}
	var got []reading
	for _, i := range processor.ItemErrors(err) {
		after, busy := processor.RetryOf(i.Err)
		got = append(got, reading{i.Index, processor.IsPermanent(i.Err), after, busy})
		if !errors.Is(i.Err, cause) {
			t.Errorf("item %d: %v, want %v", i.Index, i.Err, cause)
		}
	}
	want := []reading{{1, true, 0, false}, {2, false, time.Hour, false}, {4, false, time.Minute, true}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("read %v, want %v", got, want)
	}
	after, busy := processor.RetryOf(cause)
	if processor.ItemErrors(cause) != nil || processor.IsPermanent(cause) || after != 0 || busy {
		t.Errorf("a plain error is read as %v, %v, %s, %v",
			processor.ItemErrors(cause), processor.IsPermanent(cause), after, busy)
	}
}
