package main

import (
	"strings"
	"testing"
)

// A mutant whose place or test is gone proves nothing; `make mutants` would say so, but does not run for each change.
func TestEachMutantApplies(t *testing.T) {
	source, err := readModule("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if _, err := source.find(m); err != nil {
			t.Error(err)
		}
		if _, _, err := source.command(m); err != nil {
			t.Error(err)
		}
	}
}

// Each group of rules has its mutants.
func TestEachGroupHasMutants(t *testing.T) {
	for _, group := range strings.Split("PLSHNFXR", "") {
		n := 0
		for _, m := range mutants {
			if strings.HasPrefix(m.rule, group) {
				n++
			}
		}
		if n < 2 {
			t.Errorf("%d mutants of the rules %s, want 2 or more", n, group)
		}
	}
}
