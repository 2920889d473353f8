package console

import (
	"context"
	"net/url"
	"time"

	"github.com/dutyrota/rota/runs"
)

// triggersPage is the page of triggers.
type triggersPage struct {
	Rows  []triggerRow
	Lanes []lane
	Axis  []laneTime
}

// triggerRow is a trigger in the list.
type triggerRow struct {
	runs.TriggerRecord
	Mark mark
}

// showTriggers returns the page of triggers.
func showTriggers(ctx context.Context, v *viewer, _ url.Values) content {
	list, found := v.allTriggers(ctx), v.latestRuns(ctx, runs.Filter{})
	p := triggersPage{}
	for _, t := range list {
		// The time line moves each minute, so that the page does not change with each read.
		now := t.Now.UTC().Truncate(time.Minute)
		row := triggerRow{t, triggerMark(t)}
		p.Axis = axisOf(now)
		p.Rows = append(p.Rows, row)
		p.Lanes = append(p.Lanes, laneOf(row, now, runsOfTrigger(found, t.Name)))
	}
	return content{"Triggers", p, list}
}

func runsOfTrigger(found []runs.Record, name string) (list []runs.Record) {
	for _, r := range found {
		if r.Trigger == name {
			list = append(list, r)
		}
	}
	return list
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
