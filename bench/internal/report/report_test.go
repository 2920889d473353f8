package report

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestGoals(t *testing.T) {
	for want, goals := range map[string][]Goal{
		Met:     {AtLeast("a", "%.1f", 0.9, 0.9), Below("b", "%.0f ms", 500, 499), AtMost("c", "%.0f", 3, 3), Exactly("d", "%.2f", 1, 1)},
		Missed:  {AtLeast("a", "%.1f", 0.9, 0.89), Below("b", "%.0f ms", 500, 500), AtMost("c", "%.0f", 3, 4), Exactly("d", "%.2f", 1, 1.01)},
		Unknown: {AtLeast("a", "%.1f", 0.9, math.NaN()), Below("b", "%.0f", 1, math.NaN())},
	} {
		for _, g := range goals {
			if g.Outcome != want {
				t.Errorf("%+v: want %s", g, want)
			}
		}
	}
}

func TestFigures(t *testing.T) {
	of := []float64{5, 1, 3, 2, 4}
	for name, got := range map[string][2]float64{
		"median": {Median(of), 3}, "p99": {Percentile(of, 99), 5}, "p1": {Percentile(of, 1), 1}, "spread": {Spread(of), 400.0 / 3},
		"median of two": {Median([]float64{2, 1}), 1},
	} {
		if math.Abs(got[0]-got[1]) > 1e-9 {
			t.Errorf("%s is %g, want %g", name, got[0], got[1])
		}
	}
	if of[0] != 5 {
		t.Error("Median sorts the caller's list")
	}
	if !math.IsNaN(Median(nil)) || !math.IsNaN(Spread(nil)) {
		t.Error("the figures of an empty list are not NaN")
	}
}

func TestReportShowsMissedGoals(t *testing.T) {
	dir := t.TempDir()
	r := Report{
		Started: time.Unix(0, 0), Took: time.Minute, Short: true,
		Machine: ThisMachine(),
		Parts: []Part{{
			Name: "rows", About: "About rows.", Goals: []Goal{AtLeast("ratio", "%.1f", 0.9, 0.5)},
			Tables: []Table{{Title: "Rates", Columns: []string{"name", "rows/s"}, Rows: [][]string{{"a|b", "7"}}}},
			Plots: []Plot{{File: "rates.svg", Title: "rates", Lines: []Line{
				{Name: "one", Points: []Point{{1, 2}, {10, 3}}}, {Name: "none"},
			}}},
		}},
	}
	r.Machine.Pace = []time.Duration{110 * time.Millisecond, 90 * time.Millisecond}
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, want := range []string{"| rows: ratio | at least 0.9 | 0.5 | MISSED |", `| a\|b | 7 |`, "![rates](rates.svg)", "mean nothing", "90 to 110 ms"} {
		if !strings.Contains(read("report.md"), want) {
			t.Errorf("report.md lacks %q:\n%s", want, read("report.md"))
		}
	}
	var back Report
	if err := json.Unmarshal([]byte(read("report.json")), &back); err != nil || len(back.Missed()) != 1 {
		t.Errorf("report.json: %v, %d missed goals, want 1", err, len(back.Missed()))
	}
	if !strings.Contains(read("rates.svg"), "<svg") {
		t.Error("rates.svg is not an SVG file")
	}
}
