package consoletest

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
)

// program is the built rota.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "rota-console-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		program = filepath.Join(dir, "rota")
		build := exec.Command("go", "build", "-C", "../..", "-o", program, "./cmd/rota")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build rota: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// roster is a database with orders, and the processes that work on it.
type roster struct {
	*testing.T
	dir, url string
	db       *sql.DB
	center   *center.Center
}

// config has one task type that works all the time, and one that works in runs, slowly enough to watch. An order that is
// broken fails at once for good.
const config = `database: '%s'
tasks:
  settle:
    queues: 8
    heartbeat_interval: 300ms
    judge_dead_interval: 3s
    sleep_time_nodata: 200ms
    item_max_attempts: 1
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'NEW' AND {{mine id}} ORDER BY id LIMIT {{limit}}
        execute_each: UPDATE orders SET state = CASE WHEN broken = 1 THEN NULL ELSE 'DONE' END WHERE id = {{row.id}}
        backlog: SELECT COUNT(*) FROM orders WHERE state = 'NEW' AND {{mine id}}
        key: id
  report:
    queues: 4
    mode: RUN
    cron: 0 0 3 * * ?
    heartbeat_interval: 300ms
    judge_dead_interval: 3s
    fetch_number: 10
    execute_number: 10
    sleep_time_interval: 200ms
    dealer:
      sql:
        select: SELECT id FROM orders WHERE id > {{cursor}} AND {{mine id}} ORDER BY id LIMIT {{limit}}
        execute: UPDATE orders SET reported = reported + 1 WHERE id IN ({{keys}})
        key: id
        cursor: id
        cursor_start: 0
  summary:
    queues: 1
    mode: RUN
    after: [report]
    heartbeat_interval: 300ms
    judge_dead_interval: 3s
    dealer:
      sql:
        select: SELECT id FROM orders WHERE id > {{cursor}} AND id < 10 ORDER BY id LIMIT {{limit}}
        execute: UPDATE orders SET reported = reported + 1 WHERE id IN ({{keys}})
        key: id
        cursor: id
        cursor_start: 0
`

// orders is how many orders there are.
const orders = 400

func newRoster(t *testing.T, url string) *roster {
	t.Helper()
	r := &roster{T: t, dir: t.TempDir(), url: url}
	var err error
	if r.center, err = center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.center.Close() })
	r.db = r.center.DB()
	r.exec(`CREATE TABLE orders (id INTEGER NOT NULL PRIMARY KEY, state VARCHAR(9) NOT NULL DEFAULT 'NEW', broken INTEGER NOT NULL DEFAULT 0,
		reported INTEGER NOT NULL DEFAULT 0)`)
	rows := make([]string, orders)
	for i := range rows {
		rows[i] = fmt.Sprintf("(%d)", i+1)
	}
	r.exec("INSERT INTO orders (id) VALUES " + strings.Join(rows, ", "))
	if err := os.WriteFile(filepath.Join(r.dir, "rota.yaml"), fmt.Appendf(nil, config, strings.ReplaceAll(url, "'", "''")), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *roster) exec(statement string) {
	r.Helper()
	if _, err := r.db.ExecContext(r.Context(), statement); err != nil {
		r.Fatal(err)
	}
}

// start starts rota with its output in a file. It is killed at the end of the test.
func (r *roster) start(args ...string) *exec.Cmd {
	r.Helper()
	cmd := exec.CommandContext(context.Background(), program, args...) // not r.Context, which ends before the cleanup
	cmd.Dir = r.dir
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "ROTA_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	log, err := os.CreateTemp(r.dir, args[0]+"-*.log")
	if err != nil {
		r.Fatal(err)
	}
	cmd.Stderr = log
	r.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && r.Failed() {
			r.Logf("%s:\n%s", strings.Join(args, " "), text)
		}
	})
	return cmd
}

// worker starts a worker, and returns its process.
func (r *roster) worker() *exec.Cmd {
	r.Helper()
	cmd := r.start("worker", "-c", "rota.yaml")
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	return cmd
}

// name returns the name of a worker in the roster.
func name(worker *exec.Cmd) string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s:%d", host, worker.Process.Pid)
}

// console starts a console of the database at the URL, and returns its address.
func (r *roster) console(url string, flags ...string) string {
	r.Helper()
	cmd := r.start(append([]string{"console", "--database", url, "--http", "127.0.0.1:0"}, flags...)...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address := regexp.MustCompile(`http://[0-9.:]+/`).FindString(line)
	if err != nil || address == "" {
		r.Fatalf("the console says %q: %v", line, err)
	}
	return address
}

// kill ends a process as a crash does.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
}
