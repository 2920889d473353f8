package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// The page of a run changes its graph: the question lists the runs, its form has a box to tick, and a person needs the
// right for each of the task types.
func TestGraphOfRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: allowed})
	s.define("load", center.Settings{Queues: 1, Mode: center.ModeRun})
	s.define("report", center.Settings{Queues: 1, Mode: center.ModeRun, After: []runs.After{{Upstream: "load"}}})
	id, _, err := ops.New(s.center).Runs().Submit(t.Context(), "load", runs.Submission{Key: "k", Name: "rebuild & more"})
	s.must(err)
	report := s.newest("report").ID

	page := s.get("/run?run=" + report)
	for _, want := range []string{
		`href="run-pause?graph=true&amp;run=` + report + `"`, `href="run-cancel?graph=true&amp;run=` + report + `"`,
		`href="runs?name=rebuild&#43;%26&#43;more"`,
	} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page of a run lacks %s:\n%s", want, page.body)
		}
	}
	if strings.Contains(page.body, "run-rerun?graph") || strings.Contains(page.body, "run-resume?graph") {
		t.Error("the page offers to rerun or resume a graph in which no run has failed or is paused")
	}
	if list := s.get("/runs?name=rebuild+%26+more"); strings.Contains(list.body, s.newest("nightly").ID) || !strings.Contains(list.body, id) {
		t.Errorf("the list of a name has other runs:\n%s", list.body)
	}

	form := values("run", report, "graph", "true")
	for _, r := range []*http.Request{request(http.MethodGet, "/run-pause?graph=true&run="+report), post("run-pause", form)} {
		asked := s.do(r)
		for _, want := range []string{"Pause 2 of 2 runs", id + " (load): would be paused", report + " (report): would be paused", `value="yes">Edit</button>`} {
			if asked.code != http.StatusOK || !strings.Contains(asked.body, want) {
				t.Fatalf("the question about a graph: status %d, lacks %q:\n%s", asked.code, want, asked.body)
			}
		}
	}
	form.Set("step", "show")
	edited := values("run", report, "graph", "true", "step", "show", "edit", "yes")
	if got := s.do(post("run-pause", edited)); !strings.Contains(got.body, `<input type="checkbox" name="graph" value="true" checked> Graph`) {
		t.Errorf("the form has no ticked box:\n%s", got.body)
	}
	if got := s.do(post("run-pause", values("run", report, "step", "show"))); strings.Contains(got.body, id) {
		t.Errorf("without the tick the question names the whole graph:\n%s", got.body)
	}

	denied := post("run-pause", confirmed(form))
	denied.Header.Set("Test-Actor", "bob:operate/report")
	if got := s.do(denied); got.code != http.StatusForbidden || s.run(report).Paused {
		t.Errorf("without the right for load: status %d, want 403", got.code)
	}
	if got := s.do(post("run-pause", confirmed(form))); got.code != http.StatusSeeOther || !s.run(id).Paused || !s.run(report).Paused {
		t.Fatalf("pause the graph: status %d, runs paused %t and %t", got.code, s.run(id).Paused, s.run(report).Paused)
	}
	if page := s.get("/run?run=" + report); !strings.Contains(page.body, "Resume the graph") {
		t.Errorf("the page does not offer to resume the graph:\n%s", page.body)
	}
	if got := s.do(request(http.MethodGet, "/run-pause?run="+report)); !strings.Contains(got.body, "Pause run") || strings.Contains(got.body, "<select") {
		t.Errorf("the question about a single run asks for more:\n%s", got.body)
	}
}
