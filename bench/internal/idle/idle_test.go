package idle

import (
	"testing"

	"github.com/dutyrota/rota/bench/internal/stage"
)

// The benchmark runs to its end on both databases, and has each row.
func TestShort(t *testing.T) {
	servers := stage.ForTest(t)
	part, err := Run(t.Context(), servers, Short)
	if err != nil {
		t.Fatal(err)
	}
	results, ok := part.Data.([]*Result)
	if !ok || len(results) != len(servers)*len(ways)-1 || len(part.Tables) != 1 {
		t.Fatalf("%d results in %d tables", len(results), len(part.Tables))
	}
	for _, r := range results {
		if len(r.Waits) != Short.Rows || r.Asked <= 0 {
			t.Errorf("%+v, want %d rows", r, Short.Rows)
		}
	}
}
