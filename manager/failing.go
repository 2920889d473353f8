package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/processor"
)

// FailingError says that the calls of a dealer do nothing but fail. Ready returns it.
type FailingError struct {
	TaskType string
	Calls    int64     // selects and batches that have failed since an item was last done
	Since    time.Time // when the first of them ended
	Err      error     // the last of their errors
}

// Error implements error.
func (e *FailingError) Error() string {
	return fmt.Sprintf("task %s: %s failed since %s, and none has succeeded: %v",
		e.TaskType, plural.Of(e.Calls, "call of the dealer has", "calls of the dealer have"), e.Since.UTC().Format(time.RFC3339), e.Err)
}

// Unwrap returns the last error of the dealer.
func (e *FailingError) Unwrap() error { return e.Err }

// failing returns an error if the dealer does nothing but fail, in mode RUN only during a run. A run that has failed
// has an alert of its own, and there is no work until the next run.
func (s *session) failing(stats processor.Stats) *FailingError {
	if stats.FailingSince.IsZero() {
		return nil
	}
	if s.ticker != nil {
		if open, _ := s.ticker.open(); open == "" {
			return nil
		}
	}
	return &FailingError{TaskType: s.taskType, Calls: stats.FailedCalls, Since: stats.FailingSince, Err: stats.LastError}
}

// ready returns nil if the server serves its task type, and its dealer does not fail all the time.
func (s *server) ready() error {
	if state := s.state.Load().(string); state != stateServing {
		return fmt.Errorf("task %s is %s", s.taskType, state)
	}
	if e := s.session.Load().failing(s.proc.Stats()); e != nil {
		return e
	}
	return nil
}

// failingAlert is how long a dealer fails before its server raises an alert: longer than the restart of a database.
const failingAlert = 30 * time.Second

// checkFailing notes that the dealer does nothing but fail. It is one alert for the roster, because the same statement
// fails on all servers.
func (a *alerter) checkFailing(e *FailingError, restricted bool) {
	if e == nil || restricted || time.Since(e.Since) < failingAlert {
		return
	}
	a.see(center.Condition{Kind: center.AlertFailing, Since: e.Since, Text: fmt.Sprintf("on %s %s failed in %s, and none has succeeded; the last error: %s",
		center.ServerName(a.uuid), plural.Of(e.Calls, "call has", "calls have"), time.Since(e.Since).Round(time.Second), shortened(e.Err.Error()))})
}

// failingSince returns since when the task type fails: another server may have begun before this one, whose first
// failure is then no new outage.
func (a *alerter) failingSince(ctx context.Context, own time.Time) (time.Time, error) {
	age, err := a.roster.Roster().FailingFor(ctx, a.taskType)
	if first := time.Now().Add(-age); age > 0 && first.Before(own) {
		return first, err
	}
	return own, err
}

// shortened returns the beginning of a text.
func shortened(text string) string {
	const limit = 500
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "..."
	}
	return text
}
