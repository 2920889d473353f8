package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/testdb"
)

const march = "run backfill extract --from 2025-03-28 --to 2025-04-01" // days in Berlin, around a clock change

// The commands start, show and control a backfill.
func TestCommandsStartShowAndControlABackfill(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		extract, _ := s.runs()
		s.must(s.c.Engine().Runs.Cancel(t.Context(), extract, "test"))
		s.wantOutput(march+" --dry-run", `(?s)2025-03-28T01:00:00Z +MAKE +- .*2025-03-29T01:00:00Z .*2025-03-30T01:00:00Z .*2025-03-31T00:00:00Z .*\na backfill of extract\$BASE: would be started\n4 slots: 4 to make, 0 to rerun, 0 to keep\. `)
		s.wantOutput(march+" --dry-run --reverse -o csv", `^object,result,scheduled_at,run_id,state,message,backfill_id,action\na backfill of extract\$BASE,would be started,2025-03-31T00:00:00Z,,,,,MAKE\n`)
		if n := count(t, s.c.DB(), "schedule_backfill"); n != 0 {
			t.Fatalf("a dry run has started %d backfills", n)
		}
		id := strings.TrimSpace(s.run(march))
		beside := "runs_open runs_success runs_failed runs_cancelled dependants_open dependants_failed"
		s.lists("run backfill list", id+` +extract +RUNNING +0/4 +0 +0 +2025-03-27T23:00:00Z +2025-03-31T22:00:00Z`, "schedule_backfill", 1, beside)

		s.serve("extract", web3)
		s.sweep("extract", web3, "0", "1", "2", "3")
		s.tick("extract")
		s.wantOutput("run backfill show extract", `(?s)^ backfill `+id+` of extract\$BASE\n RUNNING, started .* ago by `+regexp.QuoteMeta(cli.Actor())+
			`\n slots of trigger nightly \(0 0 2 \* \* \? Europe/Berlin\) from 2025-03-27T23:00:00Z to 2025-03-31T22:00:00Z, parallel 1, priority -1\n`+
			` 4 slots: 1 made, 0 kept, 3 left; runs: 0 open, 1 succeeded, 0 failed, 0 cancelled; dependants: 1 open, 0 failed or cancelled\n$`)
		s.lists("run list extract --backfill "+id, `\S+ +extract +SUCCESS +4/4`, "schedule_run", 1, runsBeside)
		s.wantOutput("run show extract", `by trigger nightly, for 2025-03-28T01:00:00Z, in backfill `+id+`, priority -1`)

		s.wantOutput("run backfill pause extract", `^backfill `+id+` \(extract\): paused; the runs that it has made go on\n$`)
		s.wantOutput("run backfill list", ` PAUSED +1/4`)
		s.wantOutput("run backfill resume "+id, `: resumed\n$`)
		s.wantOutput("run backfill cancel "+id, `: cancelled\n$`)
		s.wantOutput("run backfill list --state CANCELLED", ` 1/4 .* 3 of 4 slots were left, and 1 run was open`)
		s.wantError(1, "the backfill is in the wrong state: it is CANCELLED", "run backfill pause extract --dry-run")
		s.wantOutput(march+" --dry-run", `4 slots: 3 to make, 0 to rerun, 1 to keep\.`)
		if n := count(t, s.c.DB(), "schedule_event WHERE kind = 'RUN' AND reason LIKE 'backfill %' AND actor = '"+cli.Actor()+"'"); n != 4 {
			t.Errorf("%d events of what was done to the backfill, want 4", n)
		}
	})
}

// JSON and CSV have all slots and queues of a backfill.
func TestBackfillShowJSON(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		extract, _ := s.runs()
		s.must(s.c.Engine().Runs.Cancel(t.Context(), extract, "test"))
		id := strings.TrimSpace(s.run(march + " --no-dependants --reverse"))
		s.serve("extract", web3)
		s.sweep("extract", web3, "0", "1", "2")
		var shown struct {
			Backfill      map[string]any
			Slots, Queues []map[string]any
		}
		s.must(json.Unmarshal([]byte(s.run("run backfill show extract -o json")), &shown))
		if b := shown.Backfill; b["backfill_id"] != id || b["dependants"] != false || b["newest_first"] != true || b["ended_at"] != nil || b["runs_open"] != 1.0 {
			t.Errorf("%v", b)
		}
		if len(shown.Slots) != 4 || len(shown.Queues) != 4 || shown.Slots[3]["state"] != "RUNNING" || shown.Slots[0]["run_id"] != "" {
			t.Errorf("slots %v, queues %v", shown.Slots, shown.Queues)
		}
		got := s.run("run backfill show extract -o csv")
		run := shown.Slots[3]["run_id"].(string)
		want := "scheduled_at,run_id,run_state,queue_id,queue_state\n2025-03-28T01:00:00Z,,,,\n2025-03-29T01:00:00Z,,,,\n2025-03-30T01:00:00Z,,,,\n"
		for queue, state := range []string{"DONE", "DONE", "DONE", "PENDING"} {
			want += fmt.Sprintf("2025-03-31T00:00:00Z,%s,RUNNING,%d,%s\n", run, queue, state)
		}
		if got != want {
			t.Errorf("CSV:\n%swant\n%s", got, want)
		}
	})
}

func TestBackfillRefusesWrongArguments(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.runs()
		for args, want := range map[string]string{
			"run backfill extract":                                                "from is missing",
			"run backfill extract --from monday":                                  "from (monday) must be a day, such as",
			"run backfill extract --from 2025-01-01 --to 1":                       "to (1) must be a day, such as",
			"run backfill extract --from 2025-01-01 --parallel 0":                 "parallel (0) must be at least 1",
			"run backfill extract --from 2025-01-01 --parallel 101":               "parallel (101) must be from 1 to 100",
			"run backfill extract --from 2999-01-01":                              "must be before to",
			"run backfill extract --from 2025-01-01 --to 2999-01-01":              "must not be in the future",
			"run backfill extract --from 1990-01-01 --to 2025-01-01":              "no backfill is possible: the range has 12784 slots; a backfill has at most 10000",
			"run backfill idle --from 2025-01-01":                                 "backfill idle: no backfill is possible: the task type has no trigger",
			"run backfill idle --from 2025-01-01 --trigger nightly":               "trigger nightly fires extract",
			"run backfill extract report --from 2025-01-01":                       "unexpected argument",
			"run backfill extract --from 2025-01-01 --trigger nightly --to 2024x": "to (2024x) must be a day",
		} {
			s.wantError(cli.ExitUsage, want, args)
		}
		s.wantError(cli.ExitFailed, "unknown trigger", "run backfill extract --from 2025-01-01 --trigger nope")
		s.wantError(cli.ExitFailed, "unknown task type", "run backfill nope --from 2025-01-01")
		s.wantError(cli.ExitFailed, "nope: unknown backfill (see rota run backfill list)", "run backfill show nope")
		s.wantError(cli.ExitFailed, "unknown backfill", "run list --backfill nope")
	})
}
