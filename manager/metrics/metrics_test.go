package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/console"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/manager/metrics"
	"github.com/dutyrota/rota/processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dealer finds ten items once. One of them fails.
type dealer struct{ found atomic.Bool }

// Select implements processor.TaskDealer.
func (d *dealer) Select(context.Context, processor.Selection) ([]string, error) {
	if d.found.Swap(true) {
		return nil, nil
	}
	return strings.Split("abcdefghij", ""), nil
}

// Execute implements processor.TaskDealer.
func (d *dealer) Execute(_ context.Context, items []string) error {
	if items[0] == "a" {
		return processor.Permanent(errors.New("no"))
	}
	return nil
}

// Key implements processor.Keyed.
func (d *dealer) Key(item string) string { return item }

// live runs a worker for a while in a bubble, and lets check collect its metrics.
func live(t *testing.T, task manager.Task, check func(*prometheus.Registry)) {
	t.Helper()
	liveFor(t, 9*time.Second, task, check)
}

func liveFor(t *testing.T, d time.Duration, task manager.Task, check func(*prometheus.Registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := center.Open(t.Context(), sqlite.URL("sqlite::memory:"), center.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var selects atomic.Int64
		m, x, err := metrics.NewManager(c, manager.Config{Hooks: []processor.Hooks{{
			Select: func(ctx context.Context, _ processor.Selection) (context.Context, func(int, error)) {
				return ctx, func(int, error) { selects.Add(1) }
			},
		}}}, task)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if selects.Load() == 0 {
				t.Error("the hooks of the program saw no select")
			}
		}()
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(x)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(d)
		check(registry)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestMetrics(t *testing.T) {
	live(t, manager.Serve("settle", &dealer{}, manager.Settings{Queues: 1, MaxInFlight: 3}), func(registry *prometheus.Registry) {
		want := `
# HELP rota_calls_in_flight Calls of Execute in flight.
# TYPE rota_calls_in_flight gauge
rota_calls_in_flight{own_sign="BASE",task_type="settle"} 0
# HELP rota_max_in_flight Calls of Execute that this process may have in flight, its share of max_in_flight; +Inf without a limit.
# TYPE rota_max_in_flight gauge
rota_max_in_flight{own_sign="BASE",task_type="settle"} 3
# HELP rota_items_total Items by result: done, failed, skipped (not started), dead.
# TYPE rota_items_total counter
rota_items_total{own_sign="BASE",result="dead",task_type="settle"} 1
rota_items_total{own_sign="BASE",result="done",task_type="settle"} 9
rota_items_total{own_sign="BASE",result="failed",task_type="settle"} 1
rota_items_total{own_sign="BASE",result="skipped",task_type="settle"} 0
# HELP rota_queues_owned Queues that this process owns.
# TYPE rota_queues_owned gauge
rota_queues_owned{own_sign="BASE",task_type="settle"} 1
# HELP rota_server_lease_valid 1 if the lease of the worker is valid, so that it may work its queues.
# TYPE rota_server_lease_valid gauge
rota_server_lease_valid{own_sign="BASE",task_type="settle"} 1
# HELP rota_queue_moves_total Queues that this process got or lost, by kind of move.
# TYPE rota_queue_moves_total counter
rota_queue_moves_total{kind="granted",own_sign="BASE",task_type="settle"} 1
`
		err := testutil.GatherAndCompare(registry, strings.NewReader(want),
			"rota_items_total", "rota_queues_owned", "rota_server_lease_valid", "rota_queue_moves_total", "rota_calls_in_flight", "rota_max_in_flight")
		if err != nil {
			t.Error(err)
		}
		if age := valuesOf(t, registry, "rota_heartbeat_age_seconds", "own_sign")["BASE"]; age < 0.1 || age > 2.1 { // heartbeats are 2 s apart, with jitter
			t.Errorf("the last heartbeat is %g s old, want 0.1 s to 2.1 s", age)
		}
		lint, err := testutil.GatherAndLint(registry)
		if err != nil || len(lint) > 0 {
			t.Errorf("Prometheus's conventions: %v, %v, want no problem and no error", lint, err)
		}
	})
}

// failer is a dealer whose selects all fail.
type failer struct{ dealer }

// Select implements processor.TaskDealer.
func (*failer) Select(context.Context, processor.Selection) ([]string, error) {
	return nil, errors.New("no such table")
}

// rota_failing_seconds is the age of the failures of a dealer that does nothing but fail, and 0 for any other dealer.
// A dealer counts as failing when nothing has succeeded for half a minute.
func TestMetricsOfAFailingDealer(t *testing.T) {
	for name, test := range map[string]struct {
		dealer      processor.TaskDealer[string]
		least, most float64
	}{"fails": {&failer{}, 38, 39}, "works": {&dealer{}, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			live(t, manager.Serve("settle", test.dealer, manager.Settings{Queues: 8}), func(registry *prometheus.Registry) {
				time.Sleep(30 * time.Second)
				if age := valuesOf(t, registry, "rota_failing_seconds", "own_sign")["BASE"]; age < test.least || age > test.most {
					t.Errorf("rota_failing_seconds is %g, want %g to %g", age, test.least, test.most)
				}
			})
		})
	}
}

// One of two queues fails, and with it the first run, which starts at once. No run has succeeded.
func TestMetricsOfRuns(t *testing.T) {
	half := processor.Each(func(_ context.Context, s processor.Selection) error {
		if s.Queue.Index == 0 {
			return processor.Permanent(errors.New("no"))
		}
		return nil
	})
	settings := manager.Settings{Queues: 2, Mode: center.ModeRun, Every: 5 * time.Second}
	live(t, manager.Serve("sweep", half, settings), func(registry *prometheus.Registry) {
		want := `
# HELP rota_queues_owned Queues that this process owns.
# TYPE rota_queues_owned gauge
rota_queues_owned{own_sign="BASE",task_type="sweep"} 2
# HELP rota_run_last_success_timestamp_seconds The slot of the newest successful run that is kept; 0 if there is none.
# TYPE rota_run_last_success_timestamp_seconds gauge
rota_run_last_success_timestamp_seconds{own_sign="BASE",task_type="sweep"} 0
# HELP rota_run_open 1 if a run of the task type is RUNNING.
# TYPE rota_run_open gauge
rota_run_open{own_sign="BASE",task_type="sweep"} 0
# HELP rota_runs_total Runs that this process has ended, by their last state.
# TYPE rota_runs_total counter
rota_runs_total{own_sign="BASE",state="FAILED",task_type="sweep"} 1
# HELP rota_sweeps_running Queues that this process sweeps.
# TYPE rota_sweeps_running gauge
rota_sweeps_running{own_sign="BASE",task_type="sweep"} 0
# HELP rota_trigger_next_fire_timestamp_seconds When the next trigger of the task type is due; 0 if there is none.
# TYPE rota_trigger_next_fire_timestamp_seconds gauge
rota_trigger_next_fire_timestamp_seconds{own_sign="BASE",task_type="sweep"} 9.4668481e+08
`
		err := testutil.GatherAndCompare(registry, strings.NewReader(want), "rota_queues_owned", "rota_run_last_success_timestamp_seconds",
			"rota_run_open", "rota_runs_total", "rota_sweeps_running", "rota_trigger_next_fire_timestamp_seconds")
		if err != nil {
			t.Error(err)
		}
		if lint, err := testutil.GatherAndLint(registry); err != nil || len(lint) > 0 {
			t.Errorf("Prometheus's conventions: %v, %v, want no problem and no error", lint, err)
		}
		sweeps := valuesOf(t, registry, "rota_sweep_duration_seconds", "result")
		if sweeps["done"] != 1 || sweeps["failed"] != 1 {
			t.Errorf("sweeps by result are %v, want 1 done and 1 failed", sweeps)
		}
	})
}

// A metric counts conditions by kind, also those of the roster (R19). It has each kind that alerts.
func TestMetricsCountConditionsByKind(t *testing.T) {
	failing := processor.Each(func(context.Context, processor.Selection) error { return processor.Permanent(errors.New("no")) })
	settings := manager.Settings{Queues: 1, Mode: center.ModeRun, Every: time.Minute}
	liveFor(t, 150*time.Second, manager.Serve("sweep", failing, settings), func(registry *prometheus.Registry) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got, want := map[string]float64{}, map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if labels := m.GetLabel(); f.GetName() == "rota_conditions" {
					got[labels[0].GetValue()+" "+labels[2].GetValue()] = m.GetGauge().GetValue() // by name: kind, own_sign, status, task_type
				}
			}
		}
		for _, k := range condition.Kinds() {
			if k.Alert != condition.Silent {
				want[k.Name+" "+k.Status] = 0
			}
		}
		want["RUN_FAILED PROBLEM"] = 1
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rota_conditions (-want +got):\n%s", diff)
		}
	})
}

// valuesOf returns the values of a gauge, or the numbers of samples of a histogram, by a label.
func valuesOf(t *testing.T, registry *prometheus.Registry, name, label string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == label {
					values[l.GetValue()] = m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return values
}

// The age of a run is in seconds.
func TestMetricsOfAnOpenRun(t *testing.T) {
	long := processor.Each(func(ctx context.Context, _ processor.Selection) error {
		select {
		case <-ctx.Done():
		case <-time.After(time.Hour):
		}
		return ctx.Err()
	})
	settings := manager.Settings{Queues: 1, Mode: center.ModeRun, Every: 5 * time.Second}
	liveFor(t, time.Minute, manager.Serve("sweep", long, settings), func(registry *prometheus.Registry) {
		if age := valuesOf(t, registry, "rota_run_age_seconds", "own_sign")["BASE"]; age < 30 || age > 60 {
			t.Errorf("the run is %v s old after a minute, want 30 to 60", age)
		}
	})
}

// Heartbeats and moves that a short session does not show.
func TestObserved(t *testing.T) { synctest.Test(t, testObserved) }

func testObserved(t *testing.T) {
	x := metrics.New()
	x.Heartbeat(time.Millisecond, nil)
	x.Heartbeat(time.Second, errors.New("no"))
	released := time.Now()
	x.Moved(manager.Move{
		TaskType: "settle", Kind: manager.MoveReleased, Draining: released.Add(-300 * time.Millisecond), Released: released,
	})
	x.Planned(manager.Plan{TaskType: "settle", Expired: []time.Duration{11 * time.Second}})
	end := func(v processor.Outcome) {
		_, done := x.Hooks().Execute(t.Context(), processor.Batch{TaskType: "settle"})
		done(processor.Result{Outcome: v, Took: time.Second})
	}
	end(processor.OutcomeLost)
	_, selected := x.Hooks().Select(t.Context(), processor.Selection{TaskType: "settle"})
	time.Sleep(2 * time.Second)
	selected(1, nil)
	x.Swept(manager.Sweep{TaskType: "sweep", Result: manager.SweepDone, Took: 90 * time.Second})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(x)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts, sums := map[string]uint64{}, map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			counts[f.GetName()] += m.GetHistogram().GetSampleCount() + uint64(m.GetCounter().GetValue())
			sums[f.GetName()] += m.GetHistogram().GetSampleSum()
		}
	}
	for name, want := range map[string]uint64{
		"rota_heartbeat_duration_seconds": 2, "rota_handover_duration_seconds": 1, "rota_expired_server_silence_seconds": 1,
		"rota_queue_moves_total": 1, "rota_fence_rejections_total": 1, "rota_batch_duration_seconds": 1,
	} {
		if counts[name] != want {
			t.Errorf("%s: %d, want %d", name, counts[name], want)
		}
	}
	for name, seconds := range map[string]float64{
		"rota_heartbeat_duration_seconds": 1.001, "rota_handover_duration_seconds": 0.3, "rota_expired_server_silence_seconds": 11,
		"rota_batch_duration_seconds": 1, "rota_select_duration_seconds": 2, "rota_sweep_duration_seconds": 90,
	} {
		if math.Abs(sums[name]-seconds) > 1e-6 {
			t.Errorf("%s: %v s in all, want %v s", name, sums[name], seconds)
		}
	}
}

// knownMetrics returns the names of all metrics: those of workers, and those that the console has.
func knownMetrics(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	c, err := center.Open(t.Context(), sqlite.URL("sqlite::memory:"), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pages, err := console.Handler(c, console.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, w := httptest.NewRequest(http.MethodGet, "/metrics", nil), httptest.NewRecorder()
	r.RemoteAddr, r.Host = "127.0.0.1:50000", "localhost:8330"
	pages.ServeHTTP(w, r)
	for _, match := range regexp.MustCompile(`# TYPE (\S+)`).FindAllStringSubmatch(w.Body.String(), -1) {
		known[match[1]] = true
	}
	descs := make(chan *prometheus.Desc, 100)
	metrics.New().Describe(descs)
	close(descs)
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	for d := range descs {
		known[name.FindStringSubmatch(d.String())[1]] = true
	}
	return known
}

// The dashboard asks only for metrics that exist.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Fatal("not JSON")
	}
	known, asked := knownMetrics(t), map[string]bool{}
	for _, m := range metricNames(string(text)) {
		if asked[m] = true; !known[m] {
			t.Errorf("the dashboard asks for %s, which does not exist", m)
		}
	}
	if len(asked) < 12 {
		t.Errorf("the dashboard asks for %d metrics, want at least 12", len(asked))
	}
	for _, m := range []string{"rota_items_parked", "rota_queue_backlog_items", "rota_outage", "rota_conditions", "rota_queues_failing"} {
		if !asked[m] {
			t.Errorf("the dashboard does not show %s", m)
		}
	}
}

// "A or B" shows B only where A has no series with the same labels, so the sides of such an expression must differ in
// their labels: otherwise the panel never shows B.
func TestDashboardShowsBothSidesOfOr(t *testing.T) {
	text, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	labels := regexp.MustCompile(`by \([^)]*\)`)
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			left, right, both := strings.Cut(target.Expr, " or ")
			if both && labels.FindString(left) == labels.FindString(right) {
				t.Errorf("%s: %s never shows its second half", p.Title, target.Expr)
			}
		}
	}
}
