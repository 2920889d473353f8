// Package report holds the results of a run of the benchmarks. It writes them as Markdown for people, as JSON for
// programs, and as a plot.
package report

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Report is the result of one run.
type Report struct {
	Started time.Time
	Took    time.Duration
	Short   bool // sizes so small that the figures mean nothing
	Machine Machine
	Parts   []Part
}

// Machine describes the machine of the run.
type Machine struct {
	OS, Arch, Go, CPU string
	Cores             int
	Databases         []string        // with their versions
	Pace              []time.Duration // before each part and after the last
}

// Part is the result of one benchmark.
type Part struct {
	Name   string
	About  string
	Goals  []Goal
	Tables []Table
	Plots  []Plot
	Data   any `json:",omitempty"` // the measurements behind the tables
}

// Goal compares a figure with what it should be.
type Goal struct {
	What    string
	Want    string
	Got     string
	Outcome string
}

// The outcomes of a Goal.
const (
	Met     = "met"
	Missed  = "MISSED"
	Unknown = "not measured"
)

// AtLeast returns a goal for a figure of want or more. NaN stands for a figure that was not measured. The format is
// one of package fmt.
func AtLeast(what, format string, want, got float64) Goal {
	return newGoal(what, "at least "+fmt.Sprintf(format, want), format, got, got >= want)
}

// Below returns a goal for a figure of less than want.
func Below(what, format string, want, got float64) Goal {
	return newGoal(what, "below "+fmt.Sprintf(format, want), format, got, got < want)
}

// AtMost returns a goal for a figure of want or less.
func AtMost(what, format string, want, got float64) Goal {
	return newGoal(what, "at most "+fmt.Sprintf(format, want), format, got, got <= want)
}

// Exactly returns a goal for the figure want.
func Exactly(what, format string, want, got float64) Goal {
	return newGoal(what, "exactly "+fmt.Sprintf(format, want), format, got, math.Abs(got-want) < 1e-9)
}

func newGoal(what, want, format string, got float64, met bool) Goal {
	g := Goal{What: what, Want: want, Got: fmt.Sprintf(format, got), Outcome: Missed}
	switch {
	case math.IsNaN(got):
		g.Got, g.Outcome = "-", Unknown
	case met:
		g.Outcome = Met
	}
	return g
}

// Table is a table of the report.
type Table struct {
	Title   string
	Note    string `json:",omitempty"`
	Columns []string
	Rows    [][]string
}

// Add appends a row. It formats each value with %v.
func (t *Table) Add(values ...any) {
	row := make([]string, len(values))
	for i, v := range values {
		row[i] = fmt.Sprint(v)
	}
	t.Rows = append(t.Rows, row)
}

// ThisMachine returns a description of the machine that the program runs on.
func ThisMachine() Machine {
	return Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), CPU: cpuName(), Cores: runtime.NumCPU()}
}

// cpuName returns the name of the processor on Linux, and nothing elsewhere.
func cpuName() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // other systems have no such file
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Missed returns the missed goals.
func (r *Report) Missed() (missed []Goal) {
	for _, p := range r.Parts {
		for _, g := range p.Goals {
			if g.Outcome == Missed {
				missed = append(missed, g)
			}
		}
	}
	return missed
}

// Write writes report.md, report.json and the plots into a directory. It creates the directory.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range r.Parts {
		for _, plot := range p.Plots {
			if err := plot.write(dir); err != nil {
				return fmt.Errorf("plot %s: %w", plot.File, err)
			}
		}
	}
	text, err := r.json()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "report.json"), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "report.md"), []byte(r.markdown()), 0o644)
}
