package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A worker whose port is busy ends with one line, and has made no table.
func TestBusyPort(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, flag := range []string{"--http", "--probes"} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "rota.yaml"), "database: sqlite:rota.db\ntasks:\n  settle:\n    queues: 1"+goodDealer)
		stdout, stderr, code := runRota(t, dir, "worker", flag, busy.Addr().String())
		if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "rota: serve "+flag[2:]+": ") {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
		if _, err := os.Stat(filepath.Join(dir, "rota.db")); err == nil {
			t.Error("a database was created")
		}
	}
}

// A named pipe has no end that a command could wait for: each place that names a file refuses it at once.
func TestNamedPipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(name, top, dealer string) {
		writeFile(t, filepath.Join(dir, name), top+"\ntasks:\n  settle:\n    queues: 1"+goodDealer+dealer)
	}
	file("good.yaml", "database: sqlite:rota.db", "")
	file("database.yaml", "database_file: pipe", "")
	file("data.yaml", "database: sqlite:rota.db\ndata: {a: {database_file: pipe}}", "")
	file("secret.yaml", "database: sqlite:rota.db", "      http: {url: https://h/, secret_file: pipe}\n")
	file("ca.yaml", "database: sqlite:rota.db", "      http: {url: https://h/, ca_file: pipe}\n")
	for _, args := range []string{
		"worker -c pipe", "task apply -f pipe --database sqlite:rota.db", "worker -c database.yaml", "worker -c data.yaml", "worker -c secret.yaml",
		"worker -c ca.yaml", "worker -c good.yaml --database-file pipe", "worker -c good.yaml --data-file a=pipe",
		"console -c good.yaml --passwords pipe", "console -c good.yaml --tls-cert pipe --tls-key pipe", "worker check --secret-file pipe http://h/",
	} {
		stdout, stderr, code := runRota(t, dir, strings.Fields(args)...) // a minute at most
		if code == 0 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "must be a regular file, not a named pipe") {
			t.Errorf("rota %s: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "rota.db")); err == nil {
		t.Error("a database was created")
	}
}
