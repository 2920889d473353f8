package demo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// fleet is the workers that the demo has started, in order.
type fleet struct {
	program string
	folder  string
	workers []*worker
}

// worker is one `rota worker` process.
type worker struct {
	number  int
	process *os.Process
	log     string // the file that gets its output
	killed  bool   // by the demo
	leaving bool   // after SIGTERM

	gone chan struct{} // closed when the process has ended
	err  error         // how the process ended; read it only after gone
}

// start starts `program worker -c rota.yaml` in the folder.
func (f *fleet) start() (*worker, error) {
	w := &worker{number: len(f.workers) + 1, gone: make(chan struct{})}
	w.log = filepath.Join(f.folder, fmt.Sprintf("worker-%d.log", w.number))
	log, err := os.Create(w.log)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(f.program, "worker", "-c", configName)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = f.folder, ownEnviron(), log, log
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		// Linux kills the child when the thread that started it ends, so this goroutine keeps its thread until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(w.gone)
		err := cmd.Start()
		started <- err
		if err == nil {
			w.err = cmd.Wait()
		}
		_ = log.Close() // only the child has written to it
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", w, err)
	}
	w.process, f.workers = cmd.Process, append(f.workers, w)
	return w, nil
}

// ownEnviron returns the environment without the variables that would override rota.yaml: with the user's
// ROTA_DATABASE the workers would join the user's roster. Variables of the tests stay.
func ownEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "ROTA_") && !strings.HasPrefix(v, "ROTA_TEST_")
	})
}

// of returns the worker of the server with this uuid (host:pid:8hex), or nil.
func (f *fleet) of(uuid string) *worker {
	for _, w := range f.workers {
		if strings.Contains(uuid, fmt.Sprintf(":%d:", w.process.Pid)) {
			return w
		}
	}
	return nil
}

// name returns the worker of the server, or the uuid of a server that the demo has not started.
func (f *fleet) name(uuid string) string {
	if w := f.of(uuid); w != nil {
		return w.String()
	}
	return uuid
}

// check returns an error if a worker has ended without a signal, or has failed to leave in order.
func (f *fleet) check() error {
	for _, w := range f.workers {
		if w.ended() && !w.killed && (!w.leaving || w.err != nil) {
			return fmt.Errorf("%s (pid %d) ended unexpectedly: %w", w, w.process.Pid, w.failure())
		}
	}
	return nil
}

// terminate asks all workers to leave in order.
func (f *fleet) terminate() {
	for _, w := range f.workers {
		w.leaving = true
		_ = w.process.Signal(syscall.SIGTERM) // fails if the process has ended already, which check reports
	}
}

func (f *fleet) ended() bool {
	return !slices.ContainsFunc(f.workers, func(w *worker) bool { return !w.ended() })
}

// kill ends all workers that still run, and waits for them.
func (f *fleet) kill() {
	for _, w := range f.workers {
		if !w.ended() {
			w.kill()
			<-w.gone
		}
	}
}

func (w *worker) String() string { return fmt.Sprintf("worker %d", w.number) }

// kill ends the process as a crash would.
func (w *worker) kill() {
	w.killed = true
	_ = w.process.Kill() // fails if the process has ended already
}

func (w *worker) ended() bool {
	select {
	case <-w.gone:
		return true
	default:
		return false
	}
}

// failure returns how the process ended and the last line of its log.
func (w *worker) failure() error {
	text, _ := os.ReadFile(w.log) // without the log there is still the exit status
	text = bytes.TrimSpace(text)
	return fmt.Errorf("%w; last line of its log: %s", cmp.Or(w.err, errors.New("exit status 0")),
		text[bytes.LastIndexByte(text, '\n')+1:])
}

func (w *worker) state() string {
	switch {
	case w.killed:
		return "killed"
	case w.ended():
		return "left"
	case w.leaving:
		return "leaving"
	}
	return fmt.Sprintf("pid %d", w.process.Pid)
}
