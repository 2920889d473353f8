package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"
)

// readyTimeout is how long /readyz waits for the database.
const readyTimeout = 2 * time.Second

// serveProbes serves /livez as long as the process runs, /readyz with the
// result of ready, and /metrics. stop returns when all goroutines have ended.
func serveProbes(ctx context.Context, address string, ready func(context.Context) error, metrics http.Handler, log logrus.FieldLogger) (stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve http: %w", err)
	}
	log.WithField("address", listener.Addr().String()).Info("serving /livez, /readyz and /metrics")
	server := &http.Server{Handler: probes(ready, metrics), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); err != http.ErrServerClosed { // Serve returns it unwrapped
			log.WithError(err).Error("stopped serving /livez, /readyz and /metrics")
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // cuts clients that do not end in time
		}
		<-ended
	}, nil
}

func probes(ready func(context.Context) error, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		answer(w, ready(ctx))
	})
	mux.Handle("GET /metrics", metrics)
	return mux
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok") //nolint:errcheck // the client has closed the connection
}
