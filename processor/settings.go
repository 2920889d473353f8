package processor

import (
	"fmt"
	"time"
)

// Settings say how the queues of a task type are worked. All are set by the caller; nothing has a default here.
type Settings struct {
	ThreadNumber  int // how many executors there are, and so calls of the dealer at once; at least 1
	FetchNumber   int // how many items a select is asked for; at least 1
	ExecuteNumber int // how many items one Execute gets at most; at least 1

	SleepTimeNoData   time.Duration // how long a queue rests after an empty select; above 0
	SleepTimeInterval time.Duration // how long it rests after its items were executed; 0 is at once

	// Retry is about how long a queue rests after a select or a batch failed. It doubles with every further failure
	// until it reaches RetryMax, with jitter of one half to either side, and never exceeds RetryMax. A page without
	// failure ends it. Retry is above 0, RetryMax at least Retry.
	Retry, RetryMax time.Duration

	Parameter string // handed to every select
}

// validate names the first field that breaks its rule, by its name in the tables.
func (s Settings) validate() error {
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
	}
	return nil
}
