package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/runs"
)

// graphOfSix defines task types whose runs are a graph with a join, submits a run of the first one with a name, and
// returns the ids of the runs by task type.
func (s *testRoster) graphOfSix(name string) map[string]string {
	s.Helper()
	for _, text := range []string{"load", "clean after load", "index after load", "report after clean index", "mail after report", "export after report"} {
		task, after, _ := strings.Cut(text, " after ")
		settings := center.Settings{Mode: center.ModeRun, Queues: 1}
		for up := range strings.FieldsSeq(after) {
			settings.After = append(settings.After, runs.After{Upstream: up})
		}
		s.define(task, settings)
	}
	root := strings.TrimSpace(s.run("run submit load --name " + name))
	list, _, err := s.c.Engine().Runs.Graph(s.Context(), root)
	s.must(err)
	ids := map[string]string{}
	for _, r := range list {
		ids[r.TaskType] = r.ID
	}
	return ids
}

// The commands show, wait for and change all runs of a graph.
func TestRunGraph(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		ids := s.graphOfSix("nightly")
		s.serve("load", web3)
		s.wantOutput("run show nightly --graph", `^ the graph of run \S+ \(\w+\), nightly\n 6 runs: 5 WAITING, 1 READY\n\n`)
		s.wantOutput("run show load --graph", `(?m)^ > load +READY .*\n   ├─ clean +WAITING .*load *\n   └─ index +WAITING .*load *\n      └─ report +WAITING .* clean, index *\n         ├─ export +WAITING .*\n         └─ mail +WAITING `)
		s.lists("run list --name nightly", ids["export"]+` +export +WAITING`, "schedule_run", 6, runsBeside)

		all := `(?s)`
		for _, task := range []string{"load", "clean", "index", "report", "export", "mail"} {
			all += `run ` + ids[task] + ` \(` + task + `\): PAST\n`
		}
		past := func(text string) string { return strings.ReplaceAll(all, "PAST", regexp.QuoteMeta(text)) }
		s.wantOutput("run pause mail --graph --dry-run", past("would be paused; its sweeps stop")+"All of them are changed in one transaction")
		s.wantOutput("run show load --graph", `6 runs: 5 WAITING, 1 READY`)
		s.wantOutput("run pause mail --graph", past("paused; its sweeps stop")+`$`)
		s.wantOutput("run pause mail --graph", past("nothing to do; it is PAUSED")+`$`)
		s.wantOutput("run show load --graph", `6 runs: 6 PAUSED`)
		s.wantOutput("run resume nightly --graph", past("resumed")+`$`)

		s.sweep("load", web3, "0")
		s.wantOutput("run cancel report --graph", `\(load\): nothing to do; it is SUCCESS\nrun \S+ \(clean\): cancelled\n`)
		s.wantError(1, "(load): 5 of 6 runs did not succeed: run "+ids["clean"]+" (clean) is CANCELLED: cancelled; run "+ids["index"]+" (index) is CANCELLED", "run wait load --graph")
		var done []map[string]any
		s.must(json.Unmarshal([]byte(s.run("run rerun load --graph -o json")), &done))
		if len(done) != 6 || done[0]["result"] != "nothing to do; it is SUCCESS" || done[5]["result"] != "reopened; the queues that were not done run again" {
			t.Errorf("what was done to the graph as JSON: %v", done)
		}
		for _, task := range []string{"clean", "index", "report", "mail", "export"} {
			s.serve(task, strings.Replace(web3, "3", "4", 1)+task[:1])
			s.sweep(task, strings.Replace(web3, "3", "4", 1)+task[:1], "0")
		}
		s.wantOutput("run wait nightly --graph", `^the graph of run \S+ \(\w+\) has ended: 6 runs: 6 SUCCESS\n$`)
	})
}

// A run that has not begun waits for another one.
func TestRunDepend(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	ids := s.graphOfSix("nightly")
	s.define("extra", center.Settings{Mode: center.ModeRun, Queues: 1})
	extra := strings.TrimSpace(s.run("run submit extra"))
	s.wantOutput("run depend report extra --dry-run", `^run `+ids["report"]+` \(report\): would be made to wait for run `+extra+` \(extra\)\n`)
	s.wantOutput("run depend report extra", `^run `+ids["report"]+` \(report\): made to wait for run `+extra+` \(extra\)\n$`)
	s.wantOutput("run show extra --graph", `7 runs: 5 WAITING, 2 READY`)
	s.wantError(1, "the runs would wait for each other forever: extra (run "+extra+") after mail (run "+ids["mail"]+") after report (run "+ids["report"]+") after extra (run "+extra+")", "run depend extra mail")
	s.wantError(1, "the runs would wait for each other forever: extra (run "+extra+") after mail (run "+ids["mail"]+") after report (run "+ids["report"]+") after extra (run "+extra+")", "run depend extra mail --dry-run")
	s.run("run cancel load")
	other := strings.TrimSpace(s.run("run submit extra"))
	s.wantOutput("run depend "+other+" load --dry-run", `run `+ids["load"]+` \(load\) is CANCELLED: the run fails at once\.`)
	s.run("run depend " + other + " load")
	s.wantOutput("run list --state DEPENDENT_FAILED", other+` +extra +DEPENDENT_FAILED`)
}
