package daemon

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/dutyrota/rota/cmd/rota/internal/redact"
)

// A page that panics is logged with its stack. A connection that breaks off is not: a port that others reach has many.
func TestPanicsAreLogged(t *testing.T) {
	t.Parallel()
	logger, log := test.NewNullLogger()
	server := httptest.NewUnstartedServer(nil)
	server.Config = NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") }), logger)
	// For the handshake: the usual seconds may be too short on a busy machine.
	server.Config.ReadHeaderTimeout, server.Config.ReadTimeout, server.Config.WriteTimeout = time.Minute, time.Minute, time.Minute
	server.StartTLS()
	defer server.Close()
	if _, err := http.Get(server.URL); err == nil || !strings.Contains(err.Error(), "certificate") { //nolint:noctx,bodyclose // there is no answer
		t.Errorf("error %v, want one about the certificate", err)
	}
	if _, err := server.Client().Get(server.URL); err == nil { //nolint:noctx,bodyclose // there is no answer
		t.Error("the page answers")
	}
	eventually(t, "the panic is logged", func() bool { return log.LastEntry() != nil })
	if all := log.AllEntries(); len(all) != 1 || all[0].Level != logrus.ErrorLevel || !strings.Contains(all[0].Message, "a bug") || !strings.Contains(all[0].Message, "server_test.go") {
		t.Errorf("the log has %+v", all)
	}
}

// Clients that hold all connections and send nothing, or read nothing, lose them after some seconds: the next one is served.
func TestServerOutlivesSilentClients(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = w.Write(make([]byte, 64<<20)) // more than the kernel holds for a client that does not read
		}
	}), NewLogger(io.Discard, redact.URLs))
	server.ReadHeaderTimeout, server.WriteTimeout = 200*time.Millisecond, time.Second
	t.Cleanup(Start(t.Context(), server, listener, func(err error) { t.Error(err) }))
	for i := range maxConnections {
		c, err := net.Dial("tcp", listener.Addr().String()) //nolint:noctx // the test's deadline ends it
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if i%2 == 0 {
			continue // it sends nothing
		}
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil { // it reads nothing
			t.Fatal(err)
		}
	}
	// The timeouts are so short that a busy machine can exceed them, so that this client may have to try again, too.
	eventually(t, "another client gets an answer", func() bool {
		r, err := http.Get("http://" + listener.Addr().String() + "/other") //nolint:noctx // the test's deadline ends it
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	})
}

// eventually polls, as the test has no other view of a server.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout: %s", what)
		}
	}
}

// What net/http says goes through the logger.
func TestServerLogIsJSON(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	NewServer(nil, NewLogger(&log, redact.URLs)).ErrorLog.Print("http: panic serving 127.0.0.1:9: oops\n")
	if got := log.String(); !strings.HasPrefix(got, "{") || !strings.Contains(got, `"msg":"http: panic serving 127.0.0.1:9: oops"`) {
		t.Errorf("%s", got)
	}
}

// Serve returns when the answers in progress have been given.
func TestServeWaitsForLastAnswers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	asked, answer, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	server := NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-answer
	}), NewLogger(io.Discard, redact.URLs))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- Serve(ctx, server, listener, "", "") }()
	answered := make(chan error, 1)
	go func() {
		r, err := http.Get("http://" + listener.Addr().String()) //nolint:noctx // the test's deadline ends it
		if err == nil {
			err = r.Body.Close()
		}
		answered <- err
	}()
	<-asked
	begun := time.Now()
	cancel()
	select {
	case err := <-ended:
		close(answer)
		t.Fatalf("Serve returned %v during an answer", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(answer)
	if err := <-answered; err != nil && time.Since(begun) < time.Second { // later clients are cut
		t.Errorf("the client got %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Serve returned %v", err)
	}
}
