package demo

import (
	"fmt"
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
