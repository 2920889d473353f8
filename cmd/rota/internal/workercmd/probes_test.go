package workercmd

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
	"github.com/dutyrota/rota/cmd/rota/internal/redact"
	"github.com/dutyrota/rota/condition"
)

// A client that is slow, idle or sends endless headers cannot hold a connection for ever.
func TestProbesHaveTimeLimits(t *testing.T) {
	t.Parallel()
	s := daemon.NewServer(http.NotFoundHandler(), daemon.NewLogger(&bytes.Buffer{}, redact.URLs))
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= readyTimeout || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("%+v", s)
	}
}

// /readyz says which check failed. The cause, which may hold addresses, uuids and SQL, is only in the log, once.
func TestReadyzHidesTheCause(t *testing.T) {
	t.Parallel()
	const cause = "UPDATE schedule_server: dial tcp 10.1.2.3:5432: web1:4711:1a2b3c4d"
	var log bytes.Buffer
	var err error
	p := probes{ready: func(context.Context) error { return err }, metrics: http.NotFoundHandler(), scale: http.NotFoundHandler()}
	_, h := p.handlers(daemon.NewLogger(&log, redact.URLs))
	get := func(status int, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if got := w.Body.String(); w.Code != status || got != want {
			t.Errorf("%d %q, want %d %q", w.Code, got, status, want)
		}
	}
	lines := func(want int) {
		t.Helper()
		if n := strings.Count(log.String(), cause); n != want {
			t.Errorf("%d lines, want %d:\n%s", n, want, log.String())
		}
	}
	get(http.StatusOK, "ok\n")
	err = errors.New(cause)
	get(http.StatusServiceUnavailable, "not ready; the log says why\n")
	lines(1)
	err = notReady{"the database accepts no writes", errors.New(cause)}
	get(http.StatusServiceUnavailable, "the database accepts no writes; the log says why\n")
	get(http.StatusServiceUnavailable, "the database accepts no writes; the log says why\n")
	lines(2)
	err = nil
	get(http.StatusOK, "ok\n")
	p.seen = func() string {
		standby, failed := condition.Condition{Kind: "STANDBY"}.Complete(), condition.Condition{Kind: "RUN_FAILED"}.Complete()
		standby.TaskType, failed.TaskType = "secret", "secret"
		return seen([]condition.Condition{standby, failed, failed})
	}
	_, h = p.handlers(daemon.NewLogger(&log, redact.URLs))
	get(http.StatusOK, "ok; this process sees RUN_FAILED, STANDBY\n")
	p.seen = nil
	_, h = p.handlers(daemon.NewLogger(&log, redact.URLs))
	err = notReady{"the database accepts no writes", errors.New(cause)}
	get(http.StatusServiceUnavailable, "the database accepts no writes; the log says why\n")
	lines(3)
}

// Metrics that cannot be read do not show the cause to the client.
func TestMetricsHideTheCause(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := httptest.NewRecorder()
	metricsHandler(daemon.NewLogger(&log, redact.URLs), brokenCollector{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "10.1.2.3") || !strings.Contains(log.String(), "10.1.2.3") {
		t.Errorf("%d, log %s, body\n%.200s", w.Code, log.String(), w.Body.String())
	}
}

type brokenCollector struct{}

func (brokenCollector) Describe(chan<- *prometheus.Desc) {}

func (brokenCollector) Collect(metrics chan<- prometheus.Metric) {
	metrics <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "broken", nil, nil), errors.New("dial tcp 10.1.2.3:5432"))
}
