package workercmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/metrics"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
	"github.com/dutyrota/rota/processor"
)

// errNo is what a dealer returns that fails.
var errNo = errors.New("no")

// sick is a dealer with a fault. Each queue has items for ever, which are named after their queue.
type sick struct {
	selects func(ctx context.Context, s processor.Selection) ([]string, error)
	execute func(ctx context.Context, items []string) error
}

// Select implements processor.TaskDealer.
func (d sick) Select(ctx context.Context, s processor.Selection) ([]string, error) {
	if d.selects != nil {
		return d.selects(ctx, s)
	}
	return page(s, s.Limit), nil
}

// Execute implements processor.TaskDealer.
func (d sick) Execute(ctx context.Context, items []string) error {
	if d.execute != nil {
		return d.execute(ctx, items)
	}
	return nil
}

// page returns n items of a queue.
func page(s processor.Selection, n int) (items []string) {
	for i := range n {
		items = append(items, fmt.Sprintf("%s-%d", s.Queue.ID, i))
	}
	return items
}

// sickKeyed has keys.
type sickKeyed struct{ sick }

// Key implements processor.Keyed.
func (sickKeyed) Key(item string) string { return item }

// sickOrdered has one order key for all queues.
type sickOrdered struct{ sickKeyed }

// OrderKey implements processor.Ordered.
func (sickOrdered) OrderKey(string) string { return "one" }

// sickDiscarder cannot discard.
type sickDiscarder struct{ sickKeyed }

// Discard implements processor.Discarder.
func (sickDiscarder) Discard(context.Context, string, error) error { return errNo }

// sickCounter counts no backlog, and finds strays.
type sickCounter struct {
	sick
	err error
}

// Backlog implements processor.Backlogger.
func (d sickCounter) Backlog(context.Context, processor.Selection) (processor.Backlog, error) {
	return processor.Backlog{}, d.err
}

// CountStrays implements processor.StrayCounter.
func (d sickCounter) CountStrays(context.Context, processor.Selection) (processor.Strays, error) {
	return processor.Strays{Items: 9, InQueues: 2}, nil
}

// unseen are the kinds that a process may see and that this test does not make, with the reason.
var unseen = map[string]string{
	"QUEUE_FAILING": "a bubble has no year that SQLite's views know, so the doctor takes the worker for overdue; TestReadersJudgeAlike has a worker that sees it",
	"CRASHES":       inRows, "RUN_OVERDUE": inRows, "RUN_STALLED": inRows, "SLOT_MISSED": inRows, "SLOT_SKIPPED": inRows, "TRIGGER_ERROR": inRows, "HISTORY_LOST": inRows,
	"KILLER": "it is over at once", "TRIGGER_LATE": "a worker that sees it fires the trigger",
	"LATE_REPLIES": "the link to the database must be slow; manager.TestWorkerWhoseRepliesComeLate has it", "REFUSED": "the process that sees it ends",
	"NO_HINTS": "what a worker cannot read is an outage of SQLite, too", "UNHINTED": "engine.TestUnhintedItemsRaiseAnAlert has it", "FENCE_WAIT": "SQLite has one transaction at a time", "UNREACHABLE": "a data database must be away",
}

// inRows is the reason of kinds that only rows can have without hours or a crash.
const inRows = "TestReadersJudgeAlike has a worker that sees it in rows"

// sickTasks returns a task type for each fault, by the name of its kind where there is one.
func sickTasks() []manager.Task {
	fails := func(context.Context, []string) error { return errNo }
	dead := func(context.Context, []string) error { return processor.Permanent(errNo) }
	hangs := func(ctx context.Context, _ []string) error {
		<-ctx.Done()
		return ctx.Err()
	}
	selects := func(choose func(s processor.Selection) []string) sick {
		return sick{selects: func(_ context.Context, s processor.Selection) ([]string, error) { return choose(s), nil }}
	}
	none := selects(func(processor.Selection) []string { return nil })
	bad := selects(func(processor.Selection) []string { return []string{"\x00"} })
	bad.execute = dead
	two := manager.Settings{Queues: 2, FetchNumber: 10, ExecuteNumber: 10}
	return []manager.Task{
		manager.Serve("healthy", none, two),
		manager.Serve("standby", none, manager.Settings{Queues: 1}),
		manager.Serve("failing", sick{execute: fails}, two),
		manager.Serve("outage", sickKeyed{sick{execute: fails}}, manager.Settings{Queues: 2, FetchNumber: 10, ExecuteNumber: 10, FailingAfter: 1_000_000}),
		manager.Serve("stalled", sick{execute: hangs}, two),
		manager.Serve("no_fetch", sick{}, manager.Settings{Queues: 2, RatePerSecond: 0.001}),
		manager.Serve("no_effect", sickKeyed{}, two),
		manager.Serve("limit", selects(func(s processor.Selection) []string { return page(s, 50*s.Limit) }), two),
		manager.Serve("bad_page", sickKeyed{selects(func(s processor.Selection) []string { return append(page(s, 2), page(s, 2)...) })}, two),
		manager.Serve("key_divided", sickOrdered{sickKeyed{sick{execute: fails}}}, two),
		manager.Serve("undiscarded", sickDiscarder{sickKeyed{sick{execute: dead}}}, two),
		manager.Serve("unrecorded", sickKeyed{bad}, two),
		manager.Serve("parked", sickKeyed{sick{execute: dead}}, two),
		manager.Serve("stray_items", sickCounter{none, nil}, two),
		manager.Serve("backlog", sickCounter{none, errNo}, two),
		manager.Serve("run_failed", sickKeyed{sick{execute: dead}}, manager.Settings{Queues: 2, FetchNumber: 10, Mode: center.ModeRun, Every: time.Minute}),
	}
}

// A process sees what the doctor finds: its conditions, rota_conditions and /readyz name the same kinds, each with the same
// status.
func TestProcessJudgesAsTheDoctor(t *testing.T) {
	t.Parallel()
	racetest.Defer(t)
	synctest.Test(t, func(t *testing.T) {
		c, err := center.Open(t.Context(), sqlite.URL("sqlite::memory:"), center.Options{})
		must(t, err)
		none := sick{selects: func(context.Context, processor.Selection) ([]string, error) { return nil, nil }}
		_, _, stop := works(t, c, manager.Config{}, manager.Serve("unserved", none, manager.Settings{Queues: 1}))
		stop()
		m, mx, stop := works(t, c, manager.Config{WitnessDir: "/dev/null/none"}, sickTasks()...)
		_, _, stopOther := works(t, c, manager.Config{}, manager.Serve("standby", none, manager.Settings{Queues: 1}))
		time.Sleep(12 * time.Minute)
		synctest.Wait()
		found := compareJudgement(t, ops.New(c), m, mx)
		for _, k := range condition.Kinds() {
			if _, excused := unseen[k.Name]; k.Alert != condition.Silent && found[k.Name] == excused {
				t.Errorf("%s was seen: %t; a reason why not: %t", k.Name, found[k.Name], excused)
			}
		}
		stop()
		stopOther()
		must(t, c.Close())
	})
}

// works starts a worker, which stop ends.
func works(t *testing.T, c *center.Center, config manager.Config, tasks ...manager.Task) (m *manager.Manager, mx *metrics.Metrics, stop func()) {
	t.Helper()
	m, mx, err := metrics.NewManager(c, config, tasks...)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()
	time.Sleep(time.Minute)
	return m, mx, func() {
		cancel()
		must(t, <-ended)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// compareJudgement compares what a process and the doctor say, and returns the kinds.
func compareJudgement(t *testing.T, c *ops.Client, m *manager.Manager, mx *metrics.Metrics) map[string]bool {
	t.Helper()
	findings, err := doctor.Diagnose(t.Context(), c, "")
	must(t, err)
	want, kinds := map[string]bool{}, map[string]bool{}
	for _, f := range findings {
		if condition.KindOf(f.Kind).Alert != condition.Silent {
			want[f.TaskType+" "+f.Status+" "+f.Kind], kinds[f.Kind] = true, true
		}
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(mx)
	if diff := cmp.Diff(want, readConditions(t, registry)); diff != "" {
		t.Errorf("rota_conditions (-doctor +it):\n%s", diff)
	}
	ready := map[string]bool{}
	for kind := range strings.SplitSeq(seen(m.Conditions()), ", ") {
		ready[kind] = true
	}
	if diff := cmp.Diff(kinds, ready); diff != "" {
		t.Errorf("/readyz (-doctor +it):\n%s", diff)
	}
	return kinds
}

// readConditions returns what rota_conditions says that is not zero.
func readConditions(t *testing.T, registry *prometheus.Registry) map[string]bool {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	said := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != "rota_conditions" || m.GetGauge().GetValue() == 0 {
				continue
			}
			label := map[string]string{}
			for _, l := range m.GetLabel() {
				label[l.GetName()] = l.GetValue()
			}
			said[label["task_type"]+" "+label["status"]+" "+label["kind"]] = true
		}
	}
	return said
}
