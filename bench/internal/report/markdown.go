package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

func (r *Report) json() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	return append(text, '\n'), nil
}

// markdown returns the report for people. The goals come first, so that a reader of one page sees them.
func (r *Report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Rota: benchmarks\n\n%s, %s; %s/%s, %d cores, %s, %s.\n", r.Started.UTC().Format(time.DateTime+" MST"),
		r.Took.Round(time.Second), r.Machine.OS, r.Machine.Arch, r.Machine.Cores, r.Machine.CPU, r.Machine.Go)
	for _, d := range r.Machine.Databases {
		fmt.Fprintf(&b, "%s.\n", d)
	}
	if pace := r.Machine.Pace; len(pace) > 0 {
		fmt.Fprintf(&b, "Pace of the machine: %d to %d ms for the same computation.\n",
			slices.Min(pace).Milliseconds(), slices.Max(pace).Milliseconds())
	}
	b.WriteString("bench/README.md explains each figure and its limits.\n")
	if r.Short {
		b.WriteString("\n**Short form: the sizes are so small that the figures mean nothing.**\n")
	}
	goals := Table{Columns: []string{"goal", "want", "got", "outcome"}}
	for _, p := range r.Parts {
		for _, g := range p.Goals {
			goals.Add(p.Name+": "+g.What, g.Want, g.Got, g.Outcome)
		}
	}
	fmt.Fprintf(&b, "\n## Goals\n\n%s", goals.markdown())
	for _, p := range r.Parts {
		b.WriteString(p.markdown())
	}
	return b.String()
}

func (p Part) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n%s\n", p.Name, p.About)
	for _, t := range p.Tables {
		fmt.Fprintf(&b, "\n### %s\n\n%s", t.Title, t.markdown())
		if t.Note != "" {
			fmt.Fprintf(&b, "\n%s\n", t.Note)
		}
	}
	for _, plot := range p.Plots {
		fmt.Fprintf(&b, "\n![%s](%s)\n", plot.Title, plot.File)
	}
	return b.String()
}

func (t Table) markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("| " + strings.ReplaceAll(strings.Join(cells, "\x00"), "|", `\|`) + " |\n")
	}
	line(t.Columns)
	b.WriteString(strings.Repeat("|---", len(t.Columns)) + "|\n")
	for _, row := range t.Rows {
		line(row)
	}
	return strings.ReplaceAll(b.String(), "\x00", " | ")
}
