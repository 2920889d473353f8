package testdb

import (
	"maps"
	"os/exec"
	"slices"
	"testing"
)

// languages are the programs that examples/workers is written for, and their packages of Debian.
var languages = map[string]string{"python3": "python3", "node": "nodejs", "jq": "jq"}

// MissingLanguages returns the packages of Debian with the programs that are not installed.
func MissingLanguages() (packages []string) {
	for _, program := range slices.Sorted(maps.Keys(languages)) {
		if _, err := exec.LookPath(program); err != nil {
			packages = append(packages, languages[program])
		}
	}
	return packages
}

// Language fails the test if python3, node or jq is not installed.
func Language(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: the test runs a worker that needs it; make test installs the package %s on Debian as root", err,
				languages[program])
		}
	}
}
