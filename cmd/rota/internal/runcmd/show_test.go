package runcmd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// node returns a run whose id is its task type.
func node(name, state, why string) runs.Run {
	return runs.Run{ID: name, TaskType: name, State: state, Message: why}
}

// A diamond is drawn once, whatever the order of the rows, and each run is below the last of its upstreams.
func TestRunTreeOfADiamond(t *testing.T) {
	t.Parallel()
	g := ops.RunGraph{
		Runs: []runs.Run{
			node("predict", "DEPENDENT_FAILED", "conditional FAILED: no such table"), node("prior", "SUCCESS", ""),
			node("extract", "SUCCESS", ""), node("conditional", "FAILED", "no such table"), node("notify", "WAITING", ""),
		},
		Deps: []runs.Dep{
			{Run: "notify", Upstream: "predict", Rule: "FINISHED"},
			{Run: "predict", Upstream: "prior", Rule: "SUCCESS"},
			{Run: "predict", Upstream: "conditional", Rule: "SUCCESS"},
			{Run: "prior", Upstream: "extract", Rule: "SUCCESS"},
			{Run: "conditional", Upstream: "extract", Rule: "SUCCESS"},
		},
	}
	got := runTreeText(cli.Screen{Width: 200}, g, "predict")
	want := `
   TASK             STATE             RUN          AFTER               REASON
   extract          SUCCESS           extract      -
   ├─ prior         SUCCESS           prior        extract
   └─ conditional   FAILED            conditional  extract             no such table
 >    └─ predict    DEPENDENT_FAILED  predict      prior, conditional  conditional FAILED: no such table
         └─ notify  WAITING           notify       predict (FINISHED)`
	if got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
}

// Rows that were edited by hand may have a cycle; drawing it ends.
func TestRunTreeOfACycle(t *testing.T) {
	t.Parallel()
	g := ops.RunGraph{
		Runs: []runs.Run{node("a", "WAITING", ""), node("b", "WAITING", "")},
		Deps: []runs.Dep{{Run: "a", Upstream: "b", Rule: "SUCCESS"}, {Run: "b", Upstream: "a", Rule: "SUCCESS"}},
	}
	if got := runTreeText(cli.Screen{}, g, "a"); strings.Count(got, "\n") != 2 {
		t.Error(got)
	}
}

// The largest graph that center returns can be drawn.
func TestRunTreeOfManyRuns(t *testing.T) {
	t.Parallel()
	g := ops.RunGraph{Runs: []runs.Run{node("root", "SUCCESS", "")}}
	for i := range 1_000 {
		name := fmt.Sprint(i)
		g.Runs = append(g.Runs, node(name, "WAITING", ""))
		g.Deps = append(g.Deps, runs.Dep{Run: name, Upstream: "root", Rule: "SUCCESS"})
	}
	if got := runTreeText(cli.Screen{Width: 80}, g, "root"); strings.Count(got, "\n") != 1_001 {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
}

func longRun() runDetails {
	r := runs.Record{Run: runs.Run{
		ID: "01a1ff8a-c6d9-7620-bfda-be0b194fb52a", TaskType: "conditional-probability", OwnSign: "BASE", Key: strings.Repeat("k", 60) + "/2026-11-21T02:00:00Z",
		Trigger: "nightly", State: runs.Running, Message: strings.Repeat("no such\ntable ", 20), Params: strings.Repeat("{} ", 50),
		ScheduledAt: noon, StartedAt: noon, DeadlineAt: noon.Add(time.Hour), ItemsDone: 123_456_789, ItemsFailed: 3,
	}, QueuesPending: 4, QueuesDone: 5, QueuesFailed: 1, Now: noon.Add(185 * time.Second)}
	upstream := node(strings.Repeat("long-name", 4), "SUCCESS", "")
	return runDetails{ops.RunDetails{
		Run: r, Blocker: "no live worker serves conditional-probability",
		Queues: []runs.Queue{{QueueID: "2", State: "DONE", Server: "web-1.example.org:4711:1a2b3c4d"}, {QueueID: "10", State: "FAILED", LastError: r.Message}, {QueueID: "1", State: "DONE"}},
		Graph:  ops.RunGraph{Runs: []runs.Run{upstream, r.Run}, Deps: []runs.Dep{{Run: r.ID, Upstream: upstream.ID, Rule: "SUCCESS"}}},
	}}
}

// A run fits the terminal, and its failed queues come first.
func TestRunFitsATerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{80, 120, 200} {
		got := longRun().text(cli.Screen{Width: width, Height: 24, Color: true})
		if n := text.LongestLineLen(got); n > width {
			t.Errorf("%d characters on a terminal of %d:\n%s", n, width, got)
		}
		for _, want := range []string{"01a1ff8a-c6d9-7620-bfda-be0b194fb52a", "by trigger nightly", "no such table", "5 of 10 queues, 1 failed", "> └─ conditional"} {
			if !strings.Contains(got, want) {
				t.Errorf("%d: no %q in\n%s", width, want, got)
			}
		}
	}
	got := longRun().text(cli.Screen{})
	if failed, two := strings.Index(got, "\n 10 "), strings.Index(got, "\n 2 "); failed < 0 || two < failed || strings.Contains(got, "\x1b") {
		t.Errorf("queue 10 has failed and should come before queue 2, without colours:\n%s", got)
	}
}
