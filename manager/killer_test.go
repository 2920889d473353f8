package manager_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

const (
	killerItems = 40
	killer      = 7 // the item that ends its process
	killerDir   = "ROTA_TEST_KILLER_DIR"
	killerURL   = "ROTA_TEST_KILLER_URL"
	killerMode  = "ROTA_TEST_KILLER_MODE"
)

// killerDealer has the items for which there is no file in its directory. Execute makes the files.
type killerDealer struct{ dir string }

func (d killerDealer) file(item int) string { return filepath.Join(d.dir, fmt.Sprint("item", item)) }

func (d killerDealer) Key(item int) string { return strconv.Itoa(item) }

func (d killerDealer) Select(_ context.Context, s processor.Selection) (page []int, _ error) {
	for item := range killerItems {
		if _, err := os.Stat(d.file(item)); err != nil && item%s.Total == s.Queue.Index && len(page) < s.Limit {
			page = append(page, item)
		}
	}
	return page, nil
}

func (d killerDealer) Execute(_ context.Context, items []int) error {
	for _, item := range items {
		if _, err := os.Stat(filepath.Join(d.dir, "cured")); item == killer && err != nil {
			os.Exit(3)
		}
		if err := os.WriteFile(d.file(item), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (d killerDealer) done() (n int) {
	for item := range killerItems {
		if _, err := os.Stat(d.file(item)); err == nil {
			n++
		}
	}
	return n
}

func openKillerRoster(t *testing.T, url string) *center.Center {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestKillerWorker is a worker process of TestItemThatEndsItsProcessIsFound and TestItemThatEndsItsProcessFailsItsRun.
func TestKillerWorker(t *testing.T) {
	dir := os.Getenv(killerDir)
	if dir == "" {
		t.Skip("it runs in the processes of other tests")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	c := openKillerRoster(t, os.Getenv(killerURL))
	defer c.Close()
	m, err := manager.New(c, manager.Config{}, manager.Serve("settle", processor.TaskDealer[int](killerDealer{dir}), manager.Settings{
		Mode: os.Getenv(killerMode), Queues: 4, ThreadNumber: 3, ExecuteNumber: 3, HeartbeatInterval: 500 * time.Millisecond, JudgeDeadInterval: 4 * time.Second, MaxRecoveries: 1,
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// killerFleet runs worker processes, and starts a process that has died again.
type killerFleet struct {
	*testing.T
	dir  string
	url  string
	mode string
	ctx  context.Context
	all  sync.WaitGroup
	mu   sync.Mutex
	died int
}

func (f *killerFleet) keepRunning() {
	for f.ctx.Err() == nil {
		cmd := exec.CommandContext(f.ctx, os.Args[0], "-test.run=^TestKillerWorker$")
		cmd.Env = append(os.Environ(), killerDir+"="+f.dir, killerURL+"="+f.url, killerMode+"="+f.mode)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = time.Minute
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case f.ctx.Err() != nil:
		case errors.As(err, &exit) && exit.ExitCode() == 3:
			f.mu.Lock()
			f.died++
			f.mu.Unlock()
		default:
			f.Errorf("a worker ended with %v, want exit status 3: %s", err, out)
			return
		}
	}
}

// start starts workers, and returns the function that stops them.
func (f *killerFleet) start(workers int) (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	f.ctx = ctx
	for range workers {
		f.all.Go(f.keepRunning)
	}
	return func() {
		cancel()
		f.all.Wait()
	}
}

func (f *killerFleet) deaths() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.died
}

// wait waits until a condition holds.
func (f *killerFleet) wait(what string, holds func() bool) {
	f.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if f.Failed() || time.Now().After(deadline) {
			f.Fatalf("%s; %d workers have died, %d items are done", what, f.deaths(), killerDealer{f.dir}.done())
		}
	}
}

// S14: an item ends every process that executes it. Rota finds it: the item is dead, the workers execute the other
// items, and they live on.
func TestItemThatEndsItsProcessIsFound(t *testing.T) {
	t.Parallel()
	f := &killerFleet{T: t, dir: t.TempDir(), url: testdb.URL(t, testdb.SQLite), mode: center.ModeContinuous}
	defer f.start(3)()
	c := openKillerRoster(t, f.url)
	defer c.Close()
	var dead []ops.ItemRecord
	f.wait("the item is not dead", func() bool {
		var err error
		if dead, err = ops.New(c).Items().List(t.Context(), ops.ItemFilter{TaskType: "settle", State: ops.ItemDead}, 10); err != nil {
			t.Fatal(err)
		}
		return len(dead) > 0
	})
	if len(dead) != 1 || dead[0].ItemKey != strconv.Itoa(killer) {
		t.Errorf("dead items: %+v, want only %d", dead, killer)
	}
	deaths := f.deaths()
	if deaths < 3 { // two crashes, and a third that names the item
		t.Errorf("%d workers had died when the item was found, want 3", deaths)
	}
	f.wait("not all other items are done", func() bool { return killerDealer{f.dir}.done() == killerItems-1 })
	f.wait("the crash counts are not reset", func() bool {
		var n int
		if err := c.DB().QueryRowContext(t.Context(), "SELECT COUNT(*) FROM schedule_queue WHERE crash_count > 0").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
	if n := f.deaths(); n != deaths {
		t.Errorf("%d workers died after the item was found", n-deaths)
	}
}

// S14: in mode RUN, too, the item is found. Its run fails and names it, a rerun passes it at once, and after an operator
// has released the item the next rerun executes it.
func TestItemThatEndsItsProcessFailsItsRun(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := &killerFleet{T: t, dir: t.TempDir(), url: testdb.URL(t, kind), mode: center.ModeRun}
			defer f.start(2)()
			c := openKillerRoster(t, f.url)
			defer c.Close()
			var id string
			f.wait("no run can be submitted", func() (submitted bool) {
				var err error
				id, _, err = ops.New(c).Runs().Submit(t.Context(), "settle", runs.Submission{Key: "k"})
				return err == nil
			})
			f.failsByName(c, id)
			deaths := f.deaths()
			if deaths != 2 { // a crash, and a second that names the item
				t.Errorf("%d workers had died when the run had failed, want 2", deaths)
			}
			if n := (killerDealer{f.dir}).done(); n != killerItems-1 {
				t.Errorf("%d items are done, want all except the one that ends its process", n)
			}
			f.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
			f.failsByName(c, id)
			f.must(os.WriteFile(filepath.Join(f.dir, "cured"), nil, 0o600))
			if n, err := ops.New(c).Items().Retry(t.Context(), "settle", "test", strconv.Itoa(killer)); n != 1 || err != nil {
				t.Errorf("%d items are released: %v, want 1", n, err)
			}
			f.must(c.Engine().Runs.Rerun(t.Context(), id, "test"))
			if r := f.ends(c, id); r.State != runs.Success || (killerDealer{f.dir}).done() != killerItems {
				t.Errorf("the run is %+v, want all items done", r)
			}
			if list, err := ops.New(c).Items().List(t.Context(), ops.ItemFilter{TaskType: "settle"}, 10); len(list) > 0 || err != nil {
				t.Errorf("records of items: %v, %v, want none", list, err)
			}
			if n := f.deaths(); n != deaths {
				t.Errorf("%d workers died after the item was found", n-deaths)
			}
		})
	}
}

func (f *killerFleet) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// ends waits until a run has ended.
func (f *killerFleet) ends(c *center.Center, id string) (r runs.Record) {
	f.Helper()
	f.wait("the run has not ended", func() bool {
		var err error
		r, err = ops.New(c).Runs().Get(f.Context(), id)
		f.must(err)
		return r.Ended()
	})
	return r
}

// failsByName waits until a run has failed and names the item that ends its process.
func (f *killerFleet) failsByName(c *center.Center, id string) {
	f.Helper()
	r := f.ends(c, id)
	items, err := ops.New(c).Runs().FailedItems(f.Context(), runs.FailedItemFilter{RunID: id}, 10)
	f.must(err)
	if r.State != runs.Failed || len(items) != 1 || items[0].Key != strconv.Itoa(killer) || !strings.Contains(items[0].LastError, "item 7 is dead: the process ended") {
		f.Errorf("the run is %+v with the failed items %+v, want it FAILED with the item that ends its process", r, items)
	}
	queues, err := ops.New(c).Runs().Queues(f.Context(), id)
	f.must(err)
	for _, q := range queues {
		if failed := q.State == runs.QueueFailed; failed != (q.QueueID == "3") || failed && !strings.Contains(q.LastError, "item 7 is dead") {
			f.Errorf("queue %+v, want only the queue of the item FAILED", q)
		}
	}
}
