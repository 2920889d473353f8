package manager_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/runs"
)

// ofKind returns the alerts of a kind.
func (a *alertLog) ofKind(kind condition.Kind) (texts []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.all {
		if one.Kind == kind.Name {
			texts = append(texts, one.Subject+": "+one.Text)
		}
	}
	return texts
}

// R19: the run of a key fails, and the run of another key succeeds before a server looks for problems.
func TestFailedRunAlertsBesideASuccess(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		c := &curable{keyed: keyed{store{items: map[int]bool{}, takes: 10 * time.Millisecond}}}
		c.put(40)
		alerts := new(alertLog)
		s := inRuns
		s.QueueMaxAttempts = 1
		cl.serveAlerted(alerts, c, s)
		failed := cl.submit("fileA")
		cl.wantRun(cl.ends(failed, time.Minute), runs.Failed, 37, 3)
		c.cured.Store(true)
		cl.wantRun(cl.ends(cl.submit("fileB"), 10*time.Second), runs.Success, 3, 0)
		time.Sleep(time.Minute)
		if texts := alerts.ofKind(condition.RunFailed); len(texts) != 1 || !strings.HasPrefix(texts[0], "run "+failed+": ") {
			cl.Fatalf("alerts %q, want one of run %s", texts, failed)
		}
	})
}

// R19: the servers together raise one alert for a failed run, until an operator acknowledges the run. The next failure raises another alert at once.
func TestFailedRunRaisesAlerts(t *testing.T) {
	racetest.Defer(t)
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		k := &keyed{store{items: map[int]bool{}, takes: 10 * time.Millisecond}}
		k.put(40)
		alerts := new(alertLog)
		s := inRuns
		s.QueueMaxAttempts = 1
		a := cl.serveAlerted(alerts, k, s)
		cl.serveAlerted(alerts, k, s)
		want := func(n int, when string) {
			cl.Helper()
			if texts := alerts.ofKind(condition.RunFailed); len(texts) != n {
				cl.Fatalf("%d alerts %s: %q, want %d", len(texts), when, texts, n)
			}
		}
		first := cl.submit("1")
		cl.wantRun(cl.ends(first, time.Minute), runs.Failed, 37, 3)
		time.Sleep(time.Minute)
		want(1, "a minute after the failure")
		if text := alerts.ofKind(condition.RunFailed)[0]; !strings.HasPrefix(text, "run "+first+": FAILED at ") || !strings.Contains(text, "queues failed") {
			cl.Fatalf("alert %q, want run %s with its cause", text, first)
		}
		if n := len(a.Conditions()); n != 1 {
			cl.Fatalf("the status has %d failed runs, want 1", n)
		}
		time.Sleep(time.Hour)
		want(1, "in the first hour")
		if n := cl.events("ALERT"); n != 1 {
			cl.Fatalf("%d events, want 1", n)
		}
		if err := cl.c.Engine().Runs.Ack(cl.Context(), first, "test"); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		want(1, "after the acknowledgement")
		if n := len(a.Conditions()); n != 0 {
			cl.Fatalf("the status has %d failed runs after the acknowledgement, want 0", n)
		}
		second := cl.submit("2")
		cl.wantRun(cl.ends(second, time.Minute), runs.Failed, 0, 3)
		time.Sleep(time.Minute)
		want(2, "a minute after the second failure")
		if err := cl.c.Engine().Runs.Ack(cl.Context(), second, "test"); err != nil {
			cl.Fatal(err)
		}
		cl.wantRun(cl.ends(cl.submit("3"), time.Minute), runs.Failed, 0, 3)
		time.Sleep(time.Minute)
		want(3, "a minute after the third failure, which is a new problem within the hour")
		if kinds := alerts.kinds(); slices.ContainsFunc(kinds, func(kind string) bool { return kind != condition.RunFailed.Name }) {
			cl.Fatalf("alerts %v, want only %s", kinds, condition.RunFailed.Name)
		}
	})
}
