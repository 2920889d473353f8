package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
)

// A client that is slow, idle or sends endless headers cannot hold a connection for ever.
func TestProbesHaveTimeLimits(t *testing.T) {
	t.Parallel()
	s := newProbeServer(http.NotFoundHandler(), newLogger(&bytes.Buffer{}))
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.WriteTimeout <= readyTimeout || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("%+v", s)
	}
}

// What net/http says goes through the logger.
func TestProbesLogTheErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	newProbeServer(nil, newLogger(&log)).ErrorLog.Print("http: panic serving 127.0.0.1:9: oops\n")
	if got := log.String(); !strings.HasPrefix(got, "{") || !strings.Contains(got, `"msg":"http: panic serving 127.0.0.1:9: oops"`) {
		t.Errorf("%s", got)
	}
}

// /readyz says which check failed. The cause, which may hold addresses, uuids and SQL, is only in the log, once.
func TestReadyzHidesTheCause(t *testing.T) {
	t.Parallel()
	const cause = "UPDATE schedule_server: dial tcp 10.1.2.3:5432: web1:4711:1a2b3c4d"
	var log bytes.Buffer
	var err error
	h := probes{ready: func(context.Context) error { return err }, metrics: http.NotFoundHandler(), scale: http.NotFoundHandler()}.handler(newLogger(&log))
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
	err = notReady{"the database accepts no writes", errors.New(cause)}
	get(http.StatusServiceUnavailable, "the database accepts no writes; the log says why\n")
	lines(3)
}

// Metrics that cannot be read do not show the cause to the client.
func TestMetricsHideTheCause(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := httptest.NewRecorder()
	metricsHandler(newLogger(&log), brokenCollector{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "10.1.2.3") || !strings.Contains(log.String(), "10.1.2.3") {
		t.Errorf("%d, log %s, body\n%.200s", w.Code, log.String(), w.Body.String())
	}
}

type brokenCollector struct{}

func (brokenCollector) Describe(chan<- *prometheus.Desc) {}

func (brokenCollector) Collect(metrics chan<- prometheus.Metric) {
	metrics <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "broken", nil, nil), errors.New("dial tcp 10.1.2.3:5432"))
}

// fakeListener accepts at once and counts.
type fakeListener struct{ accepted chan net.Conn }

func (l fakeListener) Accept() (net.Conn, error) {
	conn, _ := net.Pipe()
	l.accepted <- conn
	return fakeConn{conn, fmt.Sprintf("192.0.2.%d:80", len(l.accepted))}, nil
}

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn
	address string
}

func (c fakeConn) RemoteAddr() net.Addr { return fakeAddress(c.address) }

type fakeAddress string

func (fakeAddress) Network() string  { return "tcp" }
func (a fakeAddress) String() string { return string(a) }

func (fakeListener) Close() error   { return nil }
func (fakeListener) Addr() net.Addr { return nil }

// The next connection waits until another is closed.
func TestProbesLimitConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := fakeListener{make(chan net.Conn, 10)}
		l := limitConnections(fake, new(http.Server), 2)
		conns := make(chan net.Conn, 10)
		go func() {
			for range 4 {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				conns <- conn
			}
		}()
		want := func(n int) {
			t.Helper()
			synctest.Wait()
			if len(fake.accepted) != n {
				t.Fatalf("%d connections were accepted, want %d", len(fake.accepted), n)
			}
		}
		want(2)
		first := <-conns
		_ = first.Close() // a pipe closes without an error
		want(3)
		_ = first.Close() // net/http may close twice
		want(3)
		_ = l.Close()
	})
}
