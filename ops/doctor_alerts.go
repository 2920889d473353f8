package ops

import (
	"context"
	"slices"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/plural"
	"github.com/dutyrota/rota/internal/sqldb"
)

// maxAlerts is how many alerts Diagnose reads.
const maxAlerts = 500

// openAlerts returns the alerts whose conditions last and that no other check reports, the newest first.
func (d rosterCheck) openAlerts(ctx context.Context, taskType string) ([]EventRecord, error) {
	list, err := d.c.Events().List(ctx, EventFilter{TaskType: taskType, Kind: EventAlert, Open: true}, maxAlerts)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e EventRecord) bool { return e.Alert == nil || !condition.KindOf(*e.Alert).OnlyAlert() })
	slices.Reverse(list)
	return list, nil
}

// alerts reports the newest alert of each kind.
func (d rosterCheck) alerts(r rosterRows) {
	var kinds []string
	byKind := map[string][]EventRecord{}
	for _, e := range r.alerts {
		if byKind[*e.Alert] == nil {
			kinds = append(kinds, *e.Alert)
		}
		byKind[*e.Alert] = append(byKind[*e.Alert], e)
	}
	for _, kind := range kinds {
		e := byKind[kind][0]
		text := sqldb.OneLine(errText(e.Reason)).Error()
		if n := len(byKind[kind]) - 1; n > 0 {
			text += "; " + plural.Of(n, "more alert", "more alerts") + " of this kind"
		}
		d.add(kind, "%s (alert of %s UTC)", text, e.EventTime.UTC().Format(time.TimeOnly)).Since = e.EventTime
	}
}
