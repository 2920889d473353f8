package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// leaveLimit is how long the workers may take to leave, and the demo to remove its tables.
const leaveLimit = 30 * time.Second

// worker is one `rota worker` process.
type worker struct {
	*exec.Cmd
	name   string
	killed atomic.Bool // by the demo
}

// start starts n workers in the folder. When ctx ends, they are asked to leave in order, and killed after leaveLimit.
// fail gets the error of a worker that ends in another way, from a goroutine of its own.
func (s *story) start(ctx context.Context, n int, fail func(error)) error {
	for range n {
		w := &worker{name: fmt.Sprintf("worker %d", len(s.workers)+1)}
		log, err := os.Create(filepath.Join(s.folder, strings.ReplaceAll(w.name, " ", "-")+".log"))
		if err != nil {
			return err
		}
		w.Cmd = exec.CommandContext(ctx, s.program, "worker", "-c", configName)
		w.Dir, w.Env, w.Stdout, w.Stderr, w.SysProcAttr = s.folder, ownEnviron(), log, log, dieWithParent()
		w.Cancel, w.WaitDelay = func() error { return w.Process.Signal(syscall.SIGTERM) }, leaveLimit
		err = w.Start()
		_ = log.Close() // the process has a copy
		if err != nil {
			return fmt.Errorf("start %s: %w", w.name, err)
		}
		s.write(fmt.Sprintf("   %s started, pid %d", w.name, w.Process.Pid))
		s.workers = append(s.workers, w)
		s.running.Go(func() {
			_ = w.Wait() // the state of the process says more
			if !w.killed.Load() && (ctx.Err() == nil || !w.ProcessState.Success()) {
				fail(w.failure(log.Name()))
			}
		})
	}
	return nil
}

// failure says how the process ended, and what the last line of its log is.
func (w *worker) failure(log string) error {
	text, _ := os.ReadFile(log) // without the log there is still the exit status
	text = bytes.TrimSpace(text)
	return fmt.Errorf("%s (pid %d) ended unexpectedly: %s; last line of its log: %s", w.name, w.Process.Pid,
		w.ProcessState, text[bytes.LastIndexByte(text, '\n')+1:])
}

// ownEnviron returns the environment without settings of a worker: rota.yaml leaves most of them out, and the user's
// ROTA_WEIGHT is not for the demo. Variables of the tests stay.
func ownEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "ROTA_") && !strings.HasPrefix(v, "ROTA_TEST_")
	})
}

// name returns the worker of the server with this uuid (host:pid:8hex), or the uuid of a stranger.
func (s *story) name(uuid string) string {
	for _, w := range s.workers {
		if strings.Contains(uuid, fmt.Sprintf(":%d:", w.Process.Pid)) {
			return w.name
		}
	}
	return uuid
}

// kill ends the process as a crash would.
func (w *worker) kill() {
	w.killed.Store(true)
	_ = w.Process.Kill() // fails if the process has ended already
}
