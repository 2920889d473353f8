package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// spy writes all that a program can find about its worker into a file: its own environment, and the worker's
// environment and arguments. The worker starts several at a time, so each writes a file of its own first.
const spy = `env >seen.$$
for file in environ cmdline; do
	tr '\0' '\n' <"/proc/$PPID/$file" >>seen.$$
done
echo "the end" >>seen.$$
mv seen.$$ seen
exec cat >/dev/null
`

// A program finds no secret of the worker and of another dealer: neither in its own environment, nor in the environment
// and the arguments of the worker. It gets the variables that its dealer names. The worker has its secrets all the same.
// The test may run as root, which can read what belongs to any process.
func TestProgramFindsNoSecrets(t *testing.T) {
	t.Parallel()
	db, dir := openOrders(t, testdb.URL(t, testdb.SQLite), 4)
	text, err := os.ReadFile(filepath.Join(dir, "rota.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	database, _, _ := strings.Cut(strings.TrimPrefix(string(text), "database: "), "\n")
	writeFile(t, filepath.Join(dir, "spy.sh"), spy)
	writeFile(t, filepath.Join(dir, "rota.yaml"), `tasks:
  settle:
    queues: 1
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'NEW' AND mod(id, {{total}}) = {{index}} ORDER BY id LIMIT {{limit}}
        key: id
      command: [sh, spy.sh]
      env: [SHOP]
  notify:
    queues: 1
    dealer:
      sql:
        select: SELECT id FROM orders WHERE state = 'SETTLED' AND mod(id, {{total}}) = {{index}} ORDER BY id LIMIT {{limit}}
        key: id
      http: {url: "http://127.0.0.1:1/", secret_variable: HOOK_SECRET}
`)
	p := startRota(t, dir, []string{
		"ROTA_DATABASE=" + database, "HOOK_SECRET=hook-secret", "PGPASSWORD=pg-secret", "SHOP=its-own",
		"LC_ALL=C", "GOMEMLIMIT=1GiB",
	}, "worker", "-c", "rota.yaml", "--data", "other=postgres://app:data-secret@127.0.0.1:1/d", "--http", "127.0.0.1:0")
	var seen string
	eventually(t, "the program has looked", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "seen")) // it may not have begun
		seen = string(text)
		return strings.HasSuffix(seen, "the end\n")
	})
	for _, secret := range []string{"ROTA_DATABASE", database, "hook-secret", "pg-secret", "data-secret"} {
		if strings.Contains(seen, secret) {
			t.Errorf("the program sees %s:\n%s", secret, seen)
		}
	}
	for _, want := range []string{"SHOP=its-own\n", "LC_ALL=C\n", "ROTA_PROTOCOL=1\n", "worker\n-c\nrota.yaml\n--data\n", "PATH="} {
		if !strings.Contains(seen, want) {
			t.Errorf("the program does not see %q:\n%s", want, seen)
		}
	}
	if n := strings.Count(seen, "GOMEMLIMIT=1GiB\n"); n != 1 {
		t.Errorf("%d processes have the variable of Go's runtime, want the worker and not the program:\n%s", n, seen)
	}
	eventually(t, "both task types have joined", func() bool { return count(t, db, "schedule_server") == 2 })
	if maps, err := os.Stat("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/mem"); err == nil && maps.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Error("other processes of its user may read the worker's memory")
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
