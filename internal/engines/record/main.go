// Command record writes what tests found on an engine to a file of docs/engines. It reads the output of go test -json,
// and prints what go test prints without -json. It fails if a test has failed, or if none was run.
//
//	go test -json ./center ./internal/faults | record docs/engines/postgresql-15.json
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/engines"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ... | record FILE")
		os.Exit(2)
	}
	if err := record(os.Args[1], os.Stdin, os.Stdout, time.Now()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// record adds what the tests found to the result in the file.
func record(file string, tests io.Reader, out io.Writer, now time.Time) error {
	r, err := engines.Read(file)
	if err != nil {
		return err
	}
	l := listener{
		out: out, date: now.Format(time.DateOnly), result: r, texts: map[string]string{}, parents: map[string]bool{},
	}
	for d := json.NewDecoder(tests); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("read the output of go test -json: %w", err)
		}
		if err := l.hear(e); err != nil {
			return err
		}
	}
	switch {
	case l.failed:
		err = errors.New("tests have failed")
	case !l.passed:
		err = errors.New("no test was run")
	}
	if l.passed || l.failed {
		l.finish()
		err = errors.Join(err, l.result.Write(file))
	}
	return err
}

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action, Package, Test, Output, Key, Value string
}

// listener makes a result of the events of tests.
type listener struct {
	out            io.Writer
	date           string
	result         engines.Result
	conformance    engines.Conformance
	texts          map[string]string // what the tests under way have printed, by package and test
	parents        map[string]bool   // tests with subtests: they are no cases
	passed, failed bool
}

func (l *listener) hear(e event) error {
	name := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		l.texts[name] += e.Output
	case "attr":
		return l.attribute(e.Key, e.Value)
	case "pass", "fail":
		l.ended(e)
		if e.Test == "" || e.Action == "fail" {
			if _, err := io.WriteString(l.out, l.texts[name]); err != nil {
				return err
			}
		}
		delete(l.texts, name)
	case "skip":
		l.ended(e)
		delete(l.texts, name)
	}
	return nil
}

// attribute takes over the part of the result that a test has stated.
func (l *listener) attribute(key, value string) error {
	switch key {
	case engines.EngineAttr:
		l.result.Engine = value
	case engines.FailoverAttr:
		l.result.Failover = &engines.Failover{Date: l.date}
		if err := json.Unmarshal([]byte(value), l.result.Failover); err != nil {
			return fmt.Errorf("the attribute %s of a test: %w", key, err)
		}
		l.result.Failover.Date = l.date
	}
	return nil
}

// conforming matches the subtests of the suites that count.
var conforming = regexp.MustCompile(`^TestConformance(OnGalera)?/`)

// ended counts the cases of TestConformance and TestConformanceOnGalera: a subtest ends before its parent.
func (l *listener) ended(e event) {
	l.passed, l.failed = l.passed || e.Test != "" && e.Action == "pass", l.failed || e.Action == "fail"
	if parent := strings.LastIndex(e.Test, "/"); parent > 0 {
		l.parents[e.Package+" "+e.Test[:parent]] = true
	}
	switch {
	case !conforming.MatchString(e.Test) || l.parents[e.Package+" "+e.Test]:
	case e.Action == "pass":
		l.conformance.Passed++
	case e.Action == "fail":
		l.conformance.Failed++
	}
}

func (l *listener) finish() {
	if l.conformance.Passed+l.conformance.Failed > 0 {
		l.conformance.Date = l.date
		l.result.Conformance = &l.conformance
	}
}
