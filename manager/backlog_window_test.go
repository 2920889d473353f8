package manager

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// The trend follows from comparisons of the counts alone.
func TestBacklogTrend(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	same := func(int) time.Time { return at.Add(-time.Hour) }
	moves := func(i int) time.Time { return at.Add(time.Duration(i) * time.Minute) }
	unknown := func(int) time.Time { return time.Time{} }
	tests := map[string]struct {
		items  []int64
		oldest func(int) time.Time
		trend  string
		rate   float64 // per minute
	}{
		"one count":                    {[]int64{5}, same, "", 0},
		"two counts":                   {[]int64{5, 7}, same, "", 2},
		"nothing is done":              {[]int64{5, 5, 9}, same, "STUCK", 2},
		"nothing is done, none comes":  {[]int64{5, 5, 5}, same, "STUCK", 0},
		"the oldest is done":           {[]int64{5, 6, 9}, moves, "GROWING", 2},
		"no times, more each time":     {[]int64{5, 6, 9}, unknown, "GROWING", 2},
		"no times, as many each time":  {[]int64{5, 5, 5}, unknown, "STEADY", 0},
		"less":                         {[]int64{9, 8, 5}, moves, "DRAINING", -2},
		"less, the oldest is poison":   {[]int64{9, 8, 5}, same, "DRAINING", -2},
		"up and down":                  {[]int64{5, 3, 9}, moves, "STEADY", 2},
		"less, and then the same":      {[]int64{30, 20, 16, 16, 16, 16}, moves, "STEADY", 0}, // the rate of before has stopped
		"less, and then more":          {[]int64{90, 20, 16, 16, 18, 19}, moves, "STEADY", 1},
		"less, a while ago":            {[]int64{30, 20, 16, 16, 16}, moves, "DRAINING", -3.5},
		"empty":                        {[]int64{0}, unknown, "EMPTY", 0},
		"empty after more":             {[]int64{9, 0, 0}, unknown, "EMPTY", -4.5},
		"it was empty, and then grows": {[]int64{0, 4, 8}, moves, "GROWING", 4},
		"it was empty, and one came":   {[]int64{0, 0, 1}, moves, "STEADY", 0.5},
		"one stays, and was not there": {[]int64{0, 1, 1}, moves, "STEADY", 0.5},
		"only the last ten count":      {[]int64{99, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, moves, "GROWING", 1},
	}
	for name, test := range tests {
		var w backlogWindow
		for i, n := range test.items {
			b := processor.Backlog{Items: n, Oldest: test.oldest(i)}
			w.add(backlogCount{at: at.Add(time.Duration(i) * time.Minute), Backlog: b})
		}
		if got := w.trend(); got != test.trend {
			t.Errorf("%s: trend %q, want %q", name, got, test.trend)
		}
		switch rate, _ := w.rates(); {
		case len(test.items) == 1 && rate != nil:
			t.Errorf("%s: rate %v after one count", name, *rate)
		case len(test.items) > 1 && (rate == nil || *rate*60-test.rate > 1e-9 || test.rate-*rate*60 > 1e-9):
			t.Errorf("%s: rate %v, want %v per minute", name, rate, test.rate)
		}
	}
}

// The demand is the part of the time in which calls were in flight, and more if the backlog grows.
func TestBacklogDemand(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	counts := func(items int64, worked engine.Work) *float64 {
		var w backlogWindow
		w.add(backlogCount{at: at, Backlog: processor.Backlog{Items: 10}, worked: engine.Work{Items: 5, Time: time.Second}})
		w.add(backlogCount{at: at.Add(10 * time.Second), Backlog: processor.Backlog{Items: items}, worked: worked})
		_, demand := w.rates()
		return demand
	}
	for name, test := range map[string]struct {
		items  int64
		worked engine.Work
		want   float64
	}{
		"steady":              {10, engine.Work{Items: 25, Time: 6 * time.Second}, 0.5},
		"growing":             {20, engine.Work{Items: 25, Time: 6 * time.Second}, 0.75},
		"draining":            {0, engine.Work{Items: 25, Time: 6 * time.Second}, 0.5},
		"nothing is done":     {20, engine.Work{Items: 5, Time: time.Second}, 0},
		"granted once more":   {10, engine.Work{}, 0},
		"several executors":   {10, engine.Work{Items: 25, Time: 41 * time.Second}, 4},
		"calls without items": {20, engine.Work{Items: 5, Time: 6 * time.Second}, 0.5},
	} {
		if got := counts(test.items, test.worked); got == nil || *got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	var once backlogWindow
	once.add(backlogCount{at: at})
	if _, demand := once.rates(); demand != nil {
		t.Errorf("%v after one count, want none", demand)
	}
}
