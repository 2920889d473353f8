package console

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/runs"
)

// A trigger whose row is invalid never looks as if it were done.
func TestTriggerMark(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, test := range []struct {
		trigger runs.Trigger
		want    mark
	}{
		{runs.Trigger{Status: runs.TriggerActive}, mark{"ok", "active"}},
		{runs.Trigger{Status: runs.TriggerPaused}, mark{"off", "paused"}},
		{runs.Trigger{Status: runs.TriggerDone}, mark{"wait", "done"}},
		{runs.Trigger{Status: runs.TriggerError}, mark{"bad", "invalid"}},
		{runs.Trigger{Status: runs.TriggerError, MissedAt: now}, mark{"bad", "invalid"}},
		{runs.Trigger{Status: runs.TriggerActive, MissedAt: now}, mark{"bad", "missed a slot"}},
	} {
		if got := triggerMark(runs.TriggerRecord{Trigger: test.trigger, Now: now}); got != test.want {
			t.Errorf("%s: %v, want %v", test.trigger.Status, got, test.want)
		}
	}
}
