//go:build unix

package main

import (
	"context"
	"database/sql"
	"errors"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// The service is not longer than the same service with River.
func TestLineCount(t *testing.T) {
	ours, rivers := lines(t, "main.go"), lines(t, "../../bench/riverservice/main.go")
	t.Logf("%d lines, with River %d", ours, rivers)
	if ours > rivers {
		t.Errorf("%d lines, and River needs %d", ours, rivers)
	}
}

// lines counts the lines of a file as gofmt writes them, without comments and empty lines.
func lines(t *testing.T, file string) (n int) {
	t.Helper()
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, 0) // without the comments
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := format.Node(&text, set, tree); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if strings.TrimSpace(line) != "" {
			n++
		}
	}
	return n
}

// Two processes take orders over HTTP, settle them, and export a day once. One ends in order after SIGTERM, while the other goes on.
func TestService(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.Postgres)
	program := build(t)
	first := start(t, program, url)
	second := start(t, program, url)
	for range 20 {
		first.send(t, http.MethodPost, "/orders", http.StatusOK)
		second.send(t, http.MethodPost, "/orders", http.StatusOK)
	}
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	until(t, "40 orders have receipts", func() bool { return number(t, db, `SELECT COUNT(*) FROM receipts`) == 40 })
	first.send(t, http.MethodGet, "/livez", http.StatusOK)
	if body := first.send(t, http.MethodGet, "/metrics", http.StatusOK); !strings.Contains(body, `rota_batch_duration_seconds_count{own_sign="BASE",result="done",task_type="settle"}`) {
		t.Errorf("no batches in the metrics:\n%s", body)
	}
	first.send(t, http.MethodPost, "/exports/tomorrow", http.StatusBadRequest)
	var day string
	if err := db.QueryRow(`SELECT CAST(MIN(day) AS text) FROM receipts`).Scan(&day); err != nil {
		t.Fatal(err)
	}
	if a, b := first.send(t, http.MethodPost, "/exports/"+day, http.StatusOK), second.send(t, http.MethodPost, "/exports/"+day, http.StatusOK); a != b {
		t.Errorf("the day has the runs %s and %s, want one", a, b)
	}
	until(t, "the run has succeeded", func() bool { return number(t, db, `SELECT COUNT(*) FROM schedule_run WHERE state = 'SUCCESS'`) == 1 })
	if n := number(t, db, `SELECT COUNT(*) FROM receipts WHERE NOT exported AND day = $1`, day); n != 0 {
		t.Errorf("the run has left out %d receipts", n)
	}
	if page := first.send(t, http.MethodGet, "/rota/", http.StatusOK); !strings.Contains(page, "settle") {
		t.Errorf("the console does not have the task type:\n%s", page)
	}
	if n := number(t, db, `SELECT COUNT(*) FROM schedule_server WHERE labels = 'zone=local'`); n != 6 {
		t.Errorf("%d servers have the label, want 6: two processes with three task types", n)
	}
	first.stop(t)
	second.send(t, http.MethodPost, "/orders", http.StatusOK)
	until(t, "41 orders have receipts", func() bool { return number(t, db, `SELECT COUNT(*) FROM receipts`) == 41 })
	second.stop(t)
	if n := number(t, db, `SELECT COUNT(*) FROM schedule_server`); n > 0 {
		t.Errorf("%d servers have not left", n)
	}
}

// A process that cannot hand over, because the database is away, ends with a code other than 0.
func TestServiceThatCannotLeave(t *testing.T) {
	t.Parallel()
	url, proxy := testdb.Through(t, testdb.URL(t, testdb.Postgres))
	p := start(t, build(t), url)
	proxy.Refuse(true)
	proxy.Cut()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err == nil {
		t.Error("the service ended with code 0, and is still in the roster")
	}
}

func build(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "service")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// process is a running service.
type process struct {
	cmd *exec.Cmd
	url string
}

// start starts the service at a free port and waits until it is ready.
func start(t *testing.T, program, url string) *process {
	t.Helper()
	address := freeAddress(t)
	p := &process{exec.CommandContext(context.WithoutCancel(t.Context()), program), "http://" + address}
	p.cmd.Env = append(os.Environ(), "DATABASE_URL="+url, "ADDRESS="+address)
	p.cmd.Stderr = t.Output()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // after this nothing writes to the test's output
	})
	until(t, "the service is ready", func() bool {
		response, err := http.Get(p.url + "/readyz")
		if err != nil {
			return false
		}
		return errors.Join(err, response.Body.Close()) == nil && response.StatusCode == http.StatusOK
	})
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// send sends a request and returns the body of the answer.
func (p *process) send(t *testing.T, method, path string, status int) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, p.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != status {
		t.Fatalf("%s %s: %s %v %s", method, path, response.Status, err, body)
	}
	return string(body)
}

// stop sends SIGTERM and waits for the end, which must be exit 0.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited too long until ", what)
		}
	}
}

func number(t *testing.T, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
