package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mutant whose place is gone proves nothing; `make mutants` would say so, but is not run for each change.
func TestEachMutantHasItsPlace(t *testing.T) {
	for _, m := range mutants {
		text, err := os.ReadFile(filepath.Join("..", "..", m.file))
		if err != nil {
			t.Error(err)
		}
		if n := strings.Count(string(text), m.from); n != 1 {
			t.Errorf("%s: %d places in %s, want 1", m.name, n, m.file)
		}
	}
}
