package choices

import (
	"testing"

	"github.com/dutyrota/rota/bench/internal/stage"
)

// The benchmark runs to its end on both databases, and has a rate for each choice.
func TestShort(t *testing.T) {
	servers := stage.ForTest(t)
	part, err := Run(t.Context(), servers, Short)
	if err != nil {
		t.Fatal(err)
	}
	results, ok := part.Data.([]*Result)
	if want := len(servers) * len(choices(Short)); !ok || len(results) != want || len(part.Tables) != len(servers) {
		t.Fatalf("%d results in %d tables, want %d in %d", len(results), len(part.Tables), want, len(servers))
	}
	for _, r := range results {
		if len(r.Rates) != Short.Rounds || r.Rates[0] <= 0 {
			t.Errorf("%+v, want a rate for each round", r)
		}
	}
}
