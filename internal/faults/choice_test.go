//go:build linux

package faults

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// which is the environment variable that selects the plays of TestFaults: see [choose].
const which = "ROTA_FAULTS"

// chosenPlays is the number of plays in a choice.
const chosenPlays = 28

// play is a scenario on one kind of database.
type play struct {
	kind string // of the database
	scenario
}

func (p play) name() string { return p.kind + "/" + p.scenario.name }

// plays returns all plays on the given kinds of database.
func plays(kinds []string) (list []play) {
	for _, kind := range kinds {
		for _, sc := range scenarios() {
			if sc.kinds == nil && kind != testdb.SQLite || slices.Contains(sc.kinds, kind) {
				list = append(list, play{kind, sc})
			}
		}
	}
	return list
}

// in reports whether a choice for the word may have the play.
func (p play) in(word string) bool { return p.quick || word == "long" && !p.seldom }

// choose returns the names of the plays that the value of ROTA_FAULTS selects: all plays ("all"), some of those that
// are not too long ("long"), or some of the quick plays (""). A choice has [chosenPlays] plays, or all plays if there
// are fewer. It depends on the seed, and contains each kind of database, each family of scenarios, and what is always
// played.
func choose(list []play, word string, seed uint64) map[string]bool {
	if word != "all" {
		list = slices.DeleteFunc(slices.Clone(list), func(p play) bool { return !p.in(word) })
	}
	chosen := map[string]bool{}
	rnd := rand.New(rand.NewPCG(seed, 0))
	shuffled := slices.Clone(list)
	rnd.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	seen := map[string]bool{}
	take := func(p play) {
		chosen[p.name()], seen[p.kind], seen[p.family] = true, true, true
	}
	for _, p := range shuffled {
		if p.always || !seen[p.kind] || !seen[p.family] {
			take(p)
		}
	}
	for _, p := range shuffled {
		if word == "all" || len(chosen) < chosenPlays {
			take(p)
		}
	}
	return chosen
}

// TestChoice checks that each choice contains each kind of database and each family, and that some seed chooses each
// play.
func TestChoice(t *testing.T) {
	all := plays(everywhere)
	for _, word := range []string{"", "long"} {
		ever := map[string]bool{}
		for seed := range uint64(500) {
			names := choose(all, word, seed)
			if len(names) != chosenPlays {
				t.Fatalf("ROTA_FAULTS=%s, seed %d: %d plays, want %d", word, seed, len(names), chosenPlays)
			}
			want := map[string]bool{}
			for _, p := range all {
				if p.in(word) {
					want[p.kind], want[p.family], want[p.name()] = true, true, true
				}
			}
			for _, p := range all {
				if p.always && p.in(word) && !names[p.name()] {
					t.Errorf("ROTA_FAULTS=%s, seed %d: %s is not chosen", word, seed, p.name())
				}
				if names[p.name()] {
					delete(want, p.kind)
					delete(want, p.family)
					ever[p.name()] = true
				}
			}
			for left := range want {
				if !strings.Contains(left, "/") {
					t.Errorf("ROTA_FAULTS=%s, seed %d: no play of %s is chosen", word, seed, left)
				}
			}
		}
		for _, p := range all {
			if p.in(word) && !ever[p.name()] {
				t.Errorf("ROTA_FAULTS=%s never plays %s", word, p.name())
			}
		}
	}
	if n := len(choose(all, "all", 1)); n != len(all) {
		t.Errorf("ROTA_FAULTS=all plays %d of %d", n, len(all))
	}
}

// wanted returns the names of the plays that ROTA_FAULTS selects.
func wanted(t *testing.T, list []play, seed uint64) map[string]bool {
	t.Helper()
	word := os.Getenv(which)
	if !slices.Contains([]string{"", "long", "all"}, word) {
		t.Fatalf("%s (%q) must be long, all or unset", which, word)
	}
	names := choose(list, word, seed)
	t.Logf("%d of %d plays, chosen by ROTA_FAULTS_SEED=%d", len(names), len(list), seed)
	return names
}
