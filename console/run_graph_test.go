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

// The page of a run that has not begun makes it wait for another run. The form asks for that run, and what was shown is
// what is done, also if a newer run of its task type was made meanwhile.
func TestRunWaitsForAnother(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{Access: func(r *http.Request) (console.Actor, error) {
		a, err := allowed(r)
		if rights := r.Header.Get("Test-Actor"); rights != "" { // nothing but these
			a.May = func(right console.Right, task string) bool {
				return strings.Contains(rights+" ", string(right)+"/"+task+" ")
			}
		}
		return a, err
	}})
	s.define("load", center.Settings{Queues: 1, Mode: center.ModeRun})
	s.define("report", center.Settings{Queues: 1, Mode: center.ModeRun})
	submit := func(task string) string {
		s.Helper()
		id, _, err := ops.New(s.center).Runs().Submit(t.Context(), task, runs.Submission{})
		s.must(err)
		return id
	}
	load, report := submit("load"), submit("report")
	if page := s.get("/run?run=" + report); !strings.Contains(page.body, `href="run-depend?run=`+report+`"`) {
		t.Errorf("the page of a run lacks the button:\n%s", page.body)
	}
	asked := s.do(request(http.MethodGet, "/run-depend?run="+report))
	if !strings.Contains(asked.body, `<input name="upstream" value="" required>`) || strings.Contains(asked.body, `role="alert"`) {
		t.Errorf("the form does not ask for the other run:\n%s", asked.body)
	}
	form := s.formOf("run-depend?run=" + report)
	for upstream, want := range map[string]string{"nobody": "find run nobody", "": "the run to wait for is missing"} {
		form.Set("upstream", upstream)
		if got := s.do(post("run-depend", form)); got.code == http.StatusOK || !strings.Contains(got.body, want) || !strings.Contains(got.body, `name="upstream"`) {
			t.Errorf("upstream %q: status %d, want the form with %q:\n%s", upstream, got.code, want, got.body)
		}
	}
	form.Set("upstream", "load")
	shown := s.do(post("run-depend", form))
	for _, want := range []string{"It begins when the other run has succeeded, too.", "The other run " + load + " (load) is READY.", "Let run " + s.run(report).Key + " of report wait for run " + s.run(load).Key + " of load?", `name="upstream" value="` + load + `"`} {
		if shown.code != http.StatusOK || !strings.Contains(shown.body, want) {
			t.Errorf("the question: status %d, lacks %q:\n%s", shown.code, want, shown.body)
		}
	}
	newer := submit("load")
	form.Set("upstream", load) // as the form of the question has it
	for _, test := range []struct{ actor, upstream string }{
		{"bob:look/report look/load operate/load", load}, {"bob:look/report operate/report", load}, {"bob:look/report operate/report", "nobody"},
	} {
		denied := post("run-depend", confirmed(values("run", report, "upstream", test.upstream)))
		denied.Header.Set("Test-Actor", test.actor)
		if got := s.do(denied); got.code != http.StatusForbidden || strings.Contains(got.body, "nobody") {
			t.Errorf("%s: status %d, want 403: %s", test.actor, got.code, got.body)
		}
	}
	if got := s.do(post("run-depend", confirmed(form))); got.code != http.StatusSeeOther || s.run(report).State != runs.Waiting {
		t.Fatalf("status %d, the run is %s: %s", got.code, s.run(report).State, got.body)
	}
	if page := s.get("/run?run=" + report); !strings.Contains(page.body, load) || strings.Contains(page.body, newer) {
		t.Errorf("the run does not wait for the run that was shown:\n%s", page.body)
	}
}

// The page of the runs of one task type has only its problems.
func TestProblemsOfOneTaskType(t *testing.T) {
	t.Parallel()
	s := newSite(t, testdb.URL(t, testdb.SQLite), console.Options{})
	failed := `<a href="run?run=` + s.failedRun() + `">run</a>`
	for path, want := range map[string]bool{"/runs": true, "/runs?task=failing": true, "/runs?task=upstream": false} {
		if page := s.get(path); strings.Contains(page.body, failed) != want {
			t.Errorf("%s names the failed run: %t, want %t:\n%s", path, !want, want, page.body)
		}
	}
}
