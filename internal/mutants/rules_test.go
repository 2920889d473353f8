package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/dutyrota/rota/internal/racetest"
)

// A mutant whose place or test is gone proves nothing; `make mutants` would say so, but does not run for each change.
func TestEachMutantApplies(t *testing.T) {
	racetest.Skip(t)
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

// Each rule that the pages docs/protocol*.md define has a mutant, and each mutant's rule is defined there.
func TestEachRuleHasAMutant(t *testing.T) {
	pages, err := filepath.Glob("../../docs/protocol*.md")
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{"": true}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, heading := range regexp.MustCompile(`(?m)^### ([A-Z]\d+) `).FindAllStringSubmatch(string(text), -1) {
			defined[heading[1]] = true
		}
	}
	broken := map[string]bool{"": true}
	for _, m := range mutants {
		broken[m.rule] = true
		if !defined[m.rule] {
			t.Errorf("%s: docs/protocol*.md define no such rule", m.name())
		}
	}
	for rule := range defined {
		if !broken[rule] {
			t.Errorf("no mutant breaks %s", rule)
		}
	}
	if len(defined) < 50 {
		t.Errorf("%d rules are defined, want 50 or more: are rules still headings?", len(defined)-1)
	}
}
