package manager_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// reader is a dealer that cannot work queues with totals of their own, because its cursors are in a data database.
type reader struct{ idle }

func (reader) Cursor(int) string { return "" }

// elsewhere opens the data database of a reader, and returns its settings.
func (cl *cluster) elsewhere() manager.Settings {
	cl.Helper()
	if _, err := cl.c.FenceIn("elsewhere", sqlite.URL("sqlite::memory:")); err != nil {
		cl.Fatal(err)
	}
	return manager.Settings{Queues: 2, Database: "elsewhere"}
}

// wantRefusal checks that the doctor reports a worker that does not serve the task type, with the reason.
func (cl *cluster) wantRefusal(reason string) {
	cl.Helper()
	findings, err := doctor.Diagnose(cl.Context(), ops.New(cl.c), "settle")
	if err != nil {
		cl.Fatal(err)
	}
	for _, f := range findings {
		if f.Kind == condition.Refused.Name {
			if f.Status != condition.Problem || !strings.Contains(f.Text, reason) {
				cl.Errorf("the finding is %+v, want a problem with %q", f, reason)
			}
			return
		}
	}
	cl.Errorf("no finding says that a worker does not serve the task type: %+v", findings)
}

// wantNoRefusal checks that the doctor does not report a worker that serves the task type again.
func (cl *cluster) wantNoRefusal() {
	cl.Helper()
	findings, err := doctor.Diagnose(cl.Context(), ops.New(cl.c), "settle")
	if err != nil {
		cl.Fatal(err)
	}
	for _, f := range findings {
		if f.Kind == condition.Refused.Name {
			cl.Errorf("the finding %+v is still there after the change was undone", f)
		}
	}
}

// N3: a worker whose dealer cannot work the queues as they are divided does not begin, and a finding says why.
func TestUnsuitedWorkerDoesNotBegin(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		s := cl.elsewhere()
		splittable := s
		splittable.Splittable = true
		if _, err := ops.New(cl.c).Tasks().Define(cl.Context(), "settle", splittable); err != nil {
			cl.Fatal(err)
		}
		const reason = "splittable (true) needs cursors in the roster"
		w := cl.serveAlerted(alerts, reader{}, s)
		time.Sleep(2 * time.Minute)
		if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "task settle is joining") {
			cl.Errorf("Ready returned %v, want that the task is joining", err)
		}
		if kinds := alerts.kinds(); len(kinds) != 1 || kinds[0] != condition.Refused.Name {
			cl.Errorf("the alerts are %v, want one", kinds)
		}
		cl.wantRefusal(reason)
		cl.exec("UPDATE schedule_task_type SET splittable = FALSE, version = version + 1")
		time.Sleep(time.Minute)
		if err := w.Ready(); err != nil {
			cl.Errorf("Ready returned %v after the change was undone", err)
		}
		cl.wantNoRefusal()
	})
}

// A process that waits applies what it states once. What an operator changes meanwhile stays.
func TestWaitingWorkerAppliesOnce(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := cl.elsewhere()
		splittable := s
		splittable.Splittable = true
		if _, err := ops.New(cl.c).Tasks().Define(cl.Context(), "settle", splittable); err != nil {
			cl.Fatal(err)
		}
		s.FetchNumber = 70
		m, err := manager.New(cl.c, manager.Config{ApplySettings: true, Logger: cl.logger()}, manager.Serve("settle", reader{}, s))
		if err != nil {
			cl.Fatal(err)
		}
		w := cl.run(m)
		time.Sleep(time.Minute)
		var fetched int
		if cl.scan("SELECT fetch_number FROM schedule_task_type", &fetched); fetched != 70 {
			cl.Errorf("fetch_number is %d, want what the program states", fetched)
		}
		cl.exec("UPDATE schedule_task_type SET fetch_number = 80, version = version + 1")
		time.Sleep(time.Minute)
		cl.exec("UPDATE schedule_task_type SET splittable = FALSE, version = version + 1")
		time.Sleep(time.Minute)
		if cl.scan("SELECT fetch_number FROM schedule_task_type", &fetched); fetched != 80 {
			cl.Errorf("fetch_number is %d, want what the operator has written", fetched)
		}
		if err := w.Ready(); err != nil {
			cl.Errorf("Ready returned %v after the change was undone", err)
		}
	})
}

// A program that cannot work by what it states itself ends at once.
func TestAProgramThatContradictsItselfEnds(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := cl.elsewhere()
		s.Splittable = true
		w := cl.serveAlerted(new(alertLog), reader{}, s)
		<-w.done
		if w.err == nil || !strings.Contains(w.err.Error(), "splittable (true) needs cursors in the roster") {
			cl.Errorf("the worker ended with %v, want an error about splittable", w.err)
		}
	})
}

// N3: a worker that has lost its row registers again only if its dealer can work the queues that it finds.
func TestUnsuitedWorkerDoesNotReturn(t *testing.T) {
	for name, change := range map[string]struct{ set, back, reason string }{
		"splits": {"splittable = TRUE", "splittable = FALSE", "needs cursors in the roster"},
		"mode":   {"mode = 'RUN'", "mode = 'CONTINUOUS'", "mode was CONTINUOUS and is RUN"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(cl *cluster) {
				cl.serveAlerted(new(alertLog), reader{}, cl.elsewhere())
				time.Sleep(5 * time.Second)
				cl.exec("UPDATE schedule_task_type SET " + change.set + ", version = version + 1")
				cl.exec("DELETE FROM schedule_server")
				time.Sleep(time.Minute)
				var servers int
				if cl.scan("SELECT COUNT(*) FROM schedule_server", &servers); servers != 0 {
					cl.Errorf("%d servers are registered, want none", servers)
				}
				cl.wantRefusal(change.reason)
				cl.exec("UPDATE schedule_task_type SET " + change.back + ", version = version + 1")
				time.Sleep(time.Minute)
				if cl.scan("SELECT COUNT(*) FROM schedule_server", &servers); servers != 1 {
					cl.Errorf("%d servers are registered after the change was undone, want 1", servers)
				}
				cl.wantNoRefusal()
			})
		})
	}
}
