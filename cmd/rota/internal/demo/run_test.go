package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// A user runs the built program. Here its output goes to a pipe.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("plays the demo several times")
	}
	rota := buildRota(t)
	for _, kind := range testdb.Kinds(t) {
		tests := map[string]func(*testing.T, program){
			"whole": testDefaults, "kept": testKeep, "interrupt": testInterrupt,
		}
		if kind == testdb.SQLite {
			maps.Copy(tests, map[string]func(*testing.T, program){
				"tampered": testTampered, "killed": testKilled, "pipe closed": testPipeClosed, "console": testConsole,
				"timeout": testTimeout,
			})
		}
		for name, test := range tests {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := program{path: rota}
				if kind != testdb.SQLite {
					p.database = testdb.URL(t, kind)
				}
				test(t, p)
			})
		}
	}
}

// The workers of the demo may reach a Galera cluster through a balancer.
func TestRunOnGalera(t *testing.T) {
	if os.Getenv("ROTA_FAULTS") != "all" {
		t.Skip("takes a cluster of its own: make engine-galera runs it")
	}
	nodes := testdb.Galera(t)
	url, _ := testdb.Balanced(t, nodes[0].URL(), nodes[1].URL(), nodes[2].URL())
	testDefaults(t, program{buildRota(t), url})
}

// buildRota builds the program. The race detector of the test's own binary would make the workers too slow.
func buildRota(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "rota")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/dutyrota/rota/cmd/rota").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// program is the built program, and the database for its demo; empty for a file of the demo.
type program struct{ path, database string }

// run is a running demo.
type run struct {
	program
	cmd    *exec.Cmd
	kept   bool   // with --keep
	temp   string // where its temporary folder is
	stdout *os.File
	stderr bytes.Buffer
	read   strings.Builder // of stdout
}

func start(t *testing.T, p program, args ...string) *run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // beyond the demo's own
	r := &run{program: p, temp: t.TempDir(), kept: slices.Contains(args, "--keep")}
	r.cmd = exec.CommandContext(ctx, p.path, append([]string{"demo", "--database", p.database}, args...)...)
	// The user's own settings must not reach the workers.
	r.cmd.Env = append(os.Environ(), "TMPDIR="+r.temp, "ROTA_DATABASE=postgres://nowhere.invalid/", "ROTA_WEIGHT=-1")
	r.cmd.Stderr = &r.stderr
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.stdout, r.cmd.Stdout = in, out
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = out.Close() // the demo has a copy
	t.Cleanup(func() {
		cancel()
		_ = in.Close()
		_ = r.cmd.Wait() // fails if the test has waited already
	})
	return r
}

// until reads the output until it matches.
func (r *run) until(t *testing.T, expression string) []string {
	t.Helper()
	buf := make([]byte, 4096)
	for {
		if m := regexp.MustCompile(expression).FindStringSubmatch(r.read.String()); m != nil {
			return m
		}
		n, err := r.stdout.Read(buf)
		if err != nil {
			t.Fatalf("no %q in\n%s\n%s", expression, r.read.String(), r.stderr.String())
		}
		r.read.Write(buf[:n])
	}
}

// wait reads the rest and returns the exit code.
func (r *run) wait(t *testing.T) int {
	t.Helper()
	var rest bytes.Buffer
	if _, err := rest.ReadFrom(r.stdout); err != nil {
		t.Fatal(err)
	}
	r.read.Write(rest.Bytes())
	if err := r.cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return r.cmd.ProcessState.ExitCode()
}

// alive reports whether the process runs.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	// On Windows FindProcess fails for a process that has ended, and there is no signal 0.
	return err == nil && (runtime.GOOS == "windows" || p.Signal(syscall.Signal(0)) == nil)
}

// gone checks that the workers have ended, and the temporary folder and the tables are removed.
func (r *run) gone(t *testing.T) {
	t.Helper()
	for _, m := range regexp.MustCompile(`started, pid (\d+)`).FindAllStringSubmatch(r.read.String(), -1) {
		pid, _ := strconv.Atoi(m[1])
		eventually(t, "process "+m[1]+" has ended", func() bool { return !alive(pid) })
	}
	if list, err := os.ReadDir(r.temp); err != nil || len(list) > 0 {
		t.Errorf("the folder is still there: %v %v", list, err)
	}
	if r.database != "" && !r.kept {
		removed(t, r.database)
	}
}

// removed checks that the database has none of the demo's tables.
func removed(t *testing.T, url string) {
	t.Helper()
	db, err := openDatabase(t.Context(), url)
	if err != nil {
		t.Fatalf("the tables are still there: %v", err)
	}
	defer db.Close()
	do(t, db, "DROP TABLE orders")
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func testWhole(t *testing.T, r *run) {
	t.Helper()
	if code := r.wait(t); code != 0 || r.stderr.Len() > 0 {
		t.Fatalf("exit %d\n%s\n%s", code, r.read.String(), r.stderr.String())
	}
	for _, want := range []string{
		`JOINED .*worker 4`,
		`RELEASED +\d +worker \d  worker 4`,
		`(?s)killed with SIGKILL.*EXPIRED .*worker 2.*TAKEN_OVER +\d +worker 2  worker \d`,
		`worker 4  S[A-Z]+ +[0-9.]+s +2\n`,
		`100 %: 20,000 of 20,000 orders`,
		`LEFT .*worker 4`,
		`(?m)^ok     each order took effect exactly once$`,
	} {
		if !regexp.MustCompile(want).MatchString(r.read.String()) {
			t.Errorf("no %s in\n%s", want, r.read.String())
		}
	}
	if strings.Contains(r.read.String(), "\x1b") {
		t.Error("escape sequences in a pipe")
	}
	r.gone(t)
}

func testDefaults(t *testing.T, p program) {
	r := start(t, p)
	testWhole(t, r)
	if strings.Contains(r.read.String(), "   SELECT ") {
		t.Errorf("there are SELECTs without --proof:\n%s", r.read.String())
	}
	if p.database == "" {
		testNext(t, r, "demo", "queue list", "worker")
	}
}

// testNext pastes the commands that the demo proposes into a shell. The last one is a worker, which runs until it gets
// a signal.
func testNext(t *testing.T, r *run, want ...string) {
	t.Helper()
	_, next, _ := strings.Cut(r.read.String(), "\nWhat to do next:\n")
	commands := regexp.MustCompile(`(?m)^    (\S.*)$`).FindAllStringSubmatch(next, -1)
	if len(commands) != len(want) {
		t.Fatalf("%d commands to paste, want %d:\n%s", len(commands), len(want), r.read.String())
	}
	dir := t.TempDir()
	for i, m := range commands {
		if !strings.Contains(m[1], " "+want[i]+" ") {
			t.Errorf("command %d is %s, want %s", i+1, m[1], want[i])
		}
		shell := exec.CommandContext(t.Context(), "sh", "-c", "exec "+m[1])
		shell.Dir, shell.Env = dir, ownEnviron()
		var out output
		shell.Stdout, shell.Stderr = &out, &out
		if err := shell.Start(); err != nil {
			t.Fatal(err)
		}
		if want[i] == "worker" {
			eventually(t, "the worker owns queue 7", func() bool { return strings.Contains(out.String(), `"queue":"7"`) })
			if err := shell.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
		}
		if err := shell.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", m[1], err, out.String())
		}
	}
}

// output is the output of a process that still runs.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// testKeep checks that --keep leaves the files and the database, and --proof shows the SELECTs.
func testKeep(t *testing.T, p program) {
	keep := filepath.Join(t.TempDir(), "new", "my folder")
	r := start(t, p, "--keep", keep, "--proof")
	testWhole(t, r)
	if n := strings.Count(r.read.String(), "   SELECT "); n != 6 {
		t.Errorf("%d SELECTs with --proof, want 6", n)
	}
	testNext(t, r, "event list", "queue list", "worker")
	testKept(t, r, keep)
	kept, err := center.Open(t.Context(), anydb.URL(cmp.Or(p.database, "sqlite:"+filepath.Join(keep, "rota.db"))), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	var n int
	const settled = `SELECT COUNT(*) FROM orders WHERE effects = 1`
	if err := kept.DB().QueryRowContext(t.Context(), settled).Scan(&n); err != nil || n != orderCount {
		t.Errorf("the kept database has %d settled orders, want %d (%v)", n, orderCount, err)
	}
}

// testKept checks the files of --keep: rota.yaml is valid and agrees with what the demo says, and there are logs.
func testKept(t *testing.T, r *run, dir string) {
	t.Helper()
	file, err := config.Load(filepath.Join(dir, "rota.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := file.Tasks[0].Settings; !strings.HasPrefix(file.Database, cmp.Or(r.database, "sqlite:")) || s.Queues != queueCount ||
		s.HeartbeatInterval != 500*time.Millisecond || s.JudgeDeadInterval != 6*time.Second {
		t.Errorf("rota.yaml says %+v", file)
	}
	if !file.Process.ApplySettings {
		t.Error("a changed setting of rota.yaml has no effect")
	}
	if strings.Contains(file.Tasks[0].SQL.Execute, "state = 'NEW'") {
		t.Error("the condition of the dealer hides a double effect")
	}
	info, err := os.Stat(filepath.Join(dir, "rota.yaml"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the password: %v, %v", info.Mode(), err)
	}
	if logs, err := filepath.Glob(filepath.Join(dir, "worker-*.log")); err != nil || len(logs) == 0 {
		t.Errorf("the logs are %v, %v", logs, err)
	}
}

// testTampered checks that the proof fails if one order takes effect twice and another one never.
func testTampered(t *testing.T, p program) {
	keep := t.TempDir()
	r := start(t, p, "--keep", keep)
	r.until(t, `JOINED .*worker 4`)
	c, err := center.Open(t.Context(), anydb.URL("sqlite:"+filepath.Join(keep, "rota.db")), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	do(t, c.DB(), `UPDATE orders SET effects = effects + 1 WHERE id = 4711`, `UPDATE orders SET state = 'SETTLED' WHERE id = 20000 AND state = 'NEW'`)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	code := r.wait(t)
	want := "rota: it is false that each order took effect exactly once: got 19998, want 20000\n"
	if code != 1 || r.stderr.String() != want {
		t.Errorf("exit %d: %s", code, r.stderr.String())
	}
	if !strings.Contains(r.read.String(), "FALSE  each order took effect exactly once") {
		t.Errorf("the proof says\n%s", r.read.String())
	}
	r.gone(t)
}

// testTimeout checks that a failed demo says why and leaves its files.
func testTimeout(t *testing.T, p program) {
	r := start(t, p, "--timeout", "6s") // the pauses between the selects take longer
	code := r.wait(t)
	if want := `^rota: scene ".+": not within --timeout 6s\n$`; code != 1 || !regexp.MustCompile(want).MatchString(r.stderr.String()) {
		t.Errorf("exit %d: %s", code, r.stderr.String())
	}
	kept := r.until(t, `(?m)^Files kept in (.*)$`)[1]
	testKept(t, r, kept)
	if err := os.RemoveAll(kept); err != nil {
		t.Fatal(err)
	}
	r.gone(t)
}

func testInterrupt(t *testing.T, p program) {
	r := start(t, p)
	r.until(t, `JOINED .*worker 3`)
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(t); code != 1 || !strings.HasSuffix(r.stderr.String(), "interrupt signal received\n") {
		t.Errorf("exit %d: %s", code, r.stderr.String())
	}
	r.gone(t)
}

// testConsole checks that the console shows the demo, and that the workers go on after the proof until Ctrl-C.
func testConsole(t *testing.T, p program) {
	r := start(t, p, "--console")
	address := r.until(t, `The console: (http://\S+)`)[1]
	r.until(t, `JOINED .*worker 3`)
	page := func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"workers", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	eventually(t, "the page shows the three workers", func() bool { return strings.Contains(page(), "3 processes") })
	r.until(t, `workers go on with new orders`)
	r.until(t, `worker 7 +started`)
	eventually(t, "the page shows three new workers", func() bool { return strings.Contains(page(), "3 processes") && strings.Contains(page(), "Drain") })
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := r.wait(t); code != 0 {
		t.Errorf("exit %d: %s", code, r.stderr.String())
	}
	r.gone(t)
}

func testPipeClosed(t *testing.T, p program) {
	r := start(t, p)
	r.until(t, `JOINED .*worker 3`)
	if err := r.stdout.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err == nil || r.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v: %s", err, r.stderr.String())
	}
	r.gone(t)
}

// testKilled checks that the workers end with a demo that is killed.
func testKilled(t *testing.T, p program) {
	if runtime.GOOS != "linux" {
		t.Skip("other kernels do not end the children of a killed process")
	}
	r := start(t, p)
	r.until(t, `JOINED .*worker 3`)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.wait(t)
	if err := os.RemoveAll(r.temp); err != nil { // the killed demo could not
		t.Fatal(err)
	}
	if err := os.Mkdir(r.temp, 0o700); err != nil {
		t.Fatal(err)
	}
	r.gone(t)
}

func TestWorkerThatFails(t *testing.T) {
	for _, code := range []string{"3", "0"} {
		program := writeScript(t, "echo first words\necho $1 $2 $3: no luck >&2\nexit "+code+"\n")
		t.Setenv("TMPDIR", t.TempDir())
		var out strings.Builder
		err := Run(t.Context(), Options{Out: &out, Program: program})
		want := `^scene "3 workers start, share .+": worker \d \(pid \d+\) ended unexpectedly: exit status ` + code +
			`; last line of its log: worker -c rota.yaml: no luck$`
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("the error is %v", err)
		}
		if !strings.Contains(out.String(), "Files kept in ") {
			t.Errorf("no files are kept:\n%s", out.String())
		}
	}
}

func TestRunEndsItsWorkers(t *testing.T) {
	program := writeScript(t, "exec sleep 600\n")
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &trigger{word: "worker 3 started", pull: cancel}
	if err := Run(ctx, Options{Out: out, Program: program}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	started := regexp.MustCompile(`started, pid (\d+)`).FindAllStringSubmatch(out.String(), -1)
	if len(started) != 3 {
		t.Errorf("%d workers were started:\n%s", len(started), out.String())
	}
	for _, m := range started {
		if pid, err := strconv.Atoi(m[1]); err != nil || alive(pid) {
			t.Errorf("process %s still runs (%v)", m[1], err)
		}
	}
}

// trigger is an output that calls pull when it gets the word.
type trigger struct {
	strings.Builder
	word string
	pull func()
}

func (w *trigger) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.word) {
		w.pull()
	}
	return w.Builder.Write(p)
}

func TestRefusals(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"the directory must be empty or new, but contains mine": {Keep: full},
		"mkdir " + filepath.Join(full, "mine") + ": ":           {Keep: filepath.Join(full, "mine", "x")},
		"--database: the demo makes a SQLite file of its own":   {Database: "SQLite:" + filepath.Join(full, "db")},
		"unknown scheme": {Database: "http://localhost"},
		"--database postgres://u@127.0.0.1:1/x: cannot connect: ": {Database: "postgres://u:secret@127.0.0.1:1/x"},
	} {
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		var out strings.Builder
		o.Out = &out
		err := Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q, got %v", want, err)
		}
		if list, err := os.ReadDir(temp); err != nil || len(list) > 0 {
			t.Errorf("%s: files in the temporary directory: %v, %v", want, list, err)
		}
	}
}

// A database that has a table of one of the demo's names is refused, and stays as it is.
func TestRefusesTables(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		if strings.HasPrefix(url, "sqlite:") {
			return // the demo makes a file of its own
		}
		t.Setenv("TMPDIR", t.TempDir())
		pool, err := anydb.URL(url).Pool(sqldb.RoleDealers, sqldb.PoolOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		do(t, pool, `CREATE TABLE mine (id INTEGER PRIMARY KEY)`)
		for what, name := range map[string]string{"TABLE": "orders", "VIEW": "schedule_of_mine"} {
			as := map[string]string{"TABLE": "(id INTEGER PRIMARY KEY)", "VIEW": "AS SELECT id FROM mine"}[what]
			do(t, pool, "CREATE "+what+" "+name+" "+as)
			var out strings.Builder
			err := Run(t.Context(), Options{Database: url, Out: &out, Program: "none"})
			if want := ": " + what + " " + name + " exists; the demo needs a database without orders and schedule_... tables"; err == nil ||
				!strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") || out.Len() > 0 {
				t.Errorf("want %q, got %v\n%s", want, err, out.String())
			}
			do(t, pool, "DROP "+what+" "+name) // it is still there
		}
		err = Run(t.Context(), Options{Database: url, Out: io.Discard, Program: "none"})
		if err == nil || !strings.Contains(err.Error(), "start worker 1: ") {
			t.Errorf("a table of another name: %v", err)
		}
		do(t, pool, "DROP TABLE mine")
		removed(t, url)
	})
}
