package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// fileShop is a folder of payments that files.py books: 25 customers with 20 files each. The last file of each fifth
// customer is at fault. The amount in the first file of the customer late is not known yet.
type fileShop struct {
	*programShop
	env []string
}

const (
	fileCustomers = 25
	filesOfEach   = 20
	allFiles      = fileCustomers * filesOfEach
	brokenFiles   = fileCustomers / 5
	lateFiles     = 3
)

func newFileShop(t *testing.T) fileShop {
	t.Helper()
	s := fileShop{programShop: &programShop{T: t, dir: t.TempDir()}}
	for variable, name := range map[string]string{"INBOX": "inbox", "DONE": "done", "BROKEN": "broken", "LEDGER": "ledger"} {
		s.env = append(s.env, variable+"="+name)
		if name != "ledger" {
			if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"files.py", "files.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../examples/workers", name))
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.Replace(string(text), "batch_timeout: 1m", `batch_timeout: 1m
    heartbeat_interval: 500ms
    judge_dead_interval: 2500ms
    sleep_time_nodata: 100ms
    item_retry: 200ms
    item_retry_max: 500ms
    rate_per_second: 150`, 1))
		writeFile(t, filepath.Join(s.dir, strings.Replace(name, "files.yaml", "rota.yaml", 1)), string(text))
	}
	for c := range fileCustomers {
		for i := range filesOfEach {
			amount := fmt.Sprint(i)
			if c%5 == 0 && i == filesOfEach-1 {
				amount = "much"
			}
			s.put(fmt.Sprintf("c%d-%04d.txt", c, i), amount)
		}
	}
	for i := range lateFiles {
		s.put(fmt.Sprintf("late-%04d.txt", i), strings.Repeat("7", i))
	}
	return s
}

// put writes a file of the inbox.
func (s fileShop) put(name, text string) {
	s.Helper()
	inbox := filepath.Join(s.dir, "inbox")
	writeFile(s.T, filepath.Join(inbox, "."+name), text)
	if err := os.Rename(filepath.Join(inbox, "."+name), filepath.Join(inbox, name)); err != nil {
		s.Fatal(err)
	}
}

// files returns the names of the files of a folder.
func (s fileShop) files(folder string) []string {
	s.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, folder))
	if err != nil {
		s.Fatal(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// booked returns the files of the ledger, in the order in which they were booked first, and the number of repetitions.
func (s fileShop) booked() (names []string, repeated int) {
	s.Helper()
	text, _ := os.ReadFile(filepath.Join(s.dir, "ledger")) // nothing may be booked yet
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " ")
		if seen[name] {
			repeated++
			continue
		}
		seen[name] = true
		names = append(names, name)
	}
	return names, repeated
}

// A program selects files, and peeks, counts and discards them, while its processes and a worker are killed with SIGKILL
// and another worker joins. Each file is booked, those of a customer in their order. A file that fails holds back those
// of its customer alone.
func TestProgramSelectsItsItems(t *testing.T) {
	t.Parallel()
	testdb.Language(t, "python3")
	s := newFileShop(t)
	a := startWorker(t, s.dir, s.env...)
	s.eventually("some are booked", func() bool { return len(s.files("done")) > allFiles/10 })
	if s.killPrograms(a, "files.py") == 0 {
		t.Error("no process of files.py was killed")
	}
	b := startWorker(t, s.dir, s.env...)
	s.eventually("a half is booked", func() bool { return len(s.files("done")) > allFiles/2 })
	programs := children(t, a.cmd.Process.Pid)
	if len(programs) == 0 || len(s.files("inbox")) < allFiles/10 {
		t.Error("the worker is killed too late")
	}
	a.signal(syscall.SIGKILL)
	s.eventually("the programs of the killed worker are dead", func() bool { return !slices.ContainsFunc(programs, isAlive) })
	s.eventually("all files but the late ones are gone", func() bool { return len(s.files("inbox")) == lateFiles })
	if names, _ := s.booked(); slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "late-") }) {
		t.Error("a file was booked before the failing one of its customer")
	}
	s.put("late-0000.txt", "7")
	s.eventually("the late files are booked", func() bool { return len(s.files("inbox")) == 0 })
	b.signal(syscall.SIGTERM)
	if code := b.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.judge()
}

// judge counts what has become of the files.
func (s fileShop) judge() {
	s.Helper()
	names, repeated := s.booked()
	s.Logf("%d lines of the ledger are repetitions", repeated)
	booked := slices.Sorted(slices.Values(names))
	if done := s.files("done"); len(done) != allFiles+lateFiles-brokenFiles || !slices.Equal(done, booked) {
		s.Errorf("%d files are done, and %d are booked", len(done), len(names))
	}
	if broken := s.files("broken"); len(broken) != brokenFiles {
		s.Errorf("the files %q are broken, want %d", broken, brokenFiles)
	}
	last := map[string]string{}
	for _, name := range names {
		customer, _, _ := strings.Cut(name, "-")
		if name < last[customer] {
			s.Errorf("%s was booked behind %s", name, last[customer])
		}
		last[customer] = name
	}
	stdout, stderr, code := runRota(s.T, s.dir, "item", "list", "book", "-c", "rota.yaml")
	if code != 0 || strings.Count(stdout, "the amount is no number") != brokenFiles {
		s.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// A program that selects from a data database runs the fence of that: each order is paid once, while the program is
// killed.
func TestProgramSelectsFromADataDatabase(t *testing.T) {
	t.Parallel()
	testdb.Language(t, "python3")
	const orders = 400
	s := newProgramShop(t, testdb.URL(t, testdb.SQLite), orders)
	writeFile(t, filepath.Join(s.dir, "rota.yaml"), `
database: sqlite:roster.db
data: {shop: "`+s.url+`"}
tasks:
  settle:
    queues: 2
    database: shop
    rate_per_second: 200
    sleep_time_nodata: 50ms
    dealer: {command: [python3, dealer.py], answers: [select], env: [SHOP]}
`)
	writeFile(t, filepath.Join(s.dir, "dealer.py"), `
import settle

def reply(shop, request):
    if request["op"] != "select" or request["database"] != "shop":
        return execute(shop, request)
    orders = shop.db.execute(
        "SELECT id, amount FROM orders WHERE state = 'NEW' AND id % ? = ? ORDER BY id LIMIT ?",
        [request["queue_total"], request["queue_index"], request["limit"]],
    )
    return {"items": [{"key": str(id), "row": {"id": id, "amount": amount}} for id, amount in orders]}

execute, settle.Shop.reply = settle.Shop.reply, reply
settle.main()
`)
	if stdout, stderr, code := runRota(t, s.dir, "migrate", "up", "-c", "rota.yaml"); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	p := startWorker(t, s.dir, "SHOP="+s.url)
	s.eventually("some are paid", func() bool { return count(t, s.db, "payments") > orders/10 })
	if s.killPrograms(p, "dealer.py") == 0 {
		t.Error("no process of dealer.py was killed")
	}
	const good = orders - orders/100 // the others have a negative amount
	s.eventually("all are paid", func() bool { return count(t, s.db, "orders WHERE state = 'SETTLED'") == good })
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := count(t, s.db, "payments"); n != good {
		t.Errorf("%d payments, want %d", n, good)
	}
}

// The program passes the check of all that it answers, and one that does not select fails it.
func TestWorkerCheckAnswers(t *testing.T) {
	testdb.Language(t, "python3")
	s := newFileShop(t)
	for _, entry := range s.env {
		variable, name, _ := strings.Cut(entry, "=")
		t.Setenv(variable, name)
	}
	check := []string{"worker", "check", "--timeout", "1m", "--answers", "select,discard,backlog,peek", "--env", "INBOX,DONE,BROKEN,LEDGER", "python3"}
	stdout, stderr, code := runRota(t, s.dir, append(check, "files.py")...)
	if code != 0 || strings.Contains(stdout, "FAIL") || strings.Count(stdout, "ok  ") != 15 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "files.py"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(s.dir, "all.py"), strings.Replace(string(text), `== queue["queue_index"]`, `>= 0`, 1))
	const want = "FAIL  select: two queues share no item and no order key ("
	if stdout, _, code := runRota(t, s.dir, append(check, "all.py")...); code != 1 || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	for answers, want := range map[string]string{
		"select,peak": "rota: --answers (select, peak): peak is no operation: it may have select, discard, backlog, peek\n",
		"peek":        "rota: --answers (peek): must have select: with sql, the other operations are SQL, too\n",
	} {
		if _, stderr, code := runRota(t, s.dir, "worker", "check", "--answers", answers, "cat"); code != 2 || stderr != want {
			t.Errorf("%s: exit code %d, %s", answers, code, stderr)
		}
	}
}

// In mode RUN the program is asked for the files of a sweep. The run fails, and names the files that have failed:
// nothing discards them. When they are mended, a rerun books them and those behind them, and nothing else.
func TestProgramSelectsForARun(t *testing.T) {
	t.Parallel()
	testdb.Language(t, "python3")
	s := newFileShop(t)
	config, err := os.ReadFile(filepath.Join(s.dir, "rota.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(s.dir, "rota.yaml"), strings.NewReplacer(
		"queues: 4", "queues: 4\n    mode: RUN\n    queue_max_attempts: 1",
		"[select, discard, backlog, peek]", "[select]").Replace(string(config)))
	r := &testRoster{T: t, url: "sqlite:files.db", dir: s.dir}
	w := startWorker(t, s.dir, s.env...)
	s.eventually("the worker has defined the task type", func() bool {
		_, _, code := r.try("task show book")
		return code == 0
	})
	id := strings.TrimSpace(r.run("run submit book --key monday"))
	if _, _, code := r.try("run wait " + id); code != 1 {
		t.Errorf("exit code %d of a run that has failed", code)
	}
	failed := []string{"c0-0019.txt", "c10-0019.txt", "c15-0019.txt", "c20-0019.txt", "c5-0019.txt", "late-0000.txt"}
	r.wantOutput("run show "+id,
		fmt.Sprintf(`0 of 4 queues, 4 failed, %d items, %d items failed`, allFiles-brokenFiles, len(failed)))
	names := regexp.MustCompile(`\S+\.txt`).FindAllString(r.run("run show "+id), -1)
	slices.Sort(names)
	if !slices.Equal(names, failed) {
		t.Errorf("the run names %q, want %q", names, failed)
	}
	waiting := append(slices.Clone(failed), "late-0001.txt", "late-0002.txt")
	if left := s.files("inbox"); !slices.Equal(left, waiting) {
		t.Errorf("the files %q are left, want %q", left, waiting)
	}

	for _, name := range failed {
		s.put(name, "7")
	}
	r.run("run rerun " + id)
	if stdout, stderr, code := r.try("run wait " + id); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	r.wantOutput("run show "+id, fmt.Sprintf(`4 of 4 queues, %d items, `, allFiles+lateFiles))
	if names, repeated := s.booked(); len(names) != allFiles+lateFiles || repeated > 0 {
		t.Errorf("%d files are booked, %d of them again, want each of %d once", len(names), repeated, allFiles+lateFiles)
	}
	w.signal(syscall.SIGTERM)
	if code := w.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
