package main

import "testing"

// What a history breaks is a catch; a panic, a time-out and a play that could not be played are none.
func TestOnlyABrokenRuleCounts(t *testing.T) {
	for out, want := range map[string]string{
		"    sim_test.go:155: seed 17 breaks late: a trigger waits\n--- FAIL: TestHistories": "late: a trigger waits",
		"    sim_test.go:155: seed 17 breaks the play itself: no roster\n":                   "",
		"panic: test timed out after 2m30s\nrunning tests:\n\tTestHistories (2m30s)\n":       "",
		"panic: a history does not end\nseed 17\nprocesses 3\n":                              "",
		"panic: runtime error: index out of range [recovered]\n":                             "",
	} {
		if seed, rule := brokenRule(out); rule != want || (seed == "17") != (want != "") {
			t.Errorf("%q: seed %q, rule %q, want %q", out, seed, rule, want)
		}
	}
}
