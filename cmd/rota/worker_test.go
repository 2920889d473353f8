package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
)

// waitLimit is more than any wait of a test takes on a busy machine.
const waitLimit = time.Minute

// process is a running worker.
type process struct {
	*testing.T
	cmd  *exec.Cmd
	read chan struct{} // closed at the end of the log

	mu  sync.Mutex
	log []string
}

// startWorker starts the worker of dir, with more variables of the environment.
func startWorker(t *testing.T, dir string, env ...string) *process {
	t.Helper()
	return startRota(t, dir, env, "worker", "-c", "rota.yaml")
}

// startRota starts a command of rota that runs until a signal.
func startRota(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	p := &process{T: t, read: make(chan struct{}), cmd: rota(context.WithoutCancel(t.Context()), dir, args...)}
	p.cmd.Env = append(p.cmd.Env, env...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.read)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.mu.Lock()
			p.log = append(p.log, lines.Text())
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails if the process has ended
		<-p.read
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("its log:\n%s", strings.Join(p.log, "\n"))
		}
	})
	return p
}

// logged returns the first line of the log with the given text in its message.
func (p *process) logged(text string) (fields map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.log {
		fields = nil
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			p.Errorf("not JSON: %s", line)
		}
		if msg, _ := fields["msg"].(string); strings.Contains(msg, text) {
			return fields
		}
	}
	return nil
}

func (p *process) signal(s syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.Fatal(err)
	}
}

// exit waits for the end of the process and of its log, and returns its code.
func (p *process) exit() int {
	p.Helper()
	kill := time.AfterFunc(waitLimit, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	state, err := p.cmd.Process.Wait()
	if err != nil {
		p.Fatal(err)
	}
	<-p.read
	return state.ExitCode()
}

// eventually polls, as the test has no other view of another process.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timeout: %s", what)
		}
	}
}

// openOrders creates a table of orders and the rota.yaml of a worker for it.
func openOrders(t *testing.T, url string, orders int) (db *sql.DB, dir string) {
	t.Helper()
	dir = t.TempDir()
	writeFile(t, filepath.Join(dir, "rota.yaml"), "database: "+url+`
http: 127.0.0.1:0
tasks:
  settle:
    queues: 4
    execute_number: 10
    fetch_number: 20
    sleep_time_nodata: 50ms`+goodDealer+
		"        backlog: SELECT count(*) FROM orders WHERE state = 'NEW' AND {{mine id}}\n")
	if _, stderr, code := runRota(t, dir, "migrate", "up"); code != 0 {
		t.Fatalf("migrate up: %s", stderr)
	}
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaRequire})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	execute(t, c.DB(), `CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9) NOT NULL DEFAULT 'NEW',
		settled_by VARCHAR(150), times INTEGER NOT NULL DEFAULT 0)`)
	execute(t, c.DB(), "INSERT INTO orders (id) VALUES (1)"+values(2, orders))
	return c.DB(), dir
}

// owned are the queues of servers that have a row.
const owned = "schedule_queue q JOIN schedule_server s ON s.uuid = q.cur_server"

func values(from, to int) string {
	var b strings.Builder
	for id := from; id <= to; id++ {
		b.WriteString(", (" + strconv.Itoa(id) + ")")
	}
	return b.String()
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db *sql.DB, from string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A worker settles all orders, serves its probes, and hands over on SIGTERM.
func TestWorkerFromStartToDrain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		const orders = 200
		db, dir := openOrders(t, url, orders)
		p := startWorker(t, dir)
		eventually(t, "all orders are settled", func() bool { return count(t, db, "orders WHERE state = 'NEW'") == 0 })
		if n := count(t, db, "orders o JOIN schedule_server s ON s.uuid = o.settled_by WHERE times = 1"); n != orders {
			t.Errorf("%d orders were settled once, by the worker in the roster, not %d", n, orders)
		}
		eventually(t, "the probes are served", func() bool { return p.logged("serving /livez, /readyz, /metrics and /scale") != nil })
		address, _ := p.logged("serving /livez, /readyz, /metrics and /scale")["address"].(string)
		probe(t, address, "/livez", "ok\n")
		probe(t, address, "/readyz", "ok\n")
		probe(t, address, "/metrics", `rota_queues_owned{own_sign="BASE",task_type="settle"} 4`)
		probe(t, address, "/metrics", `go_sql_max_open_connections{db_name="roster"} 32`)
		eventually(t, "all queues are counted", func() bool { return count(t, db, "schedule_backlog WHERE items = 0") == 4 })
		// In the row of the last heartbeat, items may still be in hand: /scale counts them too.
		eventually(t, "a heartbeat reports that nothing is in hand", func() bool { return count(t, db, "schedule_server WHERE in_hand = 0") == 1 })
		probe(t, address, "/scale?task=settle&per_worker=10", `{"task_type":"settle","workers":1,"servers":1,"queues":4,"counted_queues":4,"backlog_items":0,`)

		p.signal(syscall.SIGTERM)
		p.signal(syscall.SIGINT) // within repeatWindow, so that it counts as a repetition
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
		if p.logged(": draining and handing over") == nil {
			t.Error("the worker did not log that it drains")
		}
		if n := count(t, db, "schedule_server"); n != 0 {
			t.Errorf("%d workers are left behind", n)
		}
		if n := count(t, db, "schedule_queue WHERE cur_server IS NULL AND req_server IS NULL"); n != 4 {
			t.Errorf("%d of 4 queues are free", n)
		}
	})
}

// A worker whose database is away at its start waits for it, alive and not ready, and drains on a signal meanwhile. With
// --exit-on-unreachable it exits. A refused name ends it at once.
func TestWorkerWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, raw string) {
		if strings.HasPrefix(raw, "sqlite:") {
			t.Skip("a file is not reached through a network")
		}
		db, dir := openOrders(t, raw, 1)
		through, proxy := testdb.Through(t, raw)
		proxy.Refuse(true)
		start := func(address string, more ...string) *process {
			return startRota(t, dir, nil, append([]string{"worker", "-c", "rota.yaml", "--database", address}, more...)...)
		}
		waits := func(p *process) string {
			const serving = "serving /livez and /readyz until the database is reached"
			eventually(t, "the worker waits", func() bool {
				return p.logged("the database is unreachable; waiting") != nil && p.logged(serving) != nil
			})
			address, _ := p.logged(serving)["address"].(string)
			return address
		}
		p, impatient := start(through), start(through)
		address := waits(p)
		if live, ready := status(t, address, "/livez"), status(t, address, "/readyz"); live != http.StatusOK || ready != http.StatusServiceUnavailable {
			t.Errorf("while the worker waits, /livez is %d and /readyz %d", live, ready)
		}
		waits(impatient)
		impatient.signal(syscall.SIGTERM)
		if code := impatient.exit(); code != 0 {
			t.Errorf("exit code %d after SIGTERM while the worker waits", code)
		}
		proxy.Refuse(false)
		eventually(t, "the order is settled", func() bool { return count(t, db, "orders WHERE state = 'NEW'") == 0 })
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != 0 {
			t.Errorf("exit code %d after SIGTERM", code)
		}
		proxy.Refuse(true)
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/no_such_database"
		for _, args := range [][]string{{"--database", through, "--exit-on-unreachable"}, {"--database", u.String(), "--schema", "require"}} {
			_, stderr, code := runRota(t, dir, append([]string{"worker", "-c", "rota.yaml"}, args...)...)
			if lines := strings.Count(stderr, "\n"); code != 1 || lines != 1 {
				t.Errorf("%s: exit code %d and %d lines, want 1 and 1:\n%s", args, code, lines, stderr)
			}
		}
	})
}

// A worker whose calls all fail is ready, because it can work: a restart would not help. Its metrics and its log tell.
func TestWorkerThatFailsIsReady(t *testing.T) {
	t.Parallel()
	db, dir := openOrders(t, testdb.URL(t, testdb.SQLite), 1)
	p := startWorker(t, dir)
	eventually(t, "the order is settled", func() bool { return count(t, db, "orders WHERE state = 'NEW'") == 0 })
	execute(t, db, "ALTER TABLE orders RENAME COLUMN state TO old_state")
	failing := regexp.MustCompile(`(?m)^rota_failing_seconds\{own_sign="BASE",task_type="settle"\} [0-9.]*[1-9]`)
	eventually(t, "the metrics say that the task type fails", func() bool { return failing.MatchString(body(t, p.address(), "/metrics")) })
	if code := status(t, p.address(), "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz answers %d", code)
	}
	if cause, _ := p.logged("select: failed")["error"].(string); !strings.Contains(cause, "no such column: state") {
		t.Errorf("the log says %q, want the last error", cause)
	}
}

// address returns where the worker serves its probes; empty until it does.
func (p *process) address() string {
	address, _ := p.logged("serving /livez, /readyz, /metrics and /scale")["address"].(string)
	return address
}

// status returns the status of an answer, 0 if there is none.
func status(t *testing.T, address, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

func probe(t *testing.T, address, path, want string) {
	t.Helper()
	if text := body(t, address, path); !strings.Contains(text, want) {
		t.Errorf("%s: no %q in %.200q", path, want, text)
	}
}

// body returns an answer, which must be 200.
func body(t *testing.T, address, path string) string {
	t.Helper()
	status, text := answer(t, address, path)
	if status != http.StatusOK {
		t.Fatalf("%s: %d, %s", path, status, text)
	}
	return text
}

// answer returns the status and the text of a page.
func answer(t *testing.T, address, path string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(all)
}

// Another transaction holds the write lock, so the worker cannot hand over; a second signal ends it at once.
func TestSecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	db, dir := openOrders(t, testdb.URL(t, testdb.SQLite), 1)
	p := startWorker(t, dir)
	eventually(t, "the order is settled", func() bool { return count(t, db, "orders WHERE state = 'NEW'") == 0 })
	lock, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback()
	p.signal(syscall.SIGTERM)
	eventually(t, "the worker drains", func() bool { return p.logged("SIGTERM: draining") != nil })
	eventually(t, "the worker stops at once", func() bool {
		p.signal(syscall.SIGINT)
		return p.logged("SIGINT again: stopping at once") != nil
	})
	if code := p.exit(); code != 1 {
		t.Errorf("exit code %d after a second signal, want 1", code)
	}
}
