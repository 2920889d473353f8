// Command mutants checks the tests: it breaks one rule after another in a copy of the module and runs the tests that must
// notice. It exits 1 if a broken rule goes unnoticed.
//
//	go run ./internal/mutants [NAME...]   tries the mutants whose name contains one of the words; all by default
//	go run ./internal/mutants -sim 30s    plays random histories instead of the tests, for as long, or so many if it is a
//	                                      number (package sim); only a
//	                                      broken rule of its oracle counts, and ROTA_SIM_SEED is the first seed
//	go run ./internal/mutants -sample 60 -sample-seed 1 -cover FILE
//	                                      tries a sample of the mutants of lines that the cover profile has as run
//	go run ./internal/mutants -list       prints the table of the rules, their mutants and the tests that notice
//
// A mutant that does not apply or does not compile is an error. The command needs the databases of the tests; `make mutants`
// provides them. If ROTA_TEST_DATABASES omits PostgreSQL or MySQL, some mutants survive: only tests on these notice
// them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	list := flag.Bool("list", false, "print the mutants and try none")
	sim := flag.String("sim", "", "play random histories instead of the tests that must notice: for so long, or so many")
	var c choice
	flag.IntVar(&c.sample, "sample", 0, "try only so many, drawn at random")
	flag.Uint64Var(&c.seed, "sample-seed", 1, "the seed of the sample")
	flag.StringVar(&c.cover, "cover", "", "try only what changes statements that this profile of go test -coverprofile has as run")
	flag.Parse()
	c.words = flag.Args()
	if *list {
		printTable()
		return
	}
	survivors, err := run(c, *sim)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
	if survivors > 0 {
		fmt.Fprintf(os.Stderr, "mutants: %d broken rules went unnoticed\n", survivors)
		os.Exit(1)
	}
}

func printTable() {
	for _, m := range mutants {
		fmt.Printf("%-4s %-60s %-20s %s\n", m.rule, m.what, m.in, m.test)
	}
}

func run(c choice, sim string) (survivors int, err error) {
	dir, err := os.MkdirTemp("", "rota-mutants-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := copyModule(dir); err != nil {
		return 0, fmt.Errorf("copy the module: %w", err)
	}
	source, err := readModule(dir)
	if err != nil {
		return 0, err
	}
	chosen, err := c.choose(source)
	if err != nil {
		return 0, err
	}
	for _, m := range chosen {
		result, tryErr := m.try(source, sim)
		if tryErr != nil { // the others are tried all the same
			result, err = tryErr.Error(), errors.Join(err, tryErr)
		}
		fmt.Printf("%-60s %s\n", m.name(), result)
		if !strings.HasPrefix(result, "caught") {
			survivors++
		}
	}
	return survivors, err
}

// copyModule copies the module without the folders whose names begin with a dot: the tests need neither the history nor
// the tools in them.
func copyModule(dir string) error {
	entries, err := os.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		to := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			err = os.CopyFS(to, os.DirFS(e.Name()))
		default:
			var text []byte
			if text, err = os.ReadFile(e.Name()); err == nil {
				err = os.WriteFile(to, text, 0o600)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m mutant) named(words []string) bool {
	for _, w := range words {
		if strings.Contains(m.name(), w) {
			return true
		}
	}
	return len(words) == 0
}

const survived = "SURVIVED"

// try breaks the rule in the copy of the module, runs the tests or the simulator, and restores the file. A mutant that
// does not apply or does not compile is an error: no test has caught it.
func (m mutant) try(source *module, sim string) (result string, err error) {
	p, err := source.find(m)
	if err != nil {
		return "", err
	}
	dir, args, err := source.command(m)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(p.file, []byte(p.mutated(m)), 0o600); err != nil {
		return "", err
	}
	restore := func() error { return os.WriteFile(p.file, []byte(p.text), 0o600) }
	if sim != "" {
		return m.simulate(simulator{source.tests[histories][0]}, sim, restore)
	}
	defer func() { err = errors.Join(err, restore()) }()
	// SQLite is the quickest, and most mutants are noticed there. The others are tried on all databases.
	for _, environment := range [][]string{{"ROTA_TEST_DATABASES=sqlite"}, nil} {
		out, failed := goTest(dir, environment, 5*time.Minute, args...)
		if err := m.noTest(out); err != nil {
			return "", err
		}
		if failed != nil {
			return "caught by " + firstFailure(out), nil
		}
	}
	return survived, nil
}

// noTest returns an error if the output of go test says that no test has run.
func (m mutant) noTest(out string) error {
	switch {
	case strings.Contains(out, "[build failed]"):
		return fmt.Errorf("%s: does not compile:\n%s", m.name(), out)
	case strings.Contains(out, "[no tests to run]"):
		return fmt.Errorf("%s: no test is named %s", m.name(), m.test)
	}
	return nil
}

// goTest runs go test in a directory, with more environment variables.
func goTest(dir string, environment []string, timeout time.Duration, args ...string) (string, error) {
	options := []string{"test", "-vet=off", "-failfast", "-count=1", "-timeout=" + timeout.String()}
	cmd := exec.Command("go", append(options, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "ROTA_FAULTS=all"), environment...) // a scenario that is named is wanted
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// firstFailure names the first test that failed, with its subtest, or tells what happened instead.
func firstFailure(out string) (test string) {
	for line := range strings.Lines(out) {
		rest, failed := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: ")
		name, _, _ := strings.Cut(rest, " (")
		if failed && (test == "" || strings.HasPrefix(name, test+"/")) {
			test = name
		}
	}
	if test != "" {
		return test
	}
	if strings.Contains(out, "panic: test timed out") {
		return "a test that did not end"
	}
	return "a panic"
}
