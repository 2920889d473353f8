package engine

import (
	"testing"
	"time"
)

// What a failure means for its item follows from what is known about the item and its surroundings (X5).
func TestFailureCounts(t *testing.T) {
	now := time.Now()
	later := now.Add(time.Minute)
	pausing := record{first: 1, last: 1, attempts: 1, retryAt: later}
	doubtedBefore := record{first: 1, last: 1, retryAt: later}
	known := record{first: 3, last: 4, attempts: 1}
	for name, test := range map[string]struct {
		r              record
		f              failure
		counts, passes bool
	}{
		"first":                                  {record{}, failure{round: 1}, true, true},
		"doubted":                                {record{}, failure{round: 1, doubted: true}, false, false},
		"doubted, permanent":                     {record{}, failure{round: 1, doubted: true, permanent: true}, true, true},
		"doubted, data":                          {record{}, failure{round: 1, doubted: true, data: true}, true, true},
		"doubted, failed in this round":          {record{first: 3, last: 3}, failure{round: 3, doubted: true}, false, false},
		"doubted, a success since the failure":   {record{first: 3, last: 3}, failure{round: 4, doubted: true}, true, true},
		"doubted, known, failed in this round":   {known, failure{round: 4, doubted: true}, false, true},
		"before its pause is over":               {pausing, failure{round: 2, began: now}, false, true},
		"data, before its pause is over":         {pausing, failure{began: now, data: true}, false, true},
		"doubted before, not an attempt so far":  {doubtedBefore, failure{round: 2, began: now}, true, true},
		"permanent, before its pause is over":    {pausing, failure{began: now, permanent: true}, true, true},
		"a success between failure and attempt?": {record{first: 2, last: 2}, failure{round: 2, doubted: true}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.f.record = test.r
			if got := test.f.counts(); got != test.counts {
				t.Errorf("counts is %t", got)
			}
			if got := test.f.passes(); got != test.passes {
				t.Errorf("passes is %t", got)
			}
		})
	}
}

// A failure that counts is the last attempt if it is permanent, or if the item has no attempts left.
func TestFailureIsJudged(t *testing.T) {
	for name, test := range map[string]struct {
		f    failure
		most int
		want verdict
	}{
		"first of three":            {failure{}, 3, attempt},
		"third of three":            {failure{record: record{attempts: 2}}, 3, last},
		"third of any number":       {failure{record: record{attempts: 2}}, 0, attempt},
		"doubted, third of three":   {failure{record: record{attempts: 2}, doubted: true}, 3, doubt},
		"permanent":                 {failure{permanent: true}, 3, last},
		"dead already":              {failure{record: record{dead: true}, permanent: true}, 3, doubt},
		"data, doubted, of several": {failure{data: true, doubted: true}, 3, attempt},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.f.judge(test.most); got != test.want {
				t.Errorf("verdict %d, want %d", got, test.want)
			}
		})
	}
}
