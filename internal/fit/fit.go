// Package fit is the judgement whether a worker can adopt settings. The worker asks it before it adopts them, and an
// operator's program asks it, for the dealers of all registered servers, before it writes them. So no program writes
// settings that a live worker rejects.
package fit

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// Check returns why a worker that goes by settings, and whose dealer offers these capabilities, cannot adopt others
// while it runs. The queues are not compared: their number is no setting of a worker.
func Check(offers processor.Capabilities, now, next center.Settings) error {
	if err := next.Validate(); err != nil {
		return err
	}
	present := now.Records()
	for i, r := range next.Records() {
		if AtStart(r.Name) && r.Value != present[i].Value {
			return fmt.Errorf("%s (%s) takes effect when the worker starts again: it goes by %q", r.Name, r.Text,
				present[i].Text)
		}
	}
	databases, err := next.Databases()
	if err != nil {
		return err
	}
	s := Processor(next.WithDefaults())
	return offers.Check(s.Needs(len(databases)))
}

// AtStart reports whether workers adopt the named setting when they start, so that it changes only while none serves
// the task type.
func AtStart(name string) bool { return name == "mode" || name == "database" }

// Processor returns what the processor takes of the settings.
func Processor(s center.Settings) engine.Settings {
	return engine.Settings{
		ThreadNumber: s.ThreadNumber, FetchNumber: s.FetchNumber, ExecuteNumber: s.ExecuteNumber,
		SleepTimeNoData: s.SleepTimeNoData, SleepTimeInterval: s.SleepTimeInterval,
		Runs: s.Mode == center.ModeRun, NotSleep: s.ProcessorType == center.ProcessorNotSleep,
		RatePerSecond: s.RatePerSecond, QueueRatePerSecond: s.QueueRatePerSecond, QueueMaxInFlight: s.QueueMaxInFlight,
		BatchTimeout: s.BatchTimeout, MaxCrashes: s.MaxRecoveries,
		Retry: s.ItemRetry, RetryFactor: s.ItemRetryFactor, RetryJitter: s.ItemRetryJitter, RetryMax: s.ItemRetryMax,
		ProbeMax: probeMax, ItemMaxAttempts: s.ItemMaxAttempts, CountInOutage: s.CountInOutage,
		Splittable:   s.Splittable,
		Hinted:       s.Hinted,
		DeadPasses:   s.OnDead == center.OnDeadPass,
		FailingAfter: s.FailingAfter, SweepMaxRepeats: s.SweepMaxRepeats, Parameter: s.TaskParameter,
	}
}

// probeMax is the longest pause between two probes of a queue while its circuit breaker is open. It bounds how late the
// server notices the end of an outage.
const probeMax = 30 * time.Second
