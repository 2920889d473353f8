package centertest

import (
	"errors"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// registerOffering registers a server whose dealer offers capabilities, and which goes by a data database.
func (r serverSteps) registerOffering(name, database string, offers processor.Capabilities) error {
	r.Helper()
	_, err := r.c.Roster().Register(r.Context(), roster.ServerInfo{
		UUID: r.uuid(name), TaskType: r.task, Host: "host-" + name, PID: 1, JudgeDeadInterval: judgeDeadInterval,
		HeartbeatToken: "first", Database: database, Offers: offers,
	})
	r.tokens[name] = "first"
	return err
}

// set writes a setting of the task type as "rota task set" does.
func (r *taskType) set(name, value string) error {
	r.Helper()
	var s center.Settings
	r.must(s.Set(name, value))
	d, err := ops.New(r.c).Tasks().CompareGiven(r.Context(), r.task, s, []string{name})
	r.must(err)
	return ops.New(r.c).Tasks().Apply(r.Context(), d, "test")
}

// lastReason returns the reason of the last event of a kind.
func (r *taskType) lastReason(kind string) string {
	r.Helper()
	all := r.readColumn("SELECT reason FROM schedule_event WHERE task_type = '%s' AND kind = '%s' ORDER BY event_id", r.task, kind)
	return append([]string{""}, all...)[len(all)]
}

// wantNamed checks that an error names a server and gives a reason.
func (r serverSteps) wantNamed(what string, err error, name, reason string) {
	r.Helper()
	if err == nil || !strings.Contains(err.Error(), r.uuid(name)) || !strings.Contains(err.Error(), reason) {
		r.Errorf("%s: error %v, want one with %q that names %s", what, err, reason, r.uuid(name))
	}
}

// unsuited are dealers that cannot work queues with totals of their own.
var unsuited = map[string]struct {
	database string
	offers   processor.Capabilities
	reason   string
}{
	"cursors": {"orders", processor.Capabilities{Cursored: true}, "needs cursors in the roster"},
}

func testSuit(t *testing.T, c *center.Center) {
	for name, u := range unsuited {
		t.Run("N3 nothing splits what a dealer cannot work, "+name, func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: 2, Database: u.database})
			r.must(r.registerOffering("A", u.database, u.offers))
			r.wantNamed("splittable=true", r.set("splittable", "true"), "A", u.reason)
			// A hand edit is what no program has refused.
			r.exec("UPDATE schedule_task_type SET splittable = TRUE WHERE task_type = '%s'", r.task)
			r.rebalance("A")
			err := r.tryResize("0", 4)
			r.wantNamed("split", err, "A", u.reason)
			r.wantTotals("0/2 A", "1/2 A")
		})
		t.Run("N3 a request that a dealer rules out ends, "+name, func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: 2, Database: u.database})
			r.must(r.registerOffering("A", u.database, u.offers))
			r.rebalance("A")
			r.exec("UPDATE schedule_task_type SET splittable = TRUE WHERE task_type = '%s'", r.task)
			r.exec(`UPDATE schedule_task_running SET queue_changes = '{"0":4,"1":4}' WHERE task_type = '%s'`, r.task)
			r.finishChange("A", "0")
			r.rebalanceAlways("A")
			if r.wantTotals("0/2 A", "1/2 A"); r.changes() != "" {
				t.Errorf("the requests are %q, want none", r.changes())
			}
			if reason := r.lastReason("RESIZING"); !strings.Contains(reason, r.uuid("A")) || !strings.Contains(reason, u.reason) {
				t.Errorf("the event says %q, want the server and %q", reason, u.reason)
			}
		})
		t.Run("N3 an unsuited server does not register, "+name, func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: 2, Database: u.database, Splittable: true})
			refused := func(when string) {
				t.Helper()
				if err := r.registerOffering("B", u.database, u.offers); !errors.Is(err, roster.ErrUnsuited) || !strings.Contains(err.Error(), u.reason) {
					t.Errorf("%s: error %v, want ErrUnsuited with %q", when, err, u.reason)
				}
			}
			refused("splittable is set")
			r.must(r.registerOffering("A", u.database, processor.Capabilities{Keyed: true}))
			r.rebalance("A")
			r.resize("0", 4)
			r.finishChange("A", "0")
			r.must(r.set("splittable", "false"))
			refused("splittable is not set any more, and queue 0 was split")
			r.wantTotals("0/4 A", "1/2 A", "2/4 A")
		})
	}
	t.Run("N1 cursors in a data database keep the number", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2, Database: "orders"})
		r.must(r.registerOffering("A", "orders", processor.Capabilities{Cursored: true}))
		r.rebalance("A")
		r.wantNamed("queues=3", r.set("queues", "3"), "A", "has its cursors in a data database")
		r.exec(`UPDATE schedule_task_running SET queue_changes = '{"all":3}' WHERE task_type = '%s'`, r.task)
		r.drainAll("A")
		r.wantTotals("0/2 A", "1/2 A")
		r.must(c.Roster().Server(r.task, r.uuid("A")).Leave(t.Context(), nil, roster.Reservation{}))
		r.must(r.set("queues", "3"))
	})
	t.Run("N3 no setting is written that a server of any environment rejects", func(t *testing.T) {
		r := newFixture(t, c, center.Settings{Queues: 2})
		r.must(r.registerOffering("A", "", processor.Capabilities{Keyed: true, Cursored: true}))
		r.must(r.registerOffering("B", "", processor.Capabilities{}))
		r.exec("UPDATE schedule_server SET own_sign = 'elsewhere' WHERE uuid = '%s'", r.uuid("A"))
		r.wantNamed("processor_type", r.set("processor_type", "NOTSLEEP"), "A", "must be SLEEP for a dealer that is Cursored")
		r.must(r.set("processor_type", "SLEEP"))
		r.wantNamed("mode", r.set("mode", "RUN"), "A", "takes effect when the worker starts again")
		r.must(r.set("execute_number", "7"))
		s, err := ops.New(c).Tasks().Settings(t.Context(), r.task)
		if r.must(err); s.ExecuteNumber != 7 || s.QueueMaxInFlight != 0 || s.ProcessorType != center.ProcessorSleep {
			t.Errorf("the settings are %+v, want those before and execute_number 7", s)
		}
	})
}
