package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/dutyrota/rota/console"
)

// The console is a process that says where it serves, shows the roster of the file, and ends with exit 0 after SIGTERM.
func TestConsoleProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := "sqlite:" + dir + "/rota.db"
	if out, err := rota(t.Context(), dir, "migrate", "up", "--database", url).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := rota(t.Context(), dir, "console", "--database", url, "--own-sign", "STAGE", "--http", "127.0.0.1:0")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address := regexp.MustCompile(`http://[0-9.:]+/`).FindString(line)
	if err != nil || address == "" || !strings.Contains(line, "STAGE") {
		t.Fatalf("%v: %q", err, line)
	}
	r, err := http.Get(address) //nolint:noctx // the test's deadline ends it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(body), "No task type has been registered") || !strings.Contains(string(body), "STAGE") {
		t.Errorf("status %d, %v: %s", r.StatusCode, err, body)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the console ended with %v", err)
	}
}

// Other hosts can reach the console only if it knows who looks, and passwords do not cross the network as plain text.
func TestConsoleFlags(t *testing.T) {
	t.Parallel()
	tls := consoleServer{tlsCert: "c", tlsKey: "k"}
	for _, c := range []struct {
		consoleServer
		address, want string
	}{
		{consoleServer{}, "localhost:8330", ""},
		{consoleServer{}, "127.8.9.1:1", ""},
		{consoleServer{allowChanges: true}, "[::1]:8330", ""},
		{consoleServer{}, "0.0.0.0:8330", "must be localhost"},
		{consoleServer{}, ":8330", "must be localhost"},
		{tls, "192.0.2.1:8330", "must be localhost"},
		{consoleServer{}, "8330", "missing port"},
		{consoleServer{passwords: "people"}, "localhost:1", ""},
		{consoleServer{passwords: "people"}, ":1", "needs --tls-cert"},
		{consoleServer{passwords: "people", tlsCert: "c", tlsKey: "k"}, ":1", ""},
		{consoleServer{passwords: "people", tlsCert: "c"}, ":1", "belong together"},
		{consoleServer{userHeader: "X-User"}, "localhost:1", "belong together"},
		{consoleServer{proxies: []string{"10.0.0.1"}}, "localhost:1", "belong together"},
		{consoleServer{userHeader: "X-User", proxies: []string{"10.0.0.1"}}, ":1", ""},
		{consoleServer{userHeader: "X-User", proxies: []string{"10.0.0.1"}, passwords: "people"}, "localhost:1", "exclude each other"},
	} {
		s := c.consoleServer
		s.address = c.address
		if err := s.check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", s, err, c.want)
		}
	}
}

func TestConsoleProxies(t *testing.T) {
	t.Parallel()
	for prefix, ok := range map[string]bool{"10.1.2.3": true, "10.1.0.0/16": true, "fd00::/8": true, "::ffff:10.0.0.1": true, "": false, "proxy": false, "10.0.0.0/33": false} {
		s := consoleServer{userHeader: "X-User", proxies: []string{prefix}}
		if _, err := s.proxyAccess(); (err == nil) != ok {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

// The line that one command prints lets a person in at the other.
func TestConsolePasswordProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := rota(t.Context(), dir, "console", "password", "ann", "--rights", "look,operate")
	cmd.Stdin = strings.NewReader("correct horse\n")
	line, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(line), "ann:$2") || !strings.HasSuffix(string(line), ":look,operate\n") {
		t.Fatalf("%v: %q", err, line)
	}
	writeFile(t, filepath.Join(dir, "people"), string(line))
	access, err := passwordAccess(filepath.Join(dir, "people"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.SetBasicAuth("ann", "correct horse")
	if a, err := access(r); err != nil || a.Name != "ann" || !a.May(console.Operate, "x") || a.May(console.Change, "x") {
		t.Errorf("with the password: %+v, %v", a, err)
	}
	for args, want := range map[string]string{
		"console password":                                      "missing argument NAME",
		"console password ann --rights all":                     `--rights: the right "all" must be look, operate or change`,
		"console --database sqlite:x --passwords nowhere":       "--passwords nowhere: read the passwords: open nowhere",
		"console --database sqlite:x --http :1":                 "must be localhost",
		"console --database sqlite:x --tls-cert x --tls-key x":  "--tls-cert and --tls-key: open x",
		"console --database sqlite:x --user-header X --proxy x": "--proxy (x) must be an IP address",
	} {
		cmd := rota(t.Context(), dir, strings.Fields(args)...)
		cmd.Stdin = strings.NewReader("correct horse")
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s, want exit code 2 and %q", args, err, out, want)
		}
	}
}

// A page that panics is logged with its stack. A connection that breaks off is not: a port that others reach has many.
func TestConsolePanicsAreLogged(t *testing.T) {
	t.Parallel()
	logger, log := test.NewNullLogger()
	server := httptest.NewUnstartedServer(nil)
	server.Config = newConsoleServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a bug") }), logger)
	server.StartTLS()
	defer server.Close()
	if _, err := http.Get(server.URL); err == nil || !strings.Contains(err.Error(), "certificate") { //nolint:noctx,bodyclose // there is no answer
		t.Errorf("error %v, want one about the certificate", err)
	}
	if _, err := server.Client().Get(server.URL); err == nil { //nolint:noctx,bodyclose // there is no answer
		t.Error("the page answers")
	}
	eventually(t, "the panic is logged", func() bool { return log.LastEntry() != nil })
	if all := log.AllEntries(); len(all) != 1 || all[0].Level != logrus.ErrorLevel || !strings.Contains(all[0].Message, "a bug") || !strings.Contains(all[0].Message, "console_test.go") {
		t.Errorf("the log has %+v", all)
	}
}

// Clients that hold all connections and send nothing, or read nothing, lose them after some seconds: the next one is served.
func TestConsoleOutlivesSilentClients(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	server := newConsoleServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = w.Write(make([]byte, 64<<20)) // more than the kernel holds for a client that does not read
		}
	}), newLogger(io.Discard))
	server.ReadHeaderTimeout, server.WriteTimeout = 200*time.Millisecond, time.Second
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(limitConnections(listener, server, maxConnections)) // until Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
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
