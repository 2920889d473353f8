package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

const (
	web3       = "web3:3:00000003"
	runsBeside = "queues_pending queues_running queues_done queues_failed queues_cancelled"
)

// The commands show and change a run and its dependant.
func TestRuns(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		extract, report := s.runs()
		s.lists("run list", report+` +report +WAITING +- +0 +0 +\S+ ago +- +- +first`, "schedule_run", 2, runsBeside)
		s.lists("run list --state READY", extract+` +extract +READY +- +0`, "schedule_run", 1, runsBeside)
		s.lists("run list extract --limit 1", extract+` +extract +READY`, "schedule_run", 1, runsBeside)
		s.wantOutput("run show report", `(?m)^   extract +READY +`+extract+` +-`+"\n"+` > └─ report +WAITING +`+report+` +extract`)
		s.wantOutput("run show extract", `READY; no live worker serves extract, due .* ago\n submitted, key first, priority 0\n params p\n`)
		s.wantError(1, "is in the wrong state: it is READY", "run rerun "+extract)

		s.serve("extract", web3)
		s.sweep("extract", web3, "0", "1")
		s.lists("run list extract", extract+` +extract +RUNNING +2/4 +20 +0`, "schedule_run", 1, runsBeside)
		s.wantOutput("task list", `(?m)^ extract +RUNNING `)
		s.wantOutput("run show extract", `(?s) RUNNING, started .*, deadline in 24h.*2 of 4 queues, 20 items.* 2 +PENDING +- +0 .* 0 +DONE +web3:3:00000003 +1 +10`)
		s.wantOutput("run pause "+extract, `^run `+extract+` \(extract\): paused; its sweeps stop\n$`)
		s.wantOutput("run list extract", ` PAUSED +2/4`)
		s.wantOutput("run show extract", ` PAUSED; see rota run resume `+extract+`, started`)
		s.wantOutput("run resume extract", `: resumed\n$`)
		s.wantOutput("run cancel extract", `: cancelled\n$`)
		cause := `extract \(run ` + extract + `\) CANCELLED: cancelled: 2 of 4 queues were not done`
		s.wantOutput("run show report", `(?s)^ run `+report+` of report\$BASE\n DEPENDENT_FAILED, due .*, ended .*\n reason: `+cause)
		s.wantOutput("run list --state DEPENDENT_FAILED", ` report +DEPENDENT_FAILED .*`+cause)
		s.wantError(1, "rota: run "+report+" (report) is DEPENDENT_FAILED: extract (run "+extract+") CANCELLED", "run wait report")
		s.wantError(1, "is in the wrong state: it is CANCELLED", "run pause extract")
		s.wantError(1, "is in the wrong state: it is CANCELLED", "run cancel extract --dry-run")
		s.wantOutput("run rerun report --dry-run", `\nrun `+extract+` \(extract\) is CANCELLED: the run fails again at once.\n$`)
		s.wantError(1, "rerun run "+report+": it is DEPENDENT_FAILED again: extract (run "+extract+") CANCELLED", "run rerun report")

		s.wantOutput("run rerun extract", `: reopened; the queues that were not done run again\n$`)
		s.wantOutput("run list report", ` WAITING `)
		s.sweep("extract", web3, "2", "3")
		s.wantOutput("run wait extract", `^run `+extract+` \(extract\) is SUCCESS: 4 of 4 queues, 40 items, \S+\n$`)
		s.wantOutput("run list report", ` READY `)
		s.wantOutput("task list", `(?m)^ extract +IDLE `)
		if n := count(t, s.c.DB(), "schedule_event WHERE kind = 'RUN' AND actor = '"+cli.Actor()+"'"); n != 5 {
			t.Errorf("%d events of what was done to runs, want 5", n)
		}
	})
}

// The JSON of a run is one object whose names are columns. NULL is null.
func TestRunShowJSON(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		extract, report := s.runs()
		s.serve("extract", web3)
		s.sweep("extract", web3, "0")
		var shown struct {
			Run    map[string]any
			Queues []map[string]any
			Graph  struct{ Runs, Deps []map[string]any }
		}
		s.must(json.Unmarshal([]byte(s.run("run show extract -o json")), &shown))
		s.namesAreColumns("run show", shown.Run, "schedule_run", strings.Fields(runsBeside))
		s.namesAreColumns("run show", shown.Queues[0], "schedule_run_queue", nil)
		s.namesAreColumns("run show", shown.Graph.Runs[0], "schedule_run", nil)
		s.namesAreColumns("run show", shown.Graph.Deps[0], "schedule_run_dep", nil)
		if r := shown.Run; r["run_id"] != extract || r["items_done"] != 10.0 || r["queues_done"] != 1.0 || r["finished_at"] != nil || r["trigger_name"] != "" {
			t.Errorf("%v", r)
		}
		if _, found := shown.Run["finished_at"]; !found {
			t.Error("finished_at is left out")
		}
		if d := shown.Graph.Deps; len(shown.Graph.Runs) != 2 || len(d) != 1 || d[0]["run_id"] != report || d[0]["upstream_run_id"] != extract || d[0]["rule"] != "SUCCESS" {
			t.Errorf("%v", shown.Graph)
		}
		if got := s.run("run show extract -o csv"); !regexp.MustCompile(`^queue_id,state,(?s:.*)\n0,DONE,web3:3:00000003,`).MatchString(got) || strings.Count(got, "\n") != 5 {
			t.Errorf("CSV of its queues:\n%s", got)
		}
	})
}

// A run that waits for the end of an outage says so in each command that shows it (X5).
func TestRunThatWaits(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		extract, _ := s.runs()
		s.serve("extract", web3)
		const waits = "it waits: nothing has succeeded since 02:00, and 3 items are tried again (X5)"
		s.must(s.c.Engine().Sweeps.Save(t.Context(), s.claim("extract", web3, "2")[0], runs.Progress{Waits: new(waits)}))
		text := regexp.QuoteMeta(waits)
		s.wantOutput("run show extract", `(?s) RUNNING, .*\n reason: `+text+`\n.* 2 +RUNNING +web3:3:00000003 .* `+text+`\n`)
		s.wantOutput("run list extract", ` RUNNING +0/4 .*`+text)
		if out, _, _ := s.try("run wait extract --timeout 1ms"); !strings.Contains(out, "; "+strings.TrimPrefix(waits, "it ")) {
			t.Errorf("the wait says %q, want %s", out, waits)
		}
		var shown struct{ Run map[string]any }
		s.must(json.Unmarshal([]byte(s.run("run show extract -o json")), &shown))
		if shown.Run["message"] != waits {
			t.Errorf("the message in JSON is %q", shown.Run["message"])
		}
		long := time.Now().Add(-time.Hour).UTC().Format("2006-01-02 15:04:05")
		s.exec("UPDATE schedule_run SET started_at = '" + long + "', waiting_since = '" + long + "' WHERE run_id = '" + extract + "'")
		s.exec("UPDATE schedule_run_queue SET progress_at = '" + long + "' WHERE run_id = '" + extract + "'")
		if out, _, code := s.try("doctor"); code != 1 || !regexp.MustCompile(`run `+extract+`: it is RUNNING since \S+, and nothing of it has ended since \S+: `+text).MatchString(strings.Join(strings.Fields(out), " ")) {
			t.Errorf("exit code %d, the doctor says\n%s", code, out)
		}
	})
}

// rota item list --run lists the items that failed in a run, and run show has the first of them.
func TestFailedItemsOfARunAreListed(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		extract, _ := s.runs()
		s.serve("extract", web3)
		if got := s.run("item list --run extract -o json"); got != "[]\n" {
			t.Errorf("failed items before the run: %s", got)
		}
		for i, sw := range s.claim("extract", web3, "0", "1") {
			p := runs.Progress{ItemsDone: 10, ItemsFailed: 12}
			for n := range 12 {
				p.Failed = append(p.Failed, runs.ItemFailure{Key: fmt.Sprintf("%d-%d", i, n), Error: "no such\ncustomer", At: time.Now()})
			}
			if _, err := s.c.Engine().Sweeps.Fail(t.Context(), sw, p, "items failed: 12", true); err != nil {
				t.Fatal(err)
			}
		}
		s.lists("item list --run extract", `1 +1-11 +1 +\S+Z +no such customer$`, "schedule_run_item", 24, "")
		s.lists("item list --run "+extract+" --queue 1 --limit 3", `1 +1-2 +1 `, "schedule_run_item", 3, "")
		s.wantOutput("run show extract", `(?s) 0 +0-0 +1 .* 0 +0-9 +1 +\S+ +no such customer\n and 14 more failed: rota item list --run `+extract+`\n$`)
		var shown struct {
			Items []map[string]any `json:"failed_items"`
		}
		s.must(json.Unmarshal([]byte(s.run("run show extract -o json")), &shown))
		if len(shown.Items) != 10 {
			t.Fatalf("run show has %d failed items in JSON, want 10", len(shown.Items))
		}
		s.namesAreColumns("run show", shown.Items[0], "schedule_run_item", nil)
		s.wantError(2, "leave out TASK, --state and --order-key", "item list extract --run extract")
		s.wantError(2, "leave out TASK, --state and --order-key", "item list --run extract --state DEAD")
		s.wantError(1, "nope", "item list --run nope")
	})
}

func TestRunSubmit(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		extract, _ := s.runs()
		stdout, stderr, code := s.try("run submit extract --key first")
		if code != 0 || stdout != extract+"\n" || stderr != "rota: a run of key first exists already\n" {
			t.Errorf("an existing key: exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		s.wantOutput("run submit extract --key first --dry-run", `^run `+extract+` of extract\$BASE, which has the key already: would be left as it is, \w+\n$`)
		const traceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		id := strings.TrimSpace(s.run("run submit idle --after extract --key", "k'1", "--params", `{"a": 1}`, "--trace-parent", traceParent))
		r, err := ops.New(s.c).Runs().Get(t.Context(), id)
		if err != nil || r.State != runs.Waiting || r.Params != `{"a": 1}` || r.TraceParent != traceParent || r.Key != "k'1" {
			t.Errorf("%+v, %v", r, err)
		}
		if _, deps, err := ops.New(s.c).Runs().Graph(t.Context(), id); err != nil || !slices.Contains(deps, runs.Dep{Run: id, Upstream: extract, Rule: runs.RuleSuccess}) {
			t.Errorf("%v, %v", deps, err)
		}
		own := strings.TrimSpace(s.run("run submit report --key own --priority 5 --attempts 2 --not-before 2h --deadline 2090-01-01T00:00:00Z"))
		if r, err = ops.New(s.c).Runs().Get(t.Context(), own); err != nil || r.Priority != 5 || r.MaxAttempts != 2 || r.EndBefore.Year() != 2090 || r.NotBefore.Sub(r.CreatedAt).Round(time.Hour) != 2*time.Hour {
			t.Errorf("%+v, %v", r, err)
		}
		stdout, stderr, code = s.try("run wait idle --timeout 1ms")
		if want := "rota: run " + id + " (idle) is still WAITING after 1ms: not started\n"; code != 1 || stderr != want || !strings.Contains(stdout, "is WAITING: not started; waits for its upstreams\n") {
			t.Errorf("exit code %d, stdout %q, stderr %q, want %q", code, stdout, stderr, want)
		}
	})
}

// SIGINT ends the wait; the run continues.
func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	extract, _ := s.runs()
	wait := rota(context.WithoutCancel(t.Context()), s.dir, "run", "wait", "extract", "--database", s.url)
	var stderr strings.Builder
	wait.Stderr = &stderr
	out, err := wait.StdoutPipe()
	s.must(err)
	s.must(wait.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	s.must(err)
	s.must(wait.Process.Signal(os.Interrupt))
	_ = wait.Wait() // the test checks the exit code below
	if got := stderr.String(); wait.ProcessState.ExitCode() != 1 || got != "rota: wait for run "+extract+": interrupted; the run continues\n" {
		t.Errorf("exit code %d, stderr %q", wait.ProcessState.ExitCode(), got)
	}
	if r, err := ops.New(s.c).Runs().Get(t.Context(), extract); err != nil || r.State != runs.Ready {
		t.Errorf("%+v, %v", r, err)
	}
}

// A wait survives an outage of the database and reports it.
func TestWaitThroughAnOutage(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{testdb.Postgres, testdb.MySQL} {
		t.Run(kind, func(t *testing.T) {
			s := newTestRoster(t, testdb.URL(t, kind))
			s.runs()
			url, proxy := testdb.Through(t, s.url)
			wait := rota(context.WithoutCancel(t.Context()), s.dir, "run", "wait", "extract", "--database", url)
			out, err := wait.StdoutPipe()
			s.must(err)
			stderr, err := wait.StderrPipe()
			s.must(err)
			s.must(wait.Start())
			lines := bufio.NewReader(out)
			_, err = lines.ReadString('\n')
			s.must(err)
			proxy.Refuse(true)
			proxy.Cut()
			if line, err := bufio.NewReader(stderr).ReadString('\n'); err != nil || !strings.HasSuffix(line, "; trying again\n") {
				t.Errorf("%q, %v", line, err)
			}
			proxy.Refuse(false)
			s.serve("extract", web3)
			s.sweep("extract", web3, "0", "1", "2", "3")
			rest, err := io.ReadAll(lines)
			if err := errors.Join(err, wait.Wait()); err != nil || !strings.Contains(string(rest), "is SUCCESS: 4 of 4 queues") {
				t.Errorf("%v, stdout\n%s", err, rest)
			}
		})
	}
}

const sweptOrders = `database: URL
tasks:
  sweep:
    queues: 4
    mode: RUN
    execute_number: 10
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'NEW' AND {{mine id}} ORDER BY id LIMIT {{limit}}
        execute: UPDATE orders SET state = 'SETTLED', settled_by = {{run_key}}, times = times + 1 WHERE state = 'NEW' AND id IN ({{keys}})
        key: id
  broken: {queues: 2, mode: RUN, queue_max_attempts: 1, dealer: {sql: {
    select: "SELECT id FROM absent WHERE {{mine id}} LIMIT {{limit}}", execute_each: "DELETE FROM absent WHERE id = {{row.id}}"}}}
  report: {queues: 1, mode: RUN, after: [broken], dealer: {sql: {select: "SELECT id FROM absent LIMIT {{limit}}", execute_each: "DELETE FROM absent WHERE id = {{row.id}}"}}}
`

// A worker that starts later sweeps the run, and the wait ends with the run. If a run fails, so does its dependant, and
// both have the reason.
func TestWaitForAWorker(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		const orders = 100
		db, dir := openOrders(t, url, orders)
		writeFile(t, filepath.Join(dir, "rota.yaml"), strings.Replace(sweptOrders, "URL", url, 1))
		s := &testRoster{T: t, url: url, dir: dir}
		execute(t, db, "CREATE TABLE absent (id INTEGER)") // a worker refuses a table that is absent when it starts
		s.run("task apply")
		id := strings.TrimSpace(s.run("run submit sweep --key", "k'1"))
		wait := rota(context.WithoutCancel(t.Context()), dir, "run", "wait", "sweep")
		out, err := wait.StdoutPipe()
		s.must(err)
		s.must(wait.Start())
		lines := bufio.NewReader(out)
		if line, err := lines.ReadString('\n'); err != nil || line != "run "+id+" (sweep) is READY: not started; no live worker serves sweep\n" {
			t.Errorf("%q, %v", line, err)
		}
		p := startWorker(t, dir)
		rest, err := io.ReadAll(lines)
		s.must(err)
		if err := wait.Wait(); err != nil || !strings.HasSuffix(string(rest), "\n") || !strings.Contains(string(rest), "is SUCCESS: 4 of 4 queues, 100 items, ") || strings.Contains(string(rest), "\x1b") {
			t.Errorf("%v, stdout\n%s", err, rest)
		}
		if n := count(t, db, "orders WHERE settled_by = 'k''1' AND times = 1"); n != orders {
			t.Errorf("%d of %d orders were swept once, with the key of the run", n, orders)
		}

		execute(t, db, "DROP TABLE absent")
		stdout, stderr, code := s.try("run submit broken --wait")
		broken := strings.TrimSpace(stdout)
		if code != 1 || len(broken) != 36 || !regexp.MustCompile(`rota: run `+broken+` \(broken\) is FAILED: 2 of 2 queues failed, first queue .*absent`).MatchString(stderr) {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		eventually(t, "the dependant has failed", func() bool {
			return count(t, db, "schedule_run WHERE task_type = 'report' AND state = 'DEPENDENT_FAILED'") == 1
		})
		s.wantOutput("run show report", `reason: broken \(run `+broken+`\) FAILED: 2 of 2 queues failed`)
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}
