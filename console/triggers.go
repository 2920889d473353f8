package console

import (
	"context"
	"net/url"
	"time"

	"github.com/dutyrota/rota/runs"
)

// triggersPage is the page of triggers.
type triggersPage struct {
	Rows  []runs.TriggerRecord
	Lanes []lane
	Axis  []laneTime
}

// showTriggers returns the page of triggers.
func showTriggers(ctx context.Context, v *viewer, _ url.Values) content {
	list, found := v.allTriggers(ctx), v.latestRuns(ctx, runs.Filter{})
	if !v.knows("triggers") {
		return content{Title: "Triggers"}
	}
	p := triggersPage{Rows: list}
	for _, t := range list {
		// The time line moves each minute, so that the page does not change with each read.
		now := t.Now.UTC().Truncate(time.Minute)
		p.Axis = axisOf(now)
		p.Lanes = append(p.Lanes, laneOf(t, now, found))
	}
	return content{"Triggers", p, list}
}

// triggerMark returns the condition of a trigger.
func triggerMark(t runs.TriggerRecord) mark {
	switch {
	case t.Status == runs.TriggerError:
		return mark{"bad", "invalid"}
	case !t.MissedAt.IsZero():
		return mark{"bad", "missed a slot"}
	case t.SkippedTooLong(t.Now):
		return mark{"bad", "skips its slots"}
	case t.Status == runs.TriggerActive:
		return mark{"ok", "active"}
	case t.Status == runs.TriggerPaused:
		return mark{"off", "paused"}
	}
	return mark{"wait", "done"}
}
