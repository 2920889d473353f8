package workercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/cmd/rota/internal/daemon"
)

// readyTimeout is how long /readyz waits for the database.
const readyTimeout = 2 * time.Second

// probes are what a worker serves besides /livez.
type probes struct {
	ready          func(context.Context) error
	metrics, scale http.Handler
	console        http.Handler // nil: not served
	waiting        bool         // the database has not been reached yet: only /livez and /readyz are served
}

// String names the addresses.
func (p probes) String() string {
	if p.waiting {
		return "/livez and /readyz until the database is reached"
	}
	if p.console != nil {
		return "/livez, /readyz, /metrics, /scale and the console"
	}
	return "/livez, /readyz, /metrics and /scale"
}

// serveProbes serves /livez as long as the process runs, and the probes. stop returns when all goroutines have ended.
func serveProbes(ctx context.Context, address string, p probes, log logrus.FieldLogger) (stop func(), err error) {
	listener, err := daemon.Listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("serve http: %w", err)
	}
	log.WithField("address", listener.Addr().String()).Info("serving " + p.String())
	return daemon.Start(ctx, daemon.NewServer(p.handler(log), log), listener, func(err error) {
		log.WithError(err).Error("stopped serving " + p.String())
	}), nil
}

func (p probes) handler(log logrus.FieldLogger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answerOK(w) })
	mux.Handle("GET /readyz", &readiness{ready: p.ready, log: log})
	if p.waiting {
		return mux
	}
	mux.Handle("GET /metrics", p.metrics)
	mux.Handle("GET /scale", p.scale)
	if p.console != nil {
		mux.Handle("/", p.console)
	}
	return mux
}

// notReady is why a worker is not ready: a text that anybody may read, and its
// cause, which may hold addresses, uuids and SQL.
type notReady struct {
	public string
	error
}

func (e notReady) Unwrap() error { return e.error }

// readiness serves /readyz.
type readiness struct {
	ready func(context.Context) error
	log   logrus.FieldLogger

	mu   sync.Mutex
	last string // the public text of the last answer; "" if it was ok
}

// ServeHTTP implements http.Handler.
func (r *readiness) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), readyTimeout)
	defer cancel()
	err := r.ready(ctx)
	if request.Context().Err() != nil {
		return // the client has closed the connection, which may be why ready failed
	}
	public := publicText(err)
	if r.changed(public) && err != nil {
		r.log.WithError(err).Warn("/readyz: " + public)
	}
	if err != nil {
		http.Error(w, public+"; the log says why", http.StatusServiceUnavailable)
		return
	}
	answerOK(w)
}

// changed remembers the answer and reports whether the last one was different,
// so that the log gets one line and not one per probe.
func (r *readiness) changed(public string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.last
	r.last = public
	return was != public
}

// publicText returns "" for no error.
func publicText(err error) string {
	var e notReady
	if err == nil {
		return ""
	}
	errors.As(err, &e)
	return cmp.Or(e.public, "not ready")
}

func answerOK(w http.ResponseWriter) {
	fmt.Fprintln(w, "ok") //nolint:errcheck // the client has closed the connection
}

// metricsHandler serves what it can read; the log has the errors.
func metricsHandler(log logrus.FieldLogger, collectors ...prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		Registry: registry, ErrorLog: log,
		ErrorHandling: promhttp.ContinueOnError,
	})
}
