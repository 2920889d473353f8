package docs_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/engines"
)

// The comments around the tables in engines.md.
const (
	resultsBegin = "<!-- made of docs/engines by go test ./docs -update -->\n"
	resultsEnd   = "<!-- end -->\n"
)

// The tables of engines.md say what is in the files of docs/engines.
func TestEngineTables(t *testing.T) {
	files, err := filepath.Glob("engines/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no results: %v", err)
	}
	var results []engines.Result
	for _, file := range files {
		r, err := engines.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	slices.SortStableFunc(results, func(a, b engines.Result) int { return cmp.Compare(a.Engine, b.Engine) })
	page, err := os.ReadFile("engines.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), resultsBegin)
	got, after, ended := strings.Cut(rest, resultsEnd)
	if !found || !ended {
		t.Fatalf("engines.md has no %q or no %q", resultsBegin, resultsEnd)
	}
	want := engineTables(results)
	switch {
	case got == want:
	case *update:
		text := before + resultsBegin + want + resultsEnd + after
		if err := os.WriteFile("engines.md", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the tables of engines.md differ from docs/engines (go test ./docs -update writes them); want\n%s", want)
	}
}

// engineTables returns what was found on each engine, and how long nothing took effect under each fault.
func engineTables(results []engines.Result) string {
	var found, pauses strings.Builder
	var faults []string // of all engines
	for _, r := range results {
		if r.Failover != nil {
			for _, f := range r.Failover.Faults {
				if !slices.Contains(faults, f.Name) {
					faults = append(faults, f.Name)
				}
			}
		}
	}
	found.WriteString("| Engine | Servers | Conformance | Rows | Lost | Twice | Epochs with two owners | Date |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	pauses.WriteString("| Seconds without a row: of any queue / of one | " + strings.Join(faults, " | ") + " |\n" +
		strings.Repeat("|---", 1+len(faults)) + "|\n")
	for _, r := range results {
		conformance, figures, servers, date := "", " |  |  | ", "", ""
		if c := r.Conformance; c != nil {
			conformance, date = fmt.Sprintf("%d of %d", c.Passed, c.Passed+c.Failed), c.Date
		}
		if f := r.Failover; f != nil {
			servers, figures = f.Servers, fmt.Sprintf("%d | %d | %d | %d", f.Rows, f.Lost, f.Twice, f.TwoOwners)
			if date == "" || f.Date < date {
				date = f.Date // the older of the two
			}
			fmt.Fprintf(&pauses, "| %s, %s |", r.Engine, f.Servers)
			for _, name := range faults {
				fmt.Fprintf(&pauses, " %s |", pause(f.Faults, name))
			}
			pauses.WriteString("\n")
		}
		fmt.Fprintf(&found, "| %s | %s | %s | %s | %s |\n", r.Engine, servers, conformance, figures, date)
	}
	return found.String() + "\n" + pauses.String()
}

// pause returns how long nothing took effect under a fault, or nothing if it was not played.
func pause(faults []engines.Fault, name string) string {
	for _, f := range faults {
		if f.Name == name {
			return fmt.Sprintf("%.1f / %.1f", f.All, f.Queue)
		}
	}
	return ""
}

func TestEngineTablesSayWhatIsMissing(t *testing.T) {
	got := engineTables([]engines.Result{
		{Engine: "A 1", Conformance: &engines.Conformance{Date: "2026-02-02", Passed: 3, Failed: 1}},
		{Engine: "B 2", Failover: &engines.Failover{
			Date: "2026-01-01", Servers: "two", Rows: 9, Twice: 1, TwoOwners: 2, Faults: []engines.Fault{{Name: "kill", Queue: 2.5}},
		}},
	})
	for _, want := range []string{
		"| A 1 |  | 3 of 4 |  |  |  |  | 2026-02-02 |\n", "| B 2 | two |  | 9 | 0 | 1 | 2 | 2026-01-01 |\n", "| B 2, two | 0.0 / 2.5 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
