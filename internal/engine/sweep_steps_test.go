package engine_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

// A dealer that works on each item in five steps sweeps its queue if sweep_max_repeats allows as many (R9).
func TestSweepInSteps(t *testing.T) {
	sweep := func(t *testing.T, w *world, repeats int) map[string]int {
		steps := map[string]int{}
		d := &keyed{dealer{
			sel: func(context.Context, processor.Selection) (page []string, err error) {
				for _, item := range []string{"a1", "a2", "a3"} {
					if steps[item] < 5 {
						page = append(page, item)
					}
				}
				return page, nil
			},
			exec: func(_ context.Context, items []string) error {
				for _, item := range items {
					steps[item]++
				}
				return nil
			},
		}}
		s := settings()
		s.ThreadNumber, s.ExecuteNumber, s.SweepMaxRepeats = 1, 1, repeats
		w.sweep(t, d, engine.Env{}, s, "a")
		synctest.Wait()
		return steps
	}
	bubble(t, func(t *testing.T, w *world) {
		if steps := sweep(t, w, 5); steps["a1"] != 5 || steps["a3"] != 5 {
			t.Errorf("with sweep_max_repeats 5: %v steps, want 5 of each item", steps)
		}
		w.swept(t, "a", 15, 0)
	})
	bubble(t, func(t *testing.T, w *world) {
		if steps := sweep(t, w, 0); steps["a1"] == 5 {
			t.Errorf("by default: %v steps, want no progress", steps)
		}
		w.failedWith(t, "a", "no progress: 3 selects in a row")
	})
}
