//go:build unix

package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

const (
	connectionsDir = "ROTA_TEST_CONNECTIONS_DIR"
	connectionsURL = "ROTA_TEST_CONNECTIONS_URL"
	connectionsMax = "ROTA_TEST_CONNECTIONS_MAX"

	connectedQueues = 6
)

// connections is a dealer whose Execute needs one of a few connections, which are locked files: the operating system
// ends the connections of a process that is killed. A call that gets none leaves a file. There are always new items.
type connections struct {
	dir  string
	most int
}

func (connections) Select(_ context.Context, s processor.Selection) ([]int, error) {
	item := int(time.Now().UnixNano())/connectedQueues*connectedQueues + s.Queue.Index
	return []int{item, item + connectedQueues}, nil
}

func (c connections) Execute(_ context.Context, items []int) error {
	file, err := c.connect()
	if err != nil {
		return errors.Join(err, os.WriteFile(filepath.Join(c.dir, "refused"), []byte(err.Error()), 0o600))
	}
	defer func() { _ = file.Close() }() // ends the lock
	time.Sleep(20 * time.Millisecond)
	done, err := os.OpenFile(c.doneFile(items[0]%connectedQueues), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = done.WriteString(".")
	return errors.Join(err, done.Close())
}

// doneFile has a byte for each call of Execute for the queue that has ended.
func (c connections) doneFile(queue int) string {
	return filepath.Join(c.dir, fmt.Sprint("done", queue))
}

// connect locks the first connection that is free. One process looks at a time, because a connection that is given back
// behind the look would be missed.
func (c connections) connect() (*os.File, error) {
	gate, err := lockFile(filepath.Join(c.dir, "gate"), syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer func() { _ = gate.Close() }()
	for n := range c.most {
		file, err := lockFile(filepath.Join(c.dir, fmt.Sprint("connection", n)), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return file, err
		}
	}
	return nil, fmt.Errorf("process %d gets none of %d connections", os.Getpid(), c.most)
}

func lockFile(name string, how int) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(file.Fd()), how)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// TestConnectionsWorker is a worker process of TestMaxInFlightOfProcesses.
func TestConnectionsWorker(t *testing.T) {
	dir := os.Getenv(connectionsDir)
	if dir == "" {
		t.Skip("it runs in the processes of TestMaxInFlightOfProcesses")
	}
	most, err := strconv.Atoi(os.Getenv(connectionsMax))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	c, err := center.Open(t.Context(), anydb.URL(os.Getenv(connectionsURL)), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := manager.New(c, manager.Config{}, manager.Serve("settle", processor.TaskDealer[int](connections{dir, most}), manager.Settings{
		Queues: connectedQueues, ThreadNumber: 4, HeartbeatInterval: 500 * time.Millisecond, JudgeDeadInterval: 8 * time.Second, MaxInFlight: most,
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// connectedFleet is the worker processes of a test.
type connectedFleet struct {
	*testing.T
	connections
	url     string
	workers []connectedWorker // that run, the oldest first
}

// connectedWorker is a worker process with what it prints.
type connectedWorker struct {
	*exec.Cmd
	out *bytes.Buffer
}

// makeRoster creates the tables, so that the workers need not wait for each other.
func (f *connectedFleet) makeRoster() {
	f.Helper()
	c, err := center.Open(f.Context(), anydb.URL(f.url), center.Options{})
	if err == nil {
		err = c.Close()
	}
	if err != nil {
		f.Fatal(err)
	}
}

func (f *connectedFleet) start(n int) {
	f.Helper()
	for range n {
		cmd := connectedWorker{exec.CommandContext(f.Context(), os.Args[0], "-test.run=^TestConnectionsWorker$"), new(bytes.Buffer)}
		cmd.Stdout, cmd.Stderr = cmd.out, cmd.out
		cmd.Env = append(os.Environ(), connectionsDir+"="+f.dir, connectionsURL+"="+f.url, fmt.Sprintf("%s=%d", connectionsMax, f.most))
		if err := cmd.Start(); err != nil {
			f.Fatal(err)
		}
		f.workers = append(f.workers, cmd)
		f.Cleanup(func() { _ = cmd.Wait() }) // of a test that failed: its context has killed the process
	}
}

// end sends a signal to the oldest worker and waits for its end.
func (f *connectedFleet) end(s os.Signal) {
	f.Helper()
	w := f.workers[0]
	f.workers = f.workers[1:]
	if err := w.Process.Signal(s); err != nil {
		f.Fatal(err)
	}
	if err := w.Wait(); err != nil && s == syscall.SIGTERM {
		f.Errorf("a worker ended with %v: %s", err, w.out)
	}
}

// goesOn waits until each queue has had more calls of Execute, and fails if a call got no connection.
func (f *connectedFleet) goesOn(when string) {
	f.Helper()
	const more = 30
	before := f.done()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(f.dir, "refused")); err == nil {
			f.Fatalf("%s: %s", when, text)
		}
		now, behind := f.done(), 0
		for queue := range now {
			if now[queue] < before[queue]+more {
				behind++
			}
		}
		if behind == 0 {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("%s: %d queues starve: calls %v, before %v", when, behind, now, before)
		}
	}
}

// done returns how many calls of Execute have ended for each queue.
func (f *connectedFleet) done() (calls [connectedQueues]int64) {
	for queue := range calls {
		if info, err := os.Stat(f.doneFile(queue)); err == nil {
			calls[queue] = info.Size()
		}
	}
	return calls
}

// P10: processes that join, leave and are killed never have more calls of Execute in flight than max_in_flight, and
// each queue goes on, also with fewer calls than processes.
func TestMaxInFlightOfProcesses(t *testing.T) {
	t.Parallel()
	for _, kind := range testdb.Kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for _, most := range []int{3, 2} {
				f := &connectedFleet{T: t, connections: connections{t.TempDir(), most}, url: testdb.URL(t, kind)}
				f.makeRoster()
				f.start(2)
				f.goesOn("two workers")
				f.start(2)
				f.goesOn("two more have joined")
				f.end(syscall.SIGKILL)
				f.goesOn("one was killed")
				f.start(1)
				f.end(syscall.SIGTERM)
				f.goesOn("one has joined, and another one has left")
				for len(f.workers) > 0 {
					f.end(syscall.SIGTERM)
				}
			}
		})
	}
}
