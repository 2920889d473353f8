package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/ops/verbs"
)

// Every option, fault, verb and argument of a verb is drawn, and a history is what its text says.
func TestDrawsAreWhatTheirTextsSay(t *testing.T) {
	drawn, arguments := map[string]bool{}, map[string]bool{}
	for seed := range uint64(2000) {
		h := draw(seed)
		for _, name := range h.features() {
			drawn[name] = true
		}
		for _, s := range h.steps {
			for _, word := range s.words {
				argument, _, _ := strings.Cut(word, "=")
				arguments[strings.Join(append(slices.Clone(s.words[:min(2, len(s.words))]), argument), " ")] = true
			}
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
	for _, v := range verbs.All() {
		for _, a := range v.Args {
			name := v.Name + " " + a.Name
			reason := unplayed[v.Name] + unplayedFlags[a.Name] + unplayedFlags[name]
			if a.Key == "" && reason == "" && !arguments["verb "+strings.ReplaceAll(v.Name, " ", "_")+" "+a.Name] {
				t.Errorf("no history has %q", name)
			}
		}
	}
	for name := range drawn {
		if !slices.Contains(common, name) {
			t.Errorf("the table of pairs lacks %q", name)
		}
	}
}
