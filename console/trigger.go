package console

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/ops/verbs"
	"github.com/dutyrota/rota/runs"
)

// lane is a trigger in the time line of the next 24 hours.
type lane struct {
	runs.TriggerRecord
	Slots  []float64 // where it fires, in percent
	Dense  bool      // it fires more often than the line can show
	Missed float64   // where it missed a slot; 0 if not in the time that the line shows
	Length float64   // how long its runs take in the median, in percent
	Beyond time.Time // its next slot if that is later than the line shows
}

const (
	lanePast   = time.Hour
	laneFuture = 24 * time.Hour
	laneSpan   = lanePast + laneFuture
	maxSlots   = 300 // of one lane
)

// NowAt is where the line of the present is, in percent.
func (triggersPage) NowAt() float64 { return percent(lanePast, laneSpan) }

// laneTime is a time below the lanes.
type laneTime struct {
	X    float64
	Text string
	Alt  bool // left out on narrow screens
}

// axisOf returns the full hours of the time line, every third one.
func axisOf(now time.Time) (list []laneTime) {
	first := now.Add(lanePast).Truncate(3 * time.Hour)
	for at := first; at.Before(now.Add(laneFuture)); at = at.Add(3 * time.Hour) {
		if x := percent(at.Sub(now)+lanePast, laneSpan); x > 10 && x < 98 {
			list = append(list, laneTime{x, at.Format("15:04"), len(list)%2 == 1})
		}
	}
	return list
}

// laneOf returns the lane of a trigger. latest are the latest runs of all triggers.
func laneOf(t runs.TriggerRecord, now time.Time, latest []runs.Record) lane {
	l := lane{TriggerRecord: t}
	at := func(when time.Time) float64 { return percent(when.Sub(now)+lanePast, laneSpan) }
	if t.Status == runs.TriggerActive {
		slots, err := t.Next(maxSlots)
		if err != nil {
			slots = []time.Time{t.NextFireAt} // the row was edited by hand
		}
		for _, slot := range slots {
			switch x := at(slot); {
			case x >= 0 && x <= 100:
				l.Slots = append(l.Slots, x)
			case x > 100 && len(l.Slots) == 0 && l.Beyond.IsZero():
				l.Beyond = slot
			}
		}
		l.Dense = len(l.Slots) == maxSlots
		if l.Dense {
			l.Slots = l.Slots[:1]
		}
	}
	if x := at(t.MissedAt); !t.MissedAt.IsZero() && x > 0 {
		l.Missed = x
	}
	var lasted []float64
	for _, r := range latest {
		if r.Trigger == t.Name && r.Ended() && took(r) > 0 {
			lasted = append(lasted, took(r))
		}
	}
	if len(lasted) > 0 {
		slices.Sort(lasted)
		l.Length = percent(time.Duration(lasted[len(lasted)/2]*float64(time.Second)), laneSpan)
	}
	return l
}

// triggerPage is the page of a trigger.
type triggerPage struct {
	runs.TriggerRecord
	Next   []time.Time
	Values []settingRow
	Runs   []runs.Record

	Backfills []runs.BackfillRecord
}

// shownBackfills is how many of the latest backfills of a task type the page of its trigger looks at.
const shownBackfills = 10

// shownNext is how many of the next slots the page of a trigger has.
const shownNext = 10

// showTrigger returns the page of a trigger.
func showTrigger(ctx context.Context, v *viewer, query url.Values) content {
	name := query.Get("trigger")
	list := v.allTriggers(ctx)
	if v.Err != nil || !v.knows("triggers") {
		return content{Title: "Trigger " + name}
	}
	i := slices.IndexFunc(list, func(t runs.TriggerRecord) bool { return t.Name == name })
	if i < 0 {
		v.Err = cmp.Or(v.Err, fmt.Errorf("%w trigger %q in own_sign %s", errUnknown, name, v.client.OwnSign()))
		return content{}
	}
	t := list[i]
	p := triggerPage{TriggerRecord: t, Runs: v.latestRuns(ctx, runs.Filter{Trigger: name})}
	if t.Status == runs.TriggerActive {
		p.Next, _ = t.Next(shownNext) // the message of the row says what is wrong with it
	}
	apply := verbs.Find("trigger apply").CallOf(verbs.ApplyOf(t.Trigger))
	for _, a := range apply.Verb.Args {
		if !a.Ask {
			p.Values = append(p.Values, settingRow{Name: labelOf(a), Value: strings.Join(apply.Values(a), ", ")})
		}
	}
	p.Backfills = load(ctx, v, "backfills\x00"+t.Target, func(ctx context.Context) ([]runs.BackfillRecord, error) {
		return v.client.Backfills().List(ctx, runs.BackfillFilter{TaskType: t.Target}, shownBackfills)
	})
	p.Backfills = slices.DeleteFunc(slices.Clone(p.Backfills),
		func(b runs.BackfillRecord) bool { return b.Trigger != name })
	return content{"Trigger " + name, p, p.Runs}
}
