package workercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
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
	seen           func() string // the kinds of conditions that the process sees; nil: not known yet
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

// front is where a worker serves: all of its pages at one address, and the probes alone at another one, where no client
// of the pages can keep them busy. It listens before the worker opens the roster, and so a busy port leaves no trace
// there.
type front struct {
	log   logrus.FieldLogger
	doors []*door
}

// door is one address of a front.
type door struct {
	listener   net.Listener
	probesOnly bool
	shown      atomic.Pointer[http.Handler]
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*d.shown.Load()).ServeHTTP(w, r) }

// listenAt listens at the address of the pages and at that of the probes. An empty address is none.
func listenAt(ctx context.Context, pages, probesAlone string, log logrus.FieldLogger) (*front, error) {
	f := &front{log: log}
	for _, at := range []struct{ key, address string }{{"http", pages}, {"probes", probesAlone}} {
		if at.address == "" {
			continue
		}
		listener, err := daemon.Listen(ctx, at.address)
		if err != nil {
			f.close()
			return nil, fmt.Errorf("serve %s: %w", at.key, err)
		}
		f.doors = append(f.doors, &door{listener: listener, probesOnly: at.key == "probes"})
	}
	f.show(probes{waiting: true, ready: func(context.Context) error {
		return notReady{"the worker is starting", errors.New("the roster is not open yet")}
	}})
	return f, nil
}

func (f *front) close() {
	for _, d := range f.doors {
		_ = d.listener.Close() // nobody has connected
	}
}

// show serves these probes from now on.
func (f *front) show(p probes) {
	all, alone := p.handlers(f.log)
	for _, d := range f.doors {
		if d.probesOnly {
			d.shown.Store(&alone)
		} else {
			d.shown.Store(&all)
		}
	}
}

// say logs where the worker serves what.
func (f *front) say(p probes) {
	for _, d := range f.doors {
		what := p.String()
		if d.probesOnly {
			what = "/livez and /readyz alone"
		}
		f.log.WithField("address", d.listener.Addr().String()).Info("serving " + what)
	}
}

// serve serves as long as the process runs. stop returns when all goroutines have ended.
func (f *front) serve(ctx context.Context) (stop func()) {
	stops := make([]func(), len(f.doors))
	for i, d := range f.doors {
		server := daemon.NewServer(d, f.log)
		if d.probesOnly {
			server = daemon.NewProbeServer(d, f.log)
		}
		stops[i] = daemon.Start(ctx, server, d.listener, func(err error) {
			f.log.WithError(err).WithField("address", d.listener.Addr().String()).Error("stopped serving")
		})
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// handlers returns a handler of all pages, and one of /livez and /readyz alone.
func (p probes) handlers(log logrus.FieldLogger) (all, alone http.Handler) {
	mux, probesMux := http.NewServeMux(), http.NewServeMux()
	ready := &readiness{ready: p.ready, seen: p.seen, log: log}
	for _, mux := range []*http.ServeMux{mux, probesMux} {
		mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, "ok") //nolint:errcheck // the client has closed the connection
		})
		mux.Handle("GET /readyz", ready)
	}
	if p.waiting {
		return mux, probesMux
	}
	mux.Handle("GET /metrics", p.metrics)
	mux.Handle("GET /scale", p.scale)
	if p.console != nil {
		mux.Handle("/", p.console)
	}
	return mux, probesMux
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
	seen  func() string
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
	seen := ""
	if r.seen != nil {
		if seen = r.seen(); seen != "" {
			seen = "; this process sees " + seen
		}
	}
	if err != nil {
		http.Error(w, public+"; the log says why"+seen, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok"+seen) //nolint:errcheck // the client has closed the connection
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

// metricsHandler serves what it can read; the log has the errors.
func metricsHandler(log logrus.FieldLogger, collectors ...prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors...)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		Registry: registry, ErrorLog: log,
		ErrorHandling: promhttp.ContinueOnError,
	})
}
