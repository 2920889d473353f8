package main

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Idle connections of a client do not keep another request out, even if nothing
// ends them.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Hour, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerOK(w) })}
	limited := limitConnections(listener, server, 8)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(limited) // until Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	ask := func() error {
		conn, err := net.Dial("tcp", listener.Addr().String()) //nolint:noctx // the test's deadline ends it
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1)) // the connection stays open
		return err
	}
	for range 30 {
		eventually(t, "a client gets an answer", func() bool { return ask() == nil })
	}
}
