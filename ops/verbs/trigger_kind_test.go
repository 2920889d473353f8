package verbs

import (
	"testing"

	"github.com/dutyrota/rota/runs"
)

// Each kind of trigger has its argument, so that a form shows a trigger as it is, and a text for people.
func TestKindsOfTriggers(t *testing.T) {
	for _, want := range []struct{ kind, expression, text string }{
		{runs.TriggerCron, "0 0 2 * * ?", "0 0 2 * * ? Europe/Berlin"},
		{runs.TriggerEvery, "1h0m0s", "every 1h0m0s"},
		{runs.TriggerOnce, "2026-12-01T02:00:00Z", "at 2026-12-01T02:00:00Z"},
	} {
		was := runs.Trigger{Kind: want.kind, Expression: want.expression, TimeZone: "Europe/Berlin"}
		a := ApplyOf(was)
		a.TimeZone = ""
		var is runs.Trigger
		if err := a.schedule(&is); err != nil || is.Kind != was.Kind || is.Expression != was.Expression {
			t.Errorf("%s is shown as %s %q, %v", want.text, is.Kind, is.Expression, err)
		}
		if got := ScheduleText(was); got != want.text {
			t.Errorf("%s: the text is %q", want.text, got)
		}
	}
}
