// Package metrics turns what a manager does into Prometheus metrics.
//
//	mx := metrics.New()
//	m, err := manager.New(c, manager.Config{Observer: mx, Hooks: mx.Hooks()}, tasks...)
//	...
//	mx.Watch(m, c)
//	prometheus.MustRegister(mx)
//
// Names and units are those that Prometheus recommends; every metric begins with rota_. Labels are few: the task
// type, the environment, and what a counter counts. Queues and servers are none, for there may be thousands:
// those questions are for SELECTs.
//
// github.com/prometheus/client_golang does the counting and the text.
package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// Metrics is a prometheus.Collector and a manager.Observer. All methods may be called concurrently.
type Metrics struct {
	beats    *prometheus.HistogramVec // by result
	moves    *prometheus.CounterVec
	handover *prometheus.HistogramVec
	takeover *prometheus.HistogramVec
	selects  *prometheus.HistogramVec
	batches  *prometheus.HistogramVec
	fenced   *prometheus.CounterVec
	sweeps   *prometheus.HistogramVec

	mu sync.Mutex
	m  *manager.Manager
	c  *center.Center
}

var (
	_ prometheus.Collector = (*Metrics)(nil)
	_ manager.Observer     = (*Metrics)(nil)
)

// New returns metrics that nothing has been counted for yet.
func New() *Metrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	short, long := prometheus.ExponentialBuckets(0.0005, 4, 10), prometheus.ExponentialBuckets(0.025, 2, 14)
	return &Metrics{
		beats:    histogram("rota_heartbeat_duration_seconds", "How long heartbeats took.", short, "result"),
		moves:    counter("rota_moves_total", "Queues that came to this process or left it.", "task_type", "kind"),
		handover: histogram("rota_handover_duration_seconds", "From the begin of a drain to the release of the queue.", long, "task_type"),
		takeover: histogram("rota_takeover_silence_seconds", "For how long servers had been silent that this process buried.", long, "task_type"),
		selects:  histogram("rota_select_duration_seconds", "How long selects took.", short, "task_type", "result"),
		batches:  histogram("rota_batch_duration_seconds", "How long calls of Execute took.", short, "task_type", "result"),
		fenced:   counter("rota_fence_rejections_total", "Batches that met the loss of their queue.", "task_type"),
		sweeps:   histogram("rota_sweep_duration_seconds", "How long sweeps of queues of runs took here.", long, "task_type", "result"),
	}
}

// Watch makes the metrics include what can be read at any time: what the manager has, and what the Center has
// asked of the database. It is called once, before the metrics are collected.
func (x *Metrics) Watch(m *manager.Manager, c *center.Center) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.m, x.c = m, c
}

// Beat implements manager.Observer.
func (x *Metrics) Beat(took time.Duration, err error) {
	x.beats.WithLabelValues(result(err)).Observe(took.Seconds())
}

// Moved implements manager.Observer.
func (x *Metrics) Moved(taskType, kind string, took time.Duration) {
	switch kind {
	case manager.MoveReleased:
		x.handover.WithLabelValues(taskType).Observe(took.Seconds())
	case manager.MoveTakenOver: // a server, not a queue
		x.takeover.WithLabelValues(taskType).Observe(took.Seconds())
		return
	}
	x.moves.WithLabelValues(taskType, kind).Inc()
}

// Swept implements manager.Observer.
func (x *Metrics) Swept(taskType, result string, took time.Duration) {
	x.sweeps.WithLabelValues(taskType, result).Observe(took.Seconds())
}

// Hooks returns what measures selects and batches. A user who has hooks of their own calls these from within.
func (x *Metrics) Hooks() processor.Hooks {
	return processor.Hooks{
		Select: func(ctx context.Context, s processor.Selection) (context.Context, func(int, error)) {
			start := time.Now()
			return ctx, func(_ int, err error) {
				x.selects.WithLabelValues(s.TaskType, result(err)).Observe(time.Since(start).Seconds())
			}
		},
		Execute: func(ctx context.Context, b processor.Batch) (context.Context, func(processor.Result)) {
			return ctx, func(r processor.Result) {
				x.batches.WithLabelValues(b.TaskType, string(r.Verdict)).Observe(r.Took.Seconds())
				if r.Verdict == processor.VerdictLost {
					x.fenced.WithLabelValues(b.TaskType).Inc()
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
	return []prometheus.Collector{x.beats, x.moves, x.handover, x.takeover, x.selects, x.batches, x.fenced, x.sweeps}
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
	for _, d := range []*prometheus.Desc{transactions, tries, databaseErrors, runsEnded} {
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
	}
	if c != nil {
		collectDatabase(c, out)
	}
}
