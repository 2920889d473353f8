package engine

import (
	"fmt"
	"math"
	"time"

	"github.com/dutyrota/rota/processor"
)

// Settings say how the processor works the queues of a task type. The caller sets all fields: there are no defaults. A
// field that may be 0 is off at 0.
type Settings struct {
	ThreadNumber  int // number of executors, and so of concurrent calls of the dealer; at least 1
	FetchNumber   int // largest number of items of a page, besides failed items; at least 1
	ExecuteNumber int // largest number of items in one Execute; at least 1

	SleepTimeNoData   time.Duration // pause of a queue after an empty select, except in a sweep; above 0
	SleepTimeInterval time.Duration // pause of a queue after its items were executed; 0 is none

	// Runs says that every Grant will carry a Run.
	Runs bool

	// NotSleep is TBSchedule's NOTSLEEP: a queue is selected again when all its items are started. SLEEP waits until
	// they are executed. The pause of SleepTimeInterval comes before the select in both. The dealer must be Keyed and
	// not Cursored.
	NotSleep bool

	// Hinted says that each program that adds items sends a hint for them. While Env.Hears is true, an empty queue is
	// selected, or peeked, once in 30 s, or in SleepTimeNoData if that is longer. The Alert UNHINTED says that such a
	// select has found items.
	Hinted bool

	// Splittable says that the queues may have different totals.
	Splittable bool

	// Retry is the first pause after a failure: of a failed item, of a queue after a failed select, or of a queue
	// after a failed batch if the dealer is neither Keyed nor Cursored. It is multiplied by RetryFactor with every
	// further failure, up to RetryMax, and for a queue up to one minute; RetryMax also bounds the pauses that the dealer
	// asks for with RetryAfter. A success resets it. Retry must be above 0,
	// and RetryMax at least Retry. A sweep does not pause, because it retries nothing.
	Retry, RetryMax time.Duration

	// RetryFactor is at least 1; 0 is the same as 1. RetryJitter is the part of a pause, from 0 to 1, by which it is
	// longer or shorter at random.
	RetryFactor, RetryJitter float64

	// ProbeMax turns the circuit breaker on. The breaker opens when several items fail with errors that are not
	// Permanent and nothing succeeds in between. Then each queue executes one item at a time, with pauses of up to
	// ProbeMax, until one succeeds. 0 means that there is no breaker.
	ProbeMax time.Duration

	// CountInOutage counts each failure as an attempt of its item, at the pace of the retry policy, although nothing else
	// succeeds. Poison is then dead as soon as the policy says, even if a queue has nothing else, and so are the items
	// that an outage outlasts.
	CountInOutage bool

	// ItemMaxAttempts is the number of attempts after which a failing item is dead, if the dealer is Keyed or
	// Cursored. A dead item is discarded, recorded and never executed again. 0 means never. A sweep makes one attempt
	// and declares no item dead.
	ItemMaxAttempts int

	// DeadPasses says that a dead item does not hold back the items behind it that have its order key, if the dealer is
	// Ordered. In a sweep each failed item does.
	DeadPasses bool

	// MaxCrashes is the largest Queue.Crashes with which a queue is worked as usual. Beyond it, the processor executes the
	// items of the queue one by one, and records each in Env.Items before it starts. An item that a crashed owner has
	// started is dead (S14). If the dealer is neither Keyed nor Cursored, the queue waits longer after each crash
	// instead. 0 is off. With Runs it is one crash less.
	MaxCrashes int

	// FailingAfter is the number of failed calls in a row after which the dealer counts as failing, if nothing has
	// succeeded for 30 s: from then on Stats has FailingSince. Slow calls count more (slowCall). Calls that all
	// executed one and the same item do not count, as it may be poison. 0 means never.
	FailingAfter int

	// SweepMaxRepeats is the number of selects in a row that return only items that a sweep has executed or passed
	// already. Then the sweep fails. A dealer that works on an item in steps needs as many as an item has steps. 0 is the
	// same as 3.
	SweepMaxRepeats int

	// RatePerSecond bounds the number of items that the whole task type executes per second, as a long-term average. This
	// server takes the share of its queues, or the share of SetRateShare. A burst is the share of one second, or one item
	// if that is more. A larger batch is split. 0 means no bound.
	RatePerSecond float64

	// QueueRatePerSecond bounds the number of items that one queue executes per second, as a long-term average. A burst is
	// the items of one second, or one item if that is more. QueueMaxInFlight bounds the batches of one queue in flight at
	// once. So a queue with much work leaves the executors and what they call to the others. 0 means no bound.
	QueueRatePerSecond float64
	QueueMaxInFlight   int

	// BatchTimeout cancels the context of a Select, an Execute or a Discard that takes longer. If the call then
	// returns an error, it failed. If it returns a result, the result counts. 0 means never.
	BatchTimeout time.Duration

	Parameter string // passed to every select
}

// Needs returns what the settings ask of a dealer. databases is Env.Databases.
func (s *Settings) Needs(databases int) processor.Needs {
	return processor.Needs{Runs: s.Runs, NotSleep: s.NotSleep, Splittable: s.Splittable, Databases: databases}
}

// latestRest returns the end of the longest rest of a lane whose last rest began under other settings or limits.
func (s *Settings) latestRest(now time.Time) time.Time {
	return now.Add(max(s.SleepTimeNoData, s.SleepTimeInterval))
}

// validate returns an error for the first field that breaks its rule, under its name in the tables.
func (s *Settings) validate() error {
	factorBroken := s.RetryFactor != 0 && !(s.RetryFactor >= 1 && s.RetryFactor <= 1e6)
	noRate := func(r float64) bool { return r < 0 || math.IsNaN(r) || math.IsInf(r, 0) }
	const aRate = "must be a number and not negative"
	for _, rule := range []struct {
		broken bool
		field  string
		value  any
		rule   string
	}{
		{s.ThreadNumber < 1, "thread_number", s.ThreadNumber, "must be at least 1"},
		{s.FetchNumber < 1, "fetch_number", s.FetchNumber, "must be at least 1"},
		{s.ExecuteNumber < 1, "execute_number", s.ExecuteNumber, "must be at least 1"},
		{s.SleepTimeNoData <= 0, "sleep_time_nodata", s.SleepTimeNoData, "must be above 0"},
		{s.SleepTimeInterval < 0, "sleep_time_interval", s.SleepTimeInterval, "must not be negative"},
		{s.Retry <= 0, "item_retry", s.Retry, "must be above 0"},
		{s.RetryMax < s.Retry, "item_retry_max", s.RetryMax, fmt.Sprintf("must be at least item_retry (%s)", s.Retry)},
		{factorBroken, "item_retry_factor", s.RetryFactor, "must be at least 1"},
		{!(s.RetryJitter >= 0 && s.RetryJitter <= 1), "item_retry_jitter", s.RetryJitter, "must be between 0 and 1"},
		{s.ProbeMax < 0, "probe_max", s.ProbeMax, "must not be negative"},
		{s.ItemMaxAttempts < 0, "item_max_attempts", s.ItemMaxAttempts, "must not be negative"},
		{s.MaxCrashes < 0, "max_recoveries", s.MaxCrashes, "must not be negative"},
		{s.FailingAfter < 0, "failing_after", s.FailingAfter, "must not be negative"},
		{noRate(s.RatePerSecond), "rate_per_second", s.RatePerSecond, aRate},
		{noRate(s.QueueRatePerSecond), "queue_rate_per_second", s.QueueRatePerSecond, aRate},
		{s.QueueMaxInFlight < 0, "queue_max_in_flight", s.QueueMaxInFlight, "must not be negative"},
		{s.BatchTimeout < 0, "batch_timeout", s.BatchTimeout, "must not be negative"},
	} {
		if rule.broken {
			return fmt.Errorf("%s (%v) %s", rule.field, rule.value, rule.rule)
		}
	}
	return nil
}
