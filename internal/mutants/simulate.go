package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// histories is the test of package sim that plays random histories.
const histories = "TestHistories"

// simulator plays random histories with the package in a directory.
type simulator struct{ dir string }

// simulate plays random histories with the broken rule, which restore mends. The mutant is caught if a history breaks a
// rule of the oracle that it does not break on the code as it is, in three plays. A panic and a play without an end
// count for nothing: no oracle has said what is wrong.
func (m mutant) simulate(s simulator, sim string, restore func() error) (string, error) {
	out, failed := s.play(sim, 1, "ROTA_SIM_SHRINK=0")
	if err := restore(); err != nil {
		return "", err
	}
	if err := m.noTest(out); err != nil {
		return "", err
	}
	seed, rule := brokenRule(out)
	switch {
	case failed == nil:
		return survived + howMany(out), nil
	case rule == "":
		return survived + ", but no history ended: " + firstFailure(out), nil
	}
	first := out
	out, failed = s.play("1", 3, "ROTA_SIM_SHRINK=0", "ROTA_SIM_SEED="+seed)
	if n := howMany(out); failed == nil && n != " in 1 histories" {
		return "", fmt.Errorf("%s: the history of %s was not played without the mutant:\n%s", m.name(), seed, out)
	}
	if _, same := brokenRule(out); failed != nil {
		return survived + ": the history of " + seed + " breaks " + same + " without the mutant, too", nil
	}
	return "caught" + howMany(first) + ": seed " + seed + " breaks " + rule, nil
}

// play plays random histories for so long, or so many, several times.
func (s simulator) play(sim string, times int, environment ...string) (string, error) {
	long, err := time.ParseDuration(sim)
	if err != nil {
		long = 10 * time.Minute
	}
	return goTest(s.dir, append(environment, "ROTA_SIM="+sim), long+2*time.Minute,
		"-v", "-run", "^"+histories+"$", fmt.Sprint("-count=", times))
}

var played = regexp.MustCompile(`: (\d+ histories), `)

// howMany says how many histories were played.
func howMany(out string) string {
	if n := played.FindStringSubmatch(out); n != nil {
		return " in " + n[1]
	}
	return ""
}

var breaks = regexp.MustCompile(`: seed (\d+) breaks (.+)`)

// brokenRule returns the first rule of the oracle that a history breaks, and the seed of the history. Both are "" if no
// history breaks a rule: a play that could not be played says so in the place of a rule.
func brokenRule(out string) (seed, rule string) {
	found := breaks.FindStringSubmatch(out)
	if found == nil || strings.HasPrefix(found[2], "the play itself") {
		return "", ""
	}
	return found[1], found[2]
}
