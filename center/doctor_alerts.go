package center

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/condition"
	"github.com/dutyrota/rota/internal/plural"
)

const (
	// alertsAge is how old an alert may be that Diagnose reports. An alert that persists is repeated once an hour.
	alertsAge = 70 * time.Minute
	// maxAlerts is how many alerts Diagnose reads.
	maxAlerts = 500
)

// recentAlerts returns the alerts of the last hour that no other check reports, the newest first.
func (d rosterCheck) recentAlerts(ctx context.Context, taskType string) ([]EventRecord, error) {
	list, err := d.c.Events().List(ctx, EventFilter{TaskType: taskType, Kind: EventAlert, Since: alertsAge}, maxAlerts)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e EventRecord) bool { return !condition.KindOf(alertKind(e)).OnlyAlert() })
	slices.Reverse(list)
	return list, nil
}

// alertKind returns the kind of an alert, with which its text begins.
func alertKind(e EventRecord) string {
	kind, _, _ := strings.Cut(e.Reason, ":")
	return kind
}

// alerts reports the newest alert of each kind.
func (d rosterCheck) alerts(r rosterRows) {
	var kinds []string
	count := map[string]int{}
	newest := map[string]EventRecord{}
	for _, e := range r.alerts {
		kind := alertKind(e)
		if count[kind]++; count[kind] == 1 {
			kinds, newest[kind] = append(kinds, kind), e
		}
	}
	for _, kind := range kinds {
		e := newest[kind]
		text := oneLine(errText(e.Reason)).Error()
		if n := count[kind] - 1; n > 0 {
			text += "; " + plural.Of(int64(n), "more alert", "more alerts") + " of this kind"
		}
		d.note(kind, "rota event list "+d.task+" --kind "+EventAlert, "%s (alert of %s UTC)", text, e.EventTime.UTC().Format(time.TimeOnly))
	}
}
