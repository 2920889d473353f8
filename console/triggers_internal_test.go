package console

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
)

// A trigger whose row is invalid never looks as if it were done.
func TestTriggerMark(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, test := range []struct {
		trigger center.Trigger
		want    mark
	}{
		{center.Trigger{Status: center.TriggerActive}, mark{"ok", "active"}},
		{center.Trigger{Status: center.TriggerPaused}, mark{"off", "paused"}},
		{center.Trigger{Status: center.TriggerDone}, mark{"wait", "done"}},
		{center.Trigger{Status: center.TriggerError}, mark{"bad", "invalid"}},
		{center.Trigger{Status: center.TriggerError, MissedAt: now}, mark{"bad", "invalid"}},
		{center.Trigger{Status: center.TriggerActive, MissedAt: now}, mark{"bad", "missed a slot"}},
	} {
		if got := triggerMark(center.TriggerRecord{Trigger: test.trigger, Now: now}); got != test.want {
			t.Errorf("%s: %v, want %v", test.trigger.Status, got, test.want)
		}
	}
}
