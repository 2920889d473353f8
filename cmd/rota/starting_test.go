package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

// What commands say while a worker is making the file, the tables and its task types.
const (
	makingFile   = `cannot connect: there is no such file: run "rota migrate up"; if a worker has just started, it is making the tables: look again in a moment`
	makingTables = `the database has no Rota tables: run "rota migrate up"; if a worker has just started, it is making the tables: look again in a moment`
	makingTasks  = `find settle: unknown task type, as there is none yet; if a worker has just started, it is making its own: look again in a moment`
)

// A command beside a worker that has just started says in one line what the worker is making, and exits 1, whatever the
// worker has made until then. Then it lists the queues.
func TestQueueListBesideAWorkerThatStarts(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "rota.yaml"), "database: "+url+"\ntasks:\n  settle:\n    queues: 4"+goodDealer)
		list := func() (stdout, stderr string, code int) {
			return runRota(t, dir, "queue", "list", "settle", "-o", "csv")
		}
		want := func(text string) {
			t.Helper()
			stdout, stderr, code := list()
			if code != 1 || stdout != "" || !strings.HasSuffix(stderr, text+"\n") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, stdout %q, stderr %s\nwant %s", code, stdout, stderr, text)
			}
		}
		if strings.HasPrefix(url, "sqlite:") {
			want(makingFile)
		}
		pool, err := anydb.URL(url).Pool(sqldb.RoleDealers, sqldb.PoolOptions{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		execute(t, pool, "CREATE TABLE orders (id INTEGER PRIMARY KEY, state VARCHAR(9), settled_by VARCHAR(150), times INTEGER)")
		want(makingTables)
		// The last one is between two reads of the command: the worker has just made the task type.
		line := regexp.MustCompile(`^rota: (?:open [^ ]+: )?(?:` + regexp.QuoteMeta(makingTables) + `|` + regexp.QuoteMeta(makingTasks) +
			`|find settle: unknown task type)\n$`)
		p := startWorker(t, dir)
		eventually(t, "the queues are listed", func() bool {
			stdout, stderr, code := list()
			if code == 0 {
				return strings.Count(stdout, "\n") == 5
			}
			if code != 1 || stdout != "" || !line.MatchString(stderr) {
				t.Fatalf("exit code %d, stdout %q, stderr %s", code, stdout, stderr)
			}
			return false
		})
		p.signal(syscall.SIGTERM)
		p.exit()
		for _, table := range []string{"queue", "server", "task_type", "task_running"} {
			execute(t, pool, "DELETE FROM schedule_"+table)
		}
		want(makingTasks)
	})
}
