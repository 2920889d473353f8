package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// A worker whose MySQL becomes read-only says so and waits, and works on when it takes writes again. The doctor and a
// worker that starts say the same.
func TestWorkerOfADatabaseThatIsReadOnly(t *testing.T) {
	t.Parallel()
	const told = "the database is read-only"
	for _, kind := range []string{testdb.MySQL, testdb.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := testdb.Own(t, kind)
			db, dir := openOrders(t, server.URL(), 1)
			execute(t, db, "CREATE USER app@'%' IDENTIFIED BY 'secret'") // who obeys read_only, as root does not
			execute(t, db, "GRANT ALL ON test.* TO app@'%'")
			file := filepath.Join(dir, "rota.yaml")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			app := as(t, server.URL(), url.UserPassword("app", "secret"), "")
			writeFile(t, file, strings.Replace(string(text), server.URL(), app, 1))
			settled := func() bool { return count(t, db, "orders WHERE state = 'NEW'") == 0 }
			p := startWorker(t, dir)
			eventually(t, "the order is settled", settled)

			execute(t, db, "SET GLOBAL read_only = 1")
			execute(t, db, "INSERT INTO orders (id) VALUES (2)")
			eventually(t, "the worker says that the database is read-only", func() bool { return p.has(told) })
			eventually(t, "the worker is not ready", func() bool { return status(t, p.address(), "/readyz") == http.StatusServiceUnavailable })
			if p.has("bad connection") {
				t.Error("the log has the error of the driver instead of the reason")
			}
			if stdout, _, code := runRota(t, dir, "doctor", "-c", "rota.yaml"); code != 1 || !strings.Contains(stdout, told) {
				t.Errorf("doctor: exit code %d\n%s", code, stdout)
			}
			_, stderr, code := runRota(t, dir, "worker", "-c", "rota.yaml", "--exit-on-unreachable")
			if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, told) {
				t.Errorf("another worker: exit code %d\n%s", code, stderr)
			}

			execute(t, db, "SET GLOBAL read_only = 0")
			eventually(t, "the second order is settled", settled)
			eventually(t, "the worker is ready", func() bool { return status(t, p.address(), "/readyz") == http.StatusOK })
			p.signal(syscall.SIGTERM)
			if code := p.exit(); code != 0 {
				t.Errorf("exit code %d after SIGTERM", code)
			}
		})
	}
}

// has reports whether a line of the log has a text.
func (p *process) has(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.log {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}
