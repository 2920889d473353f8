package processor_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dutyrota/rota/processor"
)

// A dealer that works on each item in five steps sweeps its queue if sweep_max_repeats allows as many (R9).
func TestSweepInSteps(t *testing.T) {
	sweep := func(repeats int) (steps map[string]int, err error) {
		steps = map[string]int{}
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
		_, err = processor.RunOnce(t.Context(), d,
			processor.TestOptions{Run: &processor.Run{ID: "r"}, SweepMaxRepeats: repeats})
		return steps, err
	}
	if steps, err := sweep(5); err != nil || steps["a1"] != 5 || steps["a3"] != 5 {
		t.Errorf("with sweep_max_repeats 5: %v steps, error %v, want 5 of each item", steps, err)
	}
	if steps, err := sweep(0); err == nil || !strings.Contains(err.Error(), "no progress: 3 selects in a row") ||
		steps["a1"] == 5 {
		t.Errorf("by default: %v steps, error %v, want no progress", steps, err)
	}
}
