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

func (c *fleet) start() (*worker, error) {
	w, err := startWorker(len(c.workers)+1, c.program, c.folder)
	if err == nil {
		c.workers = append(c.workers, w)
	}
	return w, err
}

// of returns the worker of the server with this uuid (host:pid:8hex), or nil.
func (c *fleet) of(uuid string) *worker {
	for _, w := range c.workers {
		if strings.Contains(uuid, fmt.Sprintf(":%d:", w.pid)) {
			return w
		}
	}
	return nil
}

// name returns the worker of the server, or the uuid of a server that the demo has not started.
func (c *fleet) name(uuid string) string {
	if w := c.of(uuid); w != nil {
		return w.String()
	}
	return uuid
}

// check returns an error if a worker has ended without a signal, or has failed to leave in order.
func (c *fleet) check() error {
	for _, w := range c.workers {
		if w.ended() && !w.killed && (!w.leaving || w.err != nil) {
			return fmt.Errorf("%s (pid %d) ended unexpectedly: %w", w, w.pid, w.failure())
		}
	}
	return nil
}

// terminate asks all workers to leave in order.
func (c *fleet) terminate() {
	for _, w := range c.workers {
		w.leaving = true
		_ = w.process.Signal(syscall.SIGTERM) // fails if the process has ended already, which check reports
	}
}

func (c *fleet) ended() bool {
	return !slices.ContainsFunc(c.workers, func(w *worker) bool { return !w.ended() })
}

// kill ends all workers that still run, and waits for them.
func (c *fleet) kill() {
	for _, w := range c.workers {
		if !w.ended() {
			w.kill()
			<-w.gone
		}
	}
}

// worker is one `rota worker` process.
type worker struct {
	number  int
	pid     int
	process *os.Process
	log     string // the file that gets its output
	killed  bool   // by the demo
	leaving bool   // after SIGTERM

	gone chan struct{} // closed when the process has ended
	err  error         // how the process ended; read it only after gone
}

func (w *worker) String() string { return fmt.Sprintf("worker %d", w.number) }

// startWorker starts `program worker -c rota.yaml` in the folder.
func startWorker(number int, program, folder string) (*worker, error) {
	w := &worker{
		number: number, log: filepath.Join(folder, fmt.Sprintf("worker-%d.log", number)),
		gone: make(chan struct{}),
	}
	log, err := os.Create(w.log)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "worker", "-c", configName)
	cmd.Dir, cmd.Env = folder, ownEnviron()
	cmd.Stdout, cmd.Stderr = log, log
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
	w.process, w.pid = cmd.Process, cmd.Process.Pid
	return w, nil
}

// ownEnviron returns the environment without the variables that would override rota.yaml: with the user's
// ROTA_DATABASE the workers would join the user's roster. Variables of the tests stay.
func ownEnviron() []string {
	var list []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ROTA_") || strings.HasPrefix(v, "ROTA_TEST_") {
			list = append(list, v)
		}
	}
	return list
}

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
	return fmt.Sprintf("pid %d", w.pid)
}
