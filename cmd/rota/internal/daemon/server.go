// Package daemon is what the commands share that run until a signal: the HTTP server, signals, the log, systemd.
package daemon

import (
	"context"
	"errors"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// maxConnections is more than a few people, scrapers and probes need.
const maxConnections = 128

// probePatience is how long a probe of Kubernetes waits by default for an answer.
const probePatience = time.Second

// NewServer returns a server that limits the time for which a client can hold a connection.
func NewServer(handler http.Handler, log logrus.FieldLogger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second, // includes the handler
		IdleTimeout:       time.Minute,      // Prometheus comes back within a minute by default
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdlog.New(serverLog{log}, "", 0),
	}
}

// NewProbeServer returns a server for probes. A request that is not there after half of a probe's patience is given up,
// and an answer ends its connection.
func NewProbeServer(handler http.Handler, log logrus.FieldLogger) *http.Server {
	s := NewServer(handler, log)
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout = probePatience/2, probePatience/2, 5*time.Second
	s.SetKeepAlivesEnabled(false)
	return s
}

// serverLog logs what net/http writes: panics, and connections that clients break off. The latter are frequent on a
// port that other hosts can reach.
type serverLog struct{ log logrus.FieldLogger }

// Write implements io.Writer.
func (l serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.HasPrefix(text, "http: panic") {
		l.log.Error(text)
	} else {
		l.log.Debug(text)
	}
	return len(line), nil
}

// Listen listens at a TCP address.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

// Serve serves on a bounded number of connections until ctx ends, over TLS if there is the file of a certificate. At
// the end clients get a second for their last answer.
func Serve(ctx context.Context, server *http.Server, l net.Listener, cert, key string) (err error) {
	l = &newestWins{Listener: l, most: maxConnections}
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		shutDown(ctx, server)
	})
	if cert != "" {
		err = server.ServeTLS(l, cert, key)
	} else {
		err = server.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		<-closed
		return nil
	}
	return err
}

func shutDown(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // cuts clients that do not end in time
	}
}

// Start serves until stop is called, also after ctx has ended. It calls failed, from another goroutine, if the server
// ends before. stop returns when all goroutines have ended.
func Start(ctx context.Context, server *http.Server, l net.Listener, failed func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := Serve(ctx, server, l, "", ""); err != nil {
			failed(err)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
