// Package racetest says which tests the race detector runs. It makes a test about ten times slower, and finds something
// only where goroutines share memory in a way that no faster test has. So it need not run the tests of a model or of
// random histories, the tests that play hours or large numbers in a bubble, and the suite of conformance once more over
// other connections.
package racetest

import (
	"os"
	"testing"
)

// Skip skips the test if the race detector is on. `make check` runs all tests without it.
func Skip(t testing.TB) {
	t.Helper()
	if enabled {
		t.Skip("make check runs this test without the race detector")
	}
}

// Defer skips the test if the race detector is on, unless ROTA_RACE is "all", as in `make check`. It is for a test that
// plays many minutes of goroutines which shorter tests have, too, or that calls one thing after the other.
func Defer(t testing.TB) {
	t.Helper()
	if enabled && os.Getenv("ROTA_RACE") != "all" {
		t.Skip("make check runs this test with the race detector")
	}
}
