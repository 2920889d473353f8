package processor

import "time"

// Stats are the counters of the work on one task type in this process, and its present load. Every fetched item ends
// in SuccessCount, FailureCount or SkipCount, except the items whose Execute was cancelled or met the loss of a queue:
// the processor cannot know what happened to them.
type Stats struct {
	FetchCount     int64         // selects that ran
	FetchItemCount int64         // items that they returned
	PeekCount      int64         // peeks at idle queues that ran
	SuccessCount   int64         // items of batches without error, or not among their Failures
	FailureCount   int64         // items of failed batches, or among their Failures
	SkipCount      int64         // items that were not started: dropped, in flight already, backing off, dead or passed
	DeadCount      int64         // items that died
	ExecuteTime    time.Duration // the sum over all batches that have ended

	InFlight        int       // items that are fetched and neither executed nor dropped
	OutageSince     time.Time // when the circuit breaker opened, because nothing succeeds; zero while it is closed
	HeldKeys        int       // order keys with items that wait for another of their key, as the last selects found
	Parked          int       // items of the last selects that have failed, or wait for one of their order key that has
	OldestCallSince time.Time // when the oldest running call of the dealer began; zero if none runs
	LastFetchTime   time.Time // when the select began that ended last; zero before the first
	LastError       error     // the last failure of a select, a peek or a batch, with the IDs of its queues
	LastErrorTime   time.Time // when it occurred; zero before the first

	FailedCalls int64 // selects and batches that have failed since an item last succeeded

	// FailingSince is when the first of them began, or an item last succeeded if that was later. It is zero unless that
	// is 30 s ago, FailingAfter of them have failed, and not all of them executed one item. Each 10 s that they took
	// together count as one more, if at least two have failed.
	FailingSince time.Time
}
