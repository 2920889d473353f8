package main

import (
	"bufio"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
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

// The console has no passwords: it refuses addresses at which other hosts could reach it.
func TestConsoleServesThisHostOnly(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"localhost:8330": true, "127.0.0.1:0": true, "127.8.9.1:1": true, "[::1]:8330": true,
		"0.0.0.0:8330": false, ":8330": false, "[::]:8330": false, "192.0.2.1:8330": false, "example.com:80": false, "8330": false,
	} {
		if err := checkLoopback(address); (err == nil) != ok {
			t.Errorf("%s: %v, want accepted: %t", address, err, ok)
		}
	}
}
