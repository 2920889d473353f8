package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/internal/witness/witnesstest"
)

// patientOrders is openOrders with a judge_dead_interval that no test outlasts: only a proof expires a worker.
func patientOrders(t *testing.T, url string) (dir string, rows func(string) int) {
	t.Helper()
	db, dir := openOrders(t, url, 10)
	path := filepath.Join(dir, "rota.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, strings.Replace(string(text), "    queues: 4\n", "    queues: 4\n    judge_dead_interval: 1h\n", 1))
	return dir, func(of string) int { return count(t, db, of) }
}

// The last worker of a host is killed, and nobody would notice for an hour.
func TestWitnessExpiresAKilledWorker(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		locks := witnesstest.Dir(t)
		dir, rows := patientOrders(t, url)
		w := startRota(t, dir, nil, "witness", "--database", url, "--witness-dir", locks)
		eventually(t, "the witness watches", func() bool { return w.logged("watching "+locks) != nil })
		p := startWorker(t, dir, "ROTA_WITNESS_DIR="+locks)
		eventually(t, "the worker owns the queues", func() bool { return rows(owned) == 4 })
		p.signal(syscall.SIGKILL)
		eventually(t, "the worker is expired", func() bool { return rows("schedule_server") == 0 })
		eventually(t, "the witness logs it", func() bool { return w.logged("1 worker expired: the process has ended") != nil })
		if n := rows("schedule_event WHERE kind = 'EXPIRED' AND actor LIKE 'witness@%' AND reason LIKE 'its process has ended%'"); n != 1 {
			t.Errorf("%d events of the witness", n)
		}
		if n := rows("schedule_queue WHERE cur_server IS NULL"); n != 4 {
			t.Errorf("%d queues have no owner, want 4", n)
		}
		w.signal(syscall.SIGTERM)
		if code := w.exit(); code != 0 {
			t.Errorf("the witness exits %d after SIGTERM", code)
		}
	})
}

// A supervisor restarts a worker that was killed: the new process owns the queues as soon as it has joined.
func TestRestartedProcessExpiresItsPredecessor(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		locks := witnesstest.Dir(t)
		dir, rows := patientOrders(t, url)
		p := startWorker(t, dir, "ROTA_WITNESS_DIR="+locks)
		eventually(t, "the worker owns the queues", func() bool { return rows(owned) == 4 })
		p.signal(syscall.SIGKILL)
		p.exit()
		startWorker(t, dir, "ROTA_WITNESS_DIR="+locks)
		eventually(t, "the new process owns the queues", func() bool {
			return rows("schedule_event WHERE kind = 'JOINED'") == 2 && rows("schedule_server") == 1 && rows(owned) == 4
		})
		if rows("schedule_event e WHERE kind = 'EXPIRED' AND event_id < (SELECT MAX(event_id) FROM schedule_event j WHERE j.kind = 'JOINED')") != 1 {
			t.Error("the new process has joined before it expired its predecessor")
		}
	})
}

// A worker that leaves in order leaves no file, and a worker whose directory is refused works and says so.
func TestWitnessDirOfAWorker(t *testing.T) {
	t.Parallel()
	url := testdb.URL(t, testdb.SQLite)
	locks := witnesstest.Dir(t)
	dir, rows := patientOrders(t, url)
	p := startWorker(t, dir, "ROTA_WITNESS_DIR="+locks)
	eventually(t, "the row names the lock", func() bool { return rows("schedule_server WHERE witness IS NOT NULL") == 1 })
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if left, err := os.ReadDir(locks); err != nil || len(left) > 0 {
		t.Errorf("it left %v (%v)", left, err)
	}
	bad := startWorker(t, dir, "ROTA_WITNESS_DIR=/proc")
	eventually(t, "it works", func() bool { return rows(owned) == 4 })
	eventually(t, "it logs why", func() bool { return bad.logged("no witness") != nil })
	if text, _ := bad.logged("no witness")["error"].(string); !strings.HasPrefix(text, "open the witness directory /proc: the file system is not known to be local") {
		t.Errorf("it logs the error %q", text)
	}
	eventually(t, "an alert says so", func() bool { return rows("schedule_event WHERE kind = 'ALERT' AND reason LIKE 'WITNESS: %'") == 1 })
	_, stderr, code := runRota(t, t.TempDir(), "witness", "--database", url, "--witness-dir", "/proc")
	if want := "rota: open the witness directory /proc: the file system is not known to be local"; code != 1 || !strings.HasPrefix(stderr, want) {
		t.Errorf("rota witness: exit code %d, %s", code, stderr)
	}
}
