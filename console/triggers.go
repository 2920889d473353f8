package console

import (
	"context"
	"net/url"
	"time"

	"github.com/dutyrota/rota/center"
)

// triggersPage is the page of triggers.
type triggersPage struct {
	Rows  []TriggerRow
	Lanes []lane
	Axis  []laneTime
}

// TriggerRow is a trigger in the list.
type TriggerRow struct {
	center.TriggerRecord
	Mark Mark
}

// showTriggers returns the page of triggers.
func showTriggers(ctx context.Context, v *viewer, query url.Values) (content, error) {
	list, err := v.allTriggers(ctx)
	if err != nil {
		return content{}, err
	}
	runs, err := v.latestRuns(ctx, center.RunFilter{})
	if err != nil {
		return content{}, err
	}
	p := triggersPage{}
	for _, t := range list {
		// The time line moves each minute, so that the page does not change with each read.
		now := t.Now.UTC().Truncate(time.Minute)
		row := TriggerRow{t, triggerMark(t)}
		p.Axis = axisOf(now)
		p.Rows = append(p.Rows, row)
		p.Lanes = append(p.Lanes, laneOf(row, now, runsOfTrigger(runs, t.Name)))
	}
	return content{"Triggers", p, list}, nil
}

func runsOfTrigger(runs []center.RunRecord, name string) (list []center.RunRecord) {
	for _, r := range runs {
		if r.Trigger == name {
			list = append(list, r)
		}
	}
	return list
}

// triggerMark returns the condition of a trigger.
func triggerMark(t center.TriggerRecord) Mark {
	switch {
	case t.Status == center.TriggerError:
		return Mark{"bad", "invalid"}
	case !t.MissedAt.IsZero():
		return Mark{"bad", "missed a slot"}
	case t.SkippedTooLong(t.Now):
		return Mark{"bad", "skips its slots"}
	case t.Status == center.TriggerActive:
		return Mark{"ok", "active"}
	case t.Status == center.TriggerPaused:
		return Mark{"off", "paused"}
	}
	return Mark{"wait", "done"}
}
