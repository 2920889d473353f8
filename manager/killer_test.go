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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

const (
	killerItems = 40
	killer      = 7 // the item that ends its process
	killerDir   = "ROTA_TEST_KILLER_DIR"
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
		if item == killer {
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

func openKillerRoster(t *testing.T, dir string) *center.Center {
	t.Helper()
	c, err := center.Open(t.Context(), sqlite.URL("sqlite:"+filepath.Join(dir, "rota.db")), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestKillerWorker is a worker process of TestItemThatEndsItsProcessIsFound.
func TestKillerWorker(t *testing.T) {
	dir := os.Getenv(killerDir)
	if dir == "" {
		t.Skip("it runs in the processes of TestItemThatEndsItsProcessIsFound")
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	c := openKillerRoster(t, dir)
	defer c.Close()
	m, err := manager.New(c, manager.Config{}, manager.Serve("settle", processor.TaskDealer[int](killerDealer{dir}), manager.Settings{
		Queues: 4, ThreadNumber: 3, ExecuteNumber: 3, HeartbeatInterval: 500 * time.Millisecond, JudgeDeadInterval: 4 * time.Second, MaxRecoveries: 1,
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
	ctx  context.Context
	all  sync.WaitGroup
	mu   sync.Mutex
	died int
}

func (f *killerFleet) keepRunning() {
	for f.ctx.Err() == nil {
		cmd := exec.CommandContext(f.ctx, os.Args[0], "-test.run=^TestKillerWorker$")
		cmd.Env = append(os.Environ(), killerDir+"="+f.dir)
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
	f := &killerFleet{T: t, dir: t.TempDir()}
	ctx, stop := context.WithCancel(t.Context())
	f.ctx = ctx
	defer f.all.Wait()
	defer stop()
	for range 3 {
		f.all.Go(f.keepRunning)
	}
	c := openKillerRoster(t, f.dir)
	defer c.Close()
	var dead []center.ItemRecord
	f.wait("the item is not dead", func() bool {
		var err error
		if dead, err = c.Items().List(t.Context(), center.ItemFilter{TaskType: "settle", State: center.ItemDead}, 10); err != nil {
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
