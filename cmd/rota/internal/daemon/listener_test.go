package daemon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
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
	server := &http.Server{ReadHeaderTimeout: time.Hour, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })}
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

func (fakeAddress) Network() string { return "tcp" }

func (a fakeAddress) String() string { return string(a) }

func (fakeListener) Close() error { return nil }

func (fakeListener) Addr() net.Addr { return nil }

// The next connection waits until another is closed.
func TestListenerLimitsConnections(t *testing.T) {
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
