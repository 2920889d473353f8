package engine

import (
	"testing"
	"time"
)

// What becomes of an item of a page follows from its record (X1, X2, X3, X5).
func TestFilterJudges(t *testing.T) {
	now := time.Now()
	later := now.Add(time.Minute)
	plain := filter{now: now, round: 3, executeNumber: 10}
	cursor := plain
	cursor.inOrder, cursor.cursor = true, cursorState{suspects: 2, batchLimit: 5}
	sweep, givesUp, sample, probe := plain, plain, plain, cursor
	sweep.sweeps, givesUp.sweeps, givesUp.givesUp = true, true, true
	sample.samples, probe.samples = true, true
	bin, cursorBin := plain, cursor
	bin.discards, cursorBin.discards = true, true
	waiting := record{doubtful: true, last: 3, retryAt: later}
	both := record{doubtful: true, attempts: 1, last: 2, retryAt: later}
	for name, test := range map[string]struct {
		f     filter
		index int
		r     *record // nil if there is none
		class class
		mark  mark
	}{
		"new":                       {plain, 0, nil, fresh, ordinary},
		"dead":                      {plain, 0, &record{dead: true, stored: true}, over, ordinary},
		"dead and not recorded":     {plain, 0, &record{dead: true, unsavedSince: time.Unix(1, 0)}, dying, unfinished},
		"backs off":                 {plain, 0, &record{attempts: 1, retryAt: later}, backsOff, ordinary},
		"its pause is over":         {plain, 0, &record{attempts: 1, retryAt: now}, retried, single},
		"suspect":                   {plain, 0, &record{batchLimit: 4}, suspected, 4},
		"its Discard is due":        {bin, 0, &record{dead: true}, dying, unfinished},
		"its Discard has succeeded": {bin, 0, &record{dead: true, discarded: true}, over, ordinary},
		"its Discard has failed":    {bin, 0, &record{dead: true, tries: 1, retryAt: later}, backsOff, ordinary},
		"its Discard at a cursor":   {cursorBin, 0, &record{dead: true}, dying, unfinished},
		"discarded at a cursor":     {cursorBin, 0, &record{dead: true, discarded: true}, retried, passed},
		"doubted, a success since":  {plain, 0, &record{doubtful: true, last: 2, retryAt: later}, retried, 10},
		"doubted, no success since": {plain, 0, &waiting, backsOff, ordinary},
		"dead at a cursor":          {cursor, 0, &record{dead: true}, retried, passed},
		"backs off at a cursor":     {cursor, 0, &record{attempts: 1, retryAt: later}, backsOff, ordinary},
		"the probe of a cursor":     {probe, 0, &record{attempts: 1, retryAt: later}, retried, single},
		"backs off in an outage":    {sample, 0, &waiting, backsOff, ordinary},
		"passed by the sweep":       {sweep, 0, &record{dead: true, unsavedSince: time.Unix(1, 0)}, over, ordinary},
		"dead before the sweep":     {sweep, 0, &record{dead: true, stored: true}, givenUp, ordinary},
		"the sweep waits for it":    {sweep, 0, &record{doubtful: true, last: 3}, retried, 10},
		"the sweep gives it up":     {givesUp, 0, &record{doubtful: true, last: 3}, givenUp, ordinary},

		"an attempt and a doubt, a success since": {plain, 0, &both, retried, single},
		"behind a failed batch of a cursor":       {cursor, 1, nil, retried, 5},
		"behind the suspects of a cursor":         {cursor, 2, nil, fresh, ordinary},
		"a suspect of a sweep that gives up":      {givesUp, 0, &record{batchLimit: 1}, suspected, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var r record
			if test.r != nil {
				r = *test.r
			}
			if class, mark := test.f.judge(test.index, r, test.r != nil); class != test.class || mark != test.mark {
				t.Errorf("class %d and mark %d, want %d and %d", class, mark, test.class, test.mark)
			}
		})
	}
}
