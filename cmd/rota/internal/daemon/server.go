// Package daemon is what the commands share that run until a signal: the HTTP server, signals, the log, systemd.
package daemon

import (
	"context"
	stdlog "log"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// MaxConnections is more than a few scrapers and probes need.
const MaxConnections = 64

// NewProbeServer limits the time that a client can hold a connection.
func NewProbeServer(handler http.Handler, log logrus.FieldLogger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      15 * time.Second, // includes the handler; Prometheus waits 10 s
		IdleTimeout:       time.Minute,      // Prometheus comes back within a minute by default
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          stdlog.New(lineLogger{log}, "", 0),
	}
}

// lineLogger logs what net/http writes.
type lineLogger struct{ log logrus.FieldLogger }

// Write implements io.Writer.
func (l lineLogger) Write(line []byte) (int, error) {
	l.log.Warn(strings.TrimSpace(string(line)))
	return len(line), nil
}

// NewConsoleServer limits the time for which a client can hold a connection.
func NewConsoleServer(handler http.Handler, log logrus.FieldLogger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       10 * time.Second, // a page comes back every two
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          stdlog.New(consoleLogger{log}, "", 0),
	}
}

// consoleLogger logs what net/http writes: panics, and the connections that
// clients break off, of which a port that others reach has many.
type consoleLogger struct{ log logrus.FieldLogger }

// Write implements io.Writer.
func (l consoleLogger) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if strings.HasPrefix(text, "http: panic") {
		l.log.Error(text)
	} else {
		l.log.Debug(text)
	}
	return len(line), nil
}

// ShutDown ends the server. Clients get a second for their last answer.
func ShutDown(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}
