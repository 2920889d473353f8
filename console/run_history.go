package console

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// maxBars is the greatest number of queues that have a bar each.
const maxBars = 512

// combBar is a queue of a run: the items that it has done, and a line at those of the last run that succeeded.
type combBar struct {
	X, Width  float64 // in percent
	Y, Height float64
	Class     string
	Last      float64
	HasLast   bool
	Title     string
}

const (
	combHeight  = 64.0
	maxBarWidth = 4.0 // in percent: few queues have no blocks, but bars
)

// combOf returns a bar for each queue, in natural order; nil if there are too many, or nothing to see.
func combOf(queues, last []runs.Queue) (bars []combBar) {
	if len(queues) == 0 || len(queues) > maxBars {
		return nil
	}
	before := map[string]int64{}
	most := int64(1)
	for _, q := range last {
		before[q.QueueID] = q.ItemsDone
		most = max(most, q.ItemsDone)
	}
	for _, q := range queues {
		most = max(most, q.ItemsDone)
	}
	step := 100 / float64(len(queues))
	height := func(n int64) float64 { return (combHeight - 2) * float64(n) / float64(most) }
	for i, q := range queues {
		b := combBar{
			X: float64(i) * step, Width: min(step*0.75, maxBarWidth), Height: height(q.ItemsDone),
			Title: "queue " + q.QueueID + ": " + cmp.Or(number(q.ItemsDone), "0") + " items",
		}
		b.Y = combHeight - b.Height
		switch runMark(q.State, false).Kind {
		case "bad":
			b.Class = "bad"
			b.Height = max(b.Height, 2)
			b.Y = combHeight - b.Height
		case "run":
			b.Class = "busy"
		}
		var n int64
		if n, b.HasLast = before[q.QueueID]; b.HasLast {
			b.Last = combHeight - height(n)
		}
		bars = append(bars, b)
	}
	return bars
}

// duration is a run in the list of the last ones.
type duration struct {
	runs.Record
	Here  bool
	Width float64 // of its bar, in percent
}

// durations are a run and those before it.
type durations struct {
	Rows   []duration
	Median float64 // in seconds; 0 if there are no runs before
	Tick   float64 // the median in percent of the longest run
}

// shownDurations is how many runs before it a run is compared with.
const shownDurations = 10

// durationsOf compares a run with those before it that have ended.
func durationsOf(run runs.Record, latest []runs.Record) (d durations) {
	d.Rows = []duration{{Record: run, Here: true}}
	var seconds []float64
	for _, r := range latest {
		if r.ID < run.ID && r.Ended() && !r.StartedAt.IsZero() && len(seconds) < shownDurations {
			d.Rows = append(d.Rows, duration{Record: r})
			seconds = append(seconds, took(r))
		}
	}
	most := 0.001
	for _, r := range d.Rows {
		most = max(most, took(r.Record))
	}
	for i := range d.Rows {
		d.Rows[i].Width = 100 * took(d.Rows[i].Record) / most
	}
	if len(seconds) > 0 {
		slices.Sort(seconds)
		d.Median = (seconds[(len(seconds)-1)/2] + seconds[len(seconds)/2]) / 2
		d.Tick = 100 * d.Median / most
	}
	return d
}

// latestRuns returns the latest runs that a filter selects, the newest first.
func (v *viewer) latestRuns(ctx context.Context, f runs.Filter) []runs.Record {
	return v.runsUpTo(ctx, f, rowsPerPage)
}

func (v *viewer) runsUpTo(ctx context.Context, f runs.Filter, limit int) []runs.Record {
	return latest[runs.Record]{
		key:      strings.Join([]string{"runs", f.State, f.Trigger, f.Name, number(limit)}, "\x00"),
		taskType: f.TaskType, limit: limit, taskTypeOf: func(r runs.Record) string { return r.TaskType },
		compare: func(a, b runs.Record) int { return cmp.Compare(b.ID, a.ID) },
		query: func(ctx context.Context, taskType string) ([]runs.Record, error) {
			f := f // the query may run beside that of another task type
			f.TaskType = taskType
			return v.client.Runs().List(ctx, f, limit)
		},
	}.load(ctx, v)
}

// history fills what compares the run with those before it.
func (p *runPage) history(ctx context.Context, v *viewer, d ops.RunDetails) {
	latest := v.latestRuns(ctx, runs.Filter{TaskType: d.Run.TaskType})
	p.Durations = durationsOf(d.Run, latest)
	var last []runs.Queue
	i := slices.IndexFunc(latest, func(r runs.Record) bool { return r.ID < d.Run.ID && r.State == runs.Success })
	if i >= 0 && len(d.Queues) <= maxBars {
		last = load(ctx, v, "run queues\x00"+latest[i].ID, func(ctx context.Context) ([]runs.Queue, error) {
			return v.client.Runs().Queues(ctx, latest[i].ID)
		})
	}
	p.Bars = combOf(d.Queues, last)
}
