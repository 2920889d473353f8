package testdb

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// languages are the programs that examples/workers is written for, and their packages of Debian.
var languages = map[string]string{"python3": "python3", "node": "nodejs", "jq": "jq"}

// drivers are the modules of settle.py for the databases that Python has none for, and their packages of Debian.
var drivers = map[string]string{"psycopg2": "python3-psycopg2", "pymysql": "python3-pymysql"}

// MissingLanguages returns the packages of Debian with the programs and drivers that are not installed.
func MissingLanguages() (packages []string) {
	for _, program := range slices.Sorted(maps.Keys(languages)) {
		if _, err := exec.LookPath(program); err != nil {
			packages = append(packages, languages[program])
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(drivers)) {
		if pythonWith(driver) == "" {
			packages = append(packages, drivers[driver])
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

// Python returns a Python 3 that has a driver for the database of the URL. It fails the test if there is none.
func Python(t testing.TB, url string) string {
	t.Helper()
	driver := "pymysql"
	switch scheme, _, _ := strings.Cut(url, ":"); scheme {
	case "sqlite":
		driver = "sqlite3"
	case "postgres":
		driver = "psycopg2"
	}
	python := pythonWith(driver)
	if python == "" {
		t.Fatalf("no Python 3 has the module %s: the test runs a worker that needs it; make test installs the package %s on "+
			"Debian as root", driver, drivers[driver])
	}
	return python
}

// pythonWith returns a Python 3 that has a module, or "". Debian's packages are for Debian's Python, which need not be
// the first in PATH.
func pythonWith(module string) string {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	return ""
}
