package main

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// A failed run is a problem of the doctor and in the list of task types until an operator acknowledges it.
func TestAckEndsTheProblemOfAFailedRun(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		extract, report := s.runs()
		s.wantError(1, "acknowledge the problems of report$BASE: there is nothing to acknowledge", "run ack report")
		s.wantError(1, "acknowledge the problems of report$BASE: there is nothing to acknowledge", "run ack report --dry-run")
		s.wantError(1, "ack run "+report+" (report): the run is in the wrong state: it is WAITING", "run ack "+report+" --dry-run")
		s.wantError(1, "neither a run nor a task type", "run ack nothing")
		s.run("run cancel extract") // no failure itself; its dependant has failed
		s.serve("report", "web3:3:00000004")
		s.wantOutput("task list", `(?m)^ report +IDLE .* RUN_FAILED +`)
		s.wantOutput("task list", `(?m)^ extract +UNSERVED .* UNSERVED +`)
		s.wantOutput("top --once", `(?m)^ report +IDLE .* RUN_FAILED +`)
		stdout, stderr, code := s.try("doctor report")
		want := "report: run " + report + ": DEPENDENT_FAILED at "
		if code != 1 || !strings.Contains(stdout, want) || !strings.Contains(stdout, "extract (run "+extract+") CANCELLED") || !strings.Contains(stdout, "rota run ack") {
			t.Errorf("exit code %d, stderr %q, want 1 and %q in stdout\n%s", code, stderr, want, stdout)
		}
		s.wantOutput("run ack report", `^report\$BASE: acknowledged 1 run, and missed or skipped slots of 0 triggers\n$`)
		s.wantOutput("task list", `(?m)^ report +IDLE .* none +`)
		s.wantOutput("run show report", `(?m)^ acknowledged by \S+@\S+ \S+ ago$`)
		if stdout, _, _ := s.try("doctor report"); strings.Contains(stdout, report) {
			t.Errorf("the doctor after the acknowledgement:\n%s", stdout)
		}
		s.wantError(1, "acknowledge run "+report+": report$BASE: there is nothing to acknowledge", "run ack "+report)
	})
}

// A trigger that has missed slots and skipped others is one trigger.
func TestAckCountsEachTriggerOnce(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.runs()
		s.exec("UPDATE schedule_trigger SET missed = 1, missed_at = '2020-01-01 00:00:00', skipped = 4, skipped_since = '2020-01-01 00:00:00'")
		s.wantOutput("run ack extract", `^extract\$BASE: acknowledged 0 runs, and missed or skipped slots of 1 trigger\n$`)
		s.wantError(1, "there is nothing to acknowledge", "run ack extract")
	})
}
