package processor

import (
	"fmt"
	"math"
	"time"
)

// Settings say how the queues of a task type are worked. All are set by the caller; nothing has a default here, but
// what is allowed to be 0 is off.
type Settings struct {
	ThreadNumber  int // how many executors there are, and so calls of the dealer at once; at least 1
	FetchNumber   int // how many items a select is asked for; at least 1
	ExecuteNumber int // how many items one Execute gets at most; at least 1

	SleepTimeNoData   time.Duration // how long a queue rests after an empty select, but not in a sweep; above 0
	SleepTimeInterval time.Duration // how long it rests after its items were executed; 0 is at once

	// Runs says that the queues will be granted with a Run each. The dealer must not be a SetSelector.
	Runs bool

	// NotSleep is TBSchedule's NOTSLEEP: a queue is selected again when all of its items are started, and rests for
	// SleepTimeInterval before that, where SLEEP waits until they are executed. The dealer must be Keyed, and not
	// Cursored.
	NotSleep bool

	// Retry is about how long an item rests that has failed, or a queue whose select has failed, or of which a batch
	// has failed if the dealer is neither Keyed nor Cursored. It doubles with every further failure until it reaches
	// RetryMax, with jitter of one half to either side, and never exceeds RetryMax. A success ends it. Retry is above
	// 0, RetryMax at least Retry. In a sweep nothing rests, since nothing is tried again.
	Retry, RetryMax time.Duration

	// ItemMaxAttempts is after how many attempts a failing item is dead, if the dealer is Keyed or Cursored: it is
	// discarded, recorded and never executed again. 0 is never. In a sweep there is one attempt, and no item is dead.
	ItemMaxAttempts int

	// RatePerSecond bounds how many items the whole task type executes in a second, over a long time; this server
	// takes its share, by the number of its queues. At once it takes at most ExecuteNumber items, or the share of
	// one second if that is more. 0 is no bound.
	RatePerSecond float64

	// BatchTimeout ends the context of a Select, an Execute or a Discard that takes longer. The error that it then
	// returns is a failure; a result is a result. 0 is never.
	BatchTimeout time.Duration

	Parameter string // handed to every select
}

// validate names the first field that breaks its rule, by its name in the tables.
func (s *Settings) validate() error {
	switch {
	case s.ThreadNumber < 1:
		return fmt.Errorf("thread_number (%d) must be at least 1", s.ThreadNumber)
	case s.FetchNumber < 1:
		return fmt.Errorf("fetch_number (%d) must be at least 1", s.FetchNumber)
	case s.ExecuteNumber < 1:
		return fmt.Errorf("execute_number (%d) must be at least 1", s.ExecuteNumber)
	case s.SleepTimeNoData <= 0:
		return fmt.Errorf("sleep_time_nodata (%s) must be above 0", s.SleepTimeNoData)
	case s.SleepTimeInterval < 0:
		return fmt.Errorf("sleep_time_interval (%s) must not be negative", s.SleepTimeInterval)
	case s.Retry <= 0:
		return fmt.Errorf("item_retry (%s) must be above 0", s.Retry)
	case s.RetryMax < s.Retry:
		return fmt.Errorf("item_retry_max (%s) must be at least item_retry (%s)", s.RetryMax, s.Retry)
	case s.ItemMaxAttempts < 0:
		return fmt.Errorf("item_max_attempts (%d) must not be negative", s.ItemMaxAttempts)
	case s.RatePerSecond < 0, math.IsNaN(s.RatePerSecond), math.IsInf(s.RatePerSecond, 0):
		return fmt.Errorf("rate_per_second (%g) must be a number and not negative", s.RatePerSecond)
	case s.BatchTimeout < 0:
		return fmt.Errorf("batch_timeout (%s) must not be negative", s.BatchTimeout)
	}
	return nil
}
