// Package metrics turns what a manager does into Prometheus metrics.
//
//	m, mx, err := metrics.NewManager(c, manager.Config{}, tasks...)
//	...
//	prometheus.MustRegister(mx)
//
// Names and units follow the conventions of Prometheus. Every name begins with rota_. There are few labels: the task
// type, the environment, and what a counter counts. Queues and servers are no labels, because there may be thousands:
// SELECTs answer those questions.
//
// alerts.yaml has alert rules for Prometheus, grafana.json a dashboard.
//
// The package counts and formats with github.com/prometheus/client_golang.
package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// Metrics is a prometheus.Collector and a manager.Observer. All methods may be called concurrently.
type Metrics struct {
	heartbeats *prometheus.HistogramVec
	statistics *prometheus.HistogramVec
	moves      *prometheus.CounterVec
	handovers  *prometheus.HistogramVec
	expiries   *prometheus.HistogramVec
	selects    *prometheus.HistogramVec
	batches    *prometheus.HistogramVec
	fenced     *prometheus.CounterVec
	sweeps     *prometheus.HistogramVec

	mu sync.Mutex
	m  *manager.Manager
	c  *center.Center
}

var (
	_ prometheus.Collector = (*Metrics)(nil)
	_ manager.Observer     = (*Metrics)(nil)
)

// New returns metrics whose counters are zero.
func New() *Metrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	short, long := prometheus.ExponentialBuckets(0.0005, 4, 10), prometheus.ExponentialBuckets(0.025, 2, 14)
	return &Metrics{
		heartbeats: histogram("rota_heartbeat_duration_seconds", "Duration of heartbeats.", short, "result"),
		statistics: histogram("rota_statistics_duration_seconds", "Duration of the writes of the workers' statistics.", short,
			"result"),
		moves: counter("rota_queue_moves_total", "Queues that this process got or lost, by kind of move.", "own_sign",
			"task_type", "kind"),
		handovers: histogram("rota_handover_duration_seconds", "Time from the beginning of a drain to the release of the "+
			"queue.", long, "own_sign", "task_type"),
		expiries: histogram("rota_expired_server_silence_seconds", "How long the workers that this process expired had "+
			"been silent.", long, "own_sign", "task_type"),
		selects: histogram("rota_select_duration_seconds", "Duration of selects.", short, "own_sign", "task_type", "result"),
		batches: histogram("rota_batch_duration_seconds", "Duration of calls of Execute.", short, "own_sign", "task_type",
			"result"),
		fenced: counter("rota_fence_rejections_total", "Batches that the fence rejected because their queue was lost.",
			"own_sign", "task_type"),
		sweeps: histogram("rota_sweep_duration_seconds", "Duration of sweeps of queues of runs in this process.", long,
			"own_sign", "task_type", "result"),
	}
}

// NewManager returns a manager, as manager.New does, and all metrics of it: the caller registers them. The hooks and
// the observers of the config are called, too.
func NewManager(c *center.Center, cfg manager.Config, tasks ...manager.Task) (*manager.Manager, *Metrics, error) {
	x := New()
	cfg.Hooks = slices.Concat([]processor.Hooks{x.Hooks()}, cfg.Hooks)
	cfg.Observers = slices.Concat([]manager.Observer{x}, cfg.Observers)
	m, err := manager.New(c, cfg, tasks...)
	if err != nil {
		return nil, nil, err
	}
	x.Watch(m, c)
	return m, x, nil
}

// Watch adds the gauges and counters that are read when the metrics are collected: the status of the manager, and what
// the Center has asked of the database. Call it once, before the metrics are collected.
func (x *Metrics) Watch(m *manager.Manager, c *center.Center) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.m, x.c = m, c
}

// Heartbeat implements manager.Observer.
func (x *Metrics) Heartbeat(took time.Duration, err error) {
	x.heartbeats.WithLabelValues(result(err)).Observe(took.Seconds())
}

// Statistics implements manager.Observer.
func (x *Metrics) Statistics(took time.Duration, err error) {
	x.statistics.WithLabelValues(result(err)).Observe(took.Seconds())
}

// Moved implements manager.Observer.
func (x *Metrics) Moved(m manager.Move) {
	if m.Kind == manager.MoveReleased {
		x.handovers.WithLabelValues(m.OwnSign, m.TaskType).Observe(m.DrainedFor().Seconds())
	}
	x.moves.WithLabelValues(m.OwnSign, m.TaskType, m.Kind).Inc()
}

// Planned implements manager.Observer.
func (x *Metrics) Planned(p manager.Plan) {
	for _, silent := range p.Expired {
		x.expiries.WithLabelValues(p.OwnSign, p.TaskType).Observe(silent.Seconds())
	}
}

// Swept implements manager.Observer.
func (x *Metrics) Swept(s manager.Sweep) {
	x.sweeps.WithLabelValues(s.OwnSign, s.TaskType, s.Result).Observe(s.Took.Seconds())
}

// Hooks returns hooks that measure selects and batches.
func (x *Metrics) Hooks() processor.Hooks {
	return processor.Hooks{
		Select: func(ctx context.Context, s processor.Selection) (context.Context, func(int, error)) {
			start := time.Now()
			return ctx, func(_ int, err error) {
				x.selects.WithLabelValues(s.OwnSign, s.TaskType, result(err)).Observe(time.Since(start).Seconds())
			}
		},
		Execute: func(ctx context.Context, b processor.Batch) (context.Context, func(processor.Result)) {
			return ctx, func(r processor.Result) {
				x.batches.WithLabelValues(b.OwnSign, b.TaskType, string(r.Outcome)).Observe(r.Took.Seconds())
				if r.Outcome == processor.OutcomeLost {
					x.fenced.WithLabelValues(b.OwnSign, b.TaskType).Inc()
				}
			}
		},
	}
}

func result(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}

func (x *Metrics) vectors() []prometheus.Collector {
	return []prometheus.Collector{
		x.heartbeats, x.statistics, x.moves, x.handovers, x.expiries, x.selects, x.batches, x.fenced, x.sweeps,
	}
}

// Describe implements prometheus.Collector.
func (x *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, v := range x.vectors() {
		v.Describe(out)
	}
	for _, g := range taskMetrics {
		out <- g.desc
	}
	for _, g := range runMetrics {
		out <- g.desc
	}
	for _, d := range conditions {
		out <- d
	}
	for _, d := range []*prometheus.Desc{transactions, attempts, databaseErrors, runsEnded} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (x *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, v := range x.vectors() {
		v.Collect(out)
	}
	x.mu.Lock()
	m, c := x.m, x.c
	x.mu.Unlock()
	if m != nil {
		collectTasks(m, out)
		collectConditions(m, c.OwnSign(), out)
	}
	if c != nil {
		collectDatabase(c, out)
	}
}
