package rows

import (
	"slices"
	"testing"

	"github.com/dutyrota/rota/bench/internal/stage"
)

// The benchmark fails unless each peer marks all rows in each case.
func TestShort(t *testing.T) {
	part, err := Run(t.Context(), stage.ForTest(t), Short)
	if err != nil {
		t.Fatal(err)
	}
	results, ok := part.Data.([]*Result)
	if want := (10 + 7 + 7) * len(Short.Workers); !ok || len(results) != want {
		t.Fatalf("%d results, want %d", len(results), want)
	}
	for _, r := range results {
		if len(r.Rates) != Short.Rounds || r.Rates[0] <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if len(part.Goals) != 3*5 || len(part.Tables) != 3 {
		t.Errorf("%d goals and %d tables", len(part.Goals), len(part.Tables))
	}
}

func TestOrderIsForwardsAndBackwards(t *testing.T) {
	chosen := []peer{{turns: 4}, {turns: 3}, {turns: 1}, {turns: 2}}
	if got, want := order(chosen), []int{0, 1, 2, 3, 3, 1, 0, 0, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
