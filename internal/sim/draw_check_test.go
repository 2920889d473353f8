package sim

import (
	"slices"
	"testing"
)

// Every option, fault and verb is drawn, and a history is what its text says.
func TestDrawsAreWhatTheirTextsSay(t *testing.T) {
	drawn := map[string]bool{}
	for seed := range uint64(2000) {
		h := draw(seed)
		for _, name := range h.features() {
			drawn[name] = true
		}
		again, err := parse(h.String())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if again.String() != h.String() {
			t.Fatalf("seed %d: the text\n%s\nis read as\n%s", seed, h, again)
		}
	}
	for _, name := range allFeatures() {
		if !drawn[name] {
			t.Errorf("no history has %q", name)
		}
		delete(drawn, name)
	}
	for name := range drawn {
		if !slices.Contains(common, name) {
			t.Errorf("the table of pairs lacks %q", name)
		}
	}
}
