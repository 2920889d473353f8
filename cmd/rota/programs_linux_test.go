package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
)

// Orders pass through programs in Python, Node and shell, while programs and a worker are killed with SIGKILL and another
// worker joins, and the programs lose their connections to the database. Each order is paid once, as that is fenced. It
// is notified and labelled at least once. The orders at fault are dead, and no other one is. Only Linux kills a program
// with its worker.
func TestProgramsOfOtherLanguages(t *testing.T) {
	t.Parallel()
	testdb.Language(t, "python3", "node", "jq")
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		testProgramsOfOtherLanguages(t, url)
	})
}

func testProgramsOfOtherLanguages(t *testing.T, url string) {
	rows := 10_000
	if testing.Short() {
		rows = 1_000
	}
	s := newProgramShop(t, url, rows*7/10)
	cut := func() {}
	if !strings.HasPrefix(url, "sqlite:") {
		through, proxy := testdb.Through(t, url)
		s.env[0], cut = "SHOP="+through, proxy.Cut
	}
	notify := s.startNotify()
	a := s.startWorker()
	s.eventually("some are labelled", func() bool { return count(t, s.db, "orders WHERE state = 'LABELLED'") > rows/20 })
	for _, name := range []string{"settle.py", "label.sh"} {
		if s.killPrograms(a, name) == 0 {
			t.Errorf("no process of %s was killed", name)
		}
	}
	b := s.startWorker()
	s.eventually("the workers share the queues", func() bool { return s.owners() == 2 })
	notify()
	notify = s.startNotify()
	s.eventually("a half is paid", func() bool { return count(t, s.db, "payments") > rows/2 })
	programs := children(t, a.cmd.Process.Pid)
	if len(programs) == 0 {
		t.Error("the worker has no programs")
	}
	a.signal(syscall.SIGKILL)
	s.insert(rows) // however late the worker was killed, the other one has work
	s.eventually("the programs of the killed worker are dead", func() bool { return !slices.ContainsFunc(programs, isAlive) })
	cut()
	s.eventually("all orders are labelled or broken", func() bool {
		return count(t, s.db, "orders WHERE state NOT IN ('LABELLED', 'BROKEN')") == 0
	})
	b.signal(syscall.SIGTERM)
	if code := b.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	notify()
	s.judge()
}

// The programs of examples/workers pass the check as the page starts it, and one that speaks another protocol does not.
func TestWorkerCheck(t *testing.T) {
	testdb.Language(t, "python3", "node", "jq")
	s := newProgramShop(t, testdb.URL(t, testdb.SQLite), 100)
	s.startNotify()
	t.Setenv("SHOP", s.url)
	t.Setenv("LABELS", filepath.Join(s.dir, "labels"))
	writeFile(t, filepath.Join(s.dir, "secret"), "secret\n")
	page, err := os.ReadFile("../../docs/workers.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^rota worker check (.+)$`).FindAllStringSubmatch(string(page), -1)
	if len(commands) != 3 {
		t.Errorf("docs/workers.md has %d checks, want one of each program", len(commands))
	}
	check := []string{"worker", "check", "--timeout", "1m"}
	for _, command := range commands {
		words, err := exec.Command("sh", "-c", `printf '%s\n' `+strings.ReplaceAll(command[1], ":8400/", ":"+s.port+"/")).Output()
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")
		stdout, stderr, code := runRota(t, s.dir, slices.Concat(check, args)...)
		if code != 0 || strings.Contains(stdout, "FAIL") || strings.Count(stdout, "ok  ") < 9 {
			t.Errorf("%s: exit code %d\n%s%s", command[0], code, stdout, stderr)
		}
	}
	stdout, stderr, code := runRota(t, s.dir, append(check, "cat")...)
	if code != 1 || !strings.HasPrefix(stdout, "FAIL  one row (") || !strings.Contains(stderr, "rota: 8 of 9 checks failed") {
		t.Errorf("cat: exit code %d\n%s%s", code, stdout, stderr)
	}
	for want, args := range map[string][]string{
		"rota: worker check: missing argument URL or COMMAND (see rota worker check --help)\n": {"worker", "check"},
		"rota: --row must be a JSON object":                                                    {"worker", "check", "--row", "null", "cat"},
		"rota: --timeout (0s) must be positive":                                                {"worker", "check", "--timeout", "0", "cat"},
		"rota: --timeout (-5s) must be positive":                                               {"worker", "check", "--timeout", "-5s", "cat"},
		"rota: --secret-file is for a service, and cat is a command":                           {"worker", "check", "--secret-file", "secret", "cat"},
		"rota: --ca-file is for a service, and cat is a command":                               {"worker", "check", "--ca-file", "ca.pem", "cat"},
		"rota: --env is for a command, and HTTP://127.0.0.1:1/ is a URL":                       {"worker", "check", "--env", "PATH", "HTTP://127.0.0.1:1/"},
		"rota: --row must be a JSON object: ":                                                  {"worker", "check", "--row", "x", "cat"},
		"rota: --secret-file (absent): no such file":                                           {"worker", "check", "--secret-file", "absent", "http://h/"},
		`rota: worker check: unexpected argument "x" behind`:                                   {"worker", "check", "http://h/", "x"},
	} {
		if _, stderr, code := runRota(t, s.dir, args...); code != 2 || !strings.HasPrefix(stderr, want) {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	if stdout, _, code := runRota(t, s.dir, "worker", "check", "--schema"); code != 0 || !strings.Contains(stdout, `"$schema"`) {
		t.Errorf("--schema: exit code %d\n%s", code, stdout)
	}
}

// programShop is a copy of the folder examples/workers, with orders. In each of the three steps 1 % of them are at fault.
type programShop struct {
	*testing.T
	dir, port, url string
	env            []string // of the workers
	rows           int
	db             *sql.DB
}

func newProgramShop(t *testing.T, url string, rows int) *programShop {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	s := &programShop{
		T: t, dir: t.TempDir(), port: port, url: url, env: []string{"SHOP=" + url, "LABELS=labels", "NOTIFY_SECRET=secret"},
	}
	if err := os.CopyFS(s.dir, os.DirFS("../../examples/workers")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(s.dir, "label.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, "rota.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, strings.NewReplacer("127.0.0.1:8400", "127.0.0.1:"+port,
		"sqlite:shop.db", url, "[python3,", "["+testdb.Python(t, url)+",", "batch_timeout: 1m",
		"batch_timeout: 1m\n    heartbeat_interval: 1s\n    judge_dead_interval: 5s\n    sleep_time_nodata: 100ms\n    rate_per_second: "+
			strconv.Itoa(rows/8)).Replace(string(text)))
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s.db = c.DB()
	tables, err := os.ReadFile(filepath.Join(s.dir, "schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for statement := range strings.SplitSeq(strings.TrimSpace(string(tables)), ";\n") {
		execute(t, s.db, statement)
	}
	s.insert(rows)
	return s
}

// insert adds orders until there are so many.
func (s *programShop) insert(rows int) {
	s.Helper()
	var values strings.Builder
	for id := s.rows + 1; id <= rows; id++ {
		amount, email, weight := id, "x@example.com", 1
		switch id % 100 {
		case 1:
			amount = -1
		case 2:
			email = "x"
		case 3:
			weight = 0
		}
		fmt.Fprintf(&values, ", (%d, %d, '%s', %d)", id, amount, email, weight)
	}
	execute(s.T, s.db, "INSERT INTO orders (id, amount, email, weight) VALUES "+strings.TrimPrefix(values.String(), ", "))
	s.rows = rows
}

func (s *programShop) eventually(what string, ok func() bool) {
	s.Helper()
	for deadline := time.Now().Add(3 * waitLimit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("timeout: %s", what)
		}
	}
}

func (s *programShop) startWorker() *process {
	s.Helper()
	return startWorker(s.T, s.dir, s.env...)
}

// startNotify starts the service. kill kills it.
func (s *programShop) startNotify() (kill func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	cmd := exec.CommandContext(ctx, "node", "notify.mjs")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PORT="+s.port, "SECRET=secret", "OUTBOX=outbox")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	kill = func() {
		cancel()
		_ = cmd.Wait() // it is killed
	}
	s.Cleanup(kill)
	s.eventually("the service listens", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return kill
}

// children returns the processes that a process has started.
func children(t *testing.T, pid int) (list []int) {
	t.Helper()
	threads, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range threads {
		text, _ := os.ReadFile(file) // the thread may have ended
		for field := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, child)
		}
	}
	return list
}

// isAlive reports whether a process runs, and is not merely waited for.
func isAlive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, state, _ := bytes.Cut(stat, []byte(") "))
	return err == nil && !bytes.HasPrefix(state, []byte("Z"))
}

// killPrograms kills the processes of a program.
func (s *programShop) killPrograms(worker *process, name string) (killed int) {
	s.Helper()
	for _, pid := range children(s.T, worker.cmd.Process.Pid) {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err != nil || !bytes.Contains(line, []byte(name)) {
			continue
		}
		if syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

func (s *programShop) owners() (n int) {
	s.Helper()
	err := s.db.QueryRowContext(s.Context(), "SELECT count(DISTINCT cur_server) FROM schedule_queue WHERE task_type = 'settle'").Scan(&n)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// judge counts what has become of the orders. Records of items that are not dead may be left: a kill or a lost connection
// can take the answer to a commit, so that an order has passed the step in which it failed without anybody knowing (X6).
func (s *programShop) judge() {
	s.Helper()
	part := s.rows / 100
	for from, want := range map[string]int{
		"orders WHERE state = 'LABELLED'":               s.rows - 3*part,
		"orders WHERE amount < 0 AND state = 'BROKEN'":  part,
		"orders WHERE email = 'x' AND state = 'BROKEN'": part,
		"orders WHERE weight = 0 AND state = 'BROKEN'":  part,
		"payments": s.rows - part,
		"(SELECT order_id FROM payments GROUP BY order_id) p":              s.rows - part,
		"schedule_failed_item WHERE state = 'DEAD'":                        3 * part,
		"orders WHERE note LIKE 'the amount is negative%'":                 part,
		"payments p JOIN orders o ON o.id = p.order_id WHERE o.amount < 0": 0,
	} {
		if n := count(s.T, s.db, from); n != want {
			s.Errorf("%d of %s, want %d", n, from, want)
		}
	}
	s.wantLines("outbox", s.rows-2*part)
	s.wantLines("labels", s.rows-3*part)
}

// wantLines checks that a file has so many different orders.
func (s *programShop) wantLines(name string, want int) {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.Fatal(err)
	}
	lines := strings.Fields(string(text))
	all := len(lines)
	slices.Sort(lines)
	if n := len(slices.Compact(lines)); n != want {
		s.Errorf("%s has %d orders, want %d", name, n, want)
	}
	s.Logf("%s: %d of %d lines are repetitions", name, all-want, all)
}
