package console

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dutyrota/rota/ops/doctor"
)

const (
	// scrapeLife is how long the checks of the doctor serve all clients of /metrics.
	scrapeLife = doctor.JudgementHolds
	// scrapePatience is how long a client of /metrics waits for the checks. Prometheus waits for ten seconds.
	scrapePatience = 8 * time.Second
)

var (
	metricFindings = prometheus.NewDesc("rota_findings", "What rota doctor finds, by kind, with the status of the "+
		"findings: PROBLEM or NOTE. There are none while it is not known what is wrong: see rota_findings_known.",
		[]string{"task_type", "own_sign", "kind", "status"}, nil)
	metricKnown = prometheus.NewDesc("rota_findings_known", "1 if it is known what is wrong; 0 if the checks have "+
		"failed, or have not ended.", []string{"own_sign"}, nil)
	metricAge = prometheus.NewDesc("rota_findings_age_seconds", "Time since the last checks began that ended well; "+
		"NaN if there are none.", []string{"own_sign"}, nil)
)

// findings is a prometheus.Collector of what the doctor finds in one environment. The workers do not serve it, because
// a thousand of them would check the roster a thousand times. They have what each sees itself, in rota_conditions.
type findings struct{ *console }

// Describe implements prometheus.Collector.
func (findings) Describe(out chan<- *prometheus.Desc) {
	out <- metricFindings
	out <- metricKnown
	out <- metricAge
}

// Collect implements prometheus.Collector.
func (f findings) Collect(out chan<- prometheus.Metric) {
	v := &viewer{console: f.console}
	j, now, sign := v.judge(context.Background(), scrapeLife, scrapePatience), time.Now(), f.client.OwnSign()
	known, age := 0.0, math.NaN()
	if !j.At.IsZero() {
		age = now.Sub(j.At).Seconds()
	}
	if j.Known(now) {
		known = 1
		for _, t := range j.Tallies() {
			out <- prometheus.MustNewConstMetric(metricFindings, prometheus.GaugeValue, float64(t.Count), t.TaskType, sign,
				t.Kind, t.Status)
		}
	}
	out <- prometheus.MustNewConstMetric(metricKnown, prometheus.GaugeValue, known, sign)
	out <- prometheus.MustNewConstMetric(metricAge, prometheus.GaugeValue, age, sign)
}

// metrics serves GET /metrics to clients that may look at everything.
func (s *console) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(findings{s})
	return s.lookers(func(*http.Request) string { return "" }, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}
