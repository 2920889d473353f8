package demo

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// crew are the workers that were started, in order.
type crew struct {
	program string
	folder  string
	workers []*worker
}

func (c *crew) hire() (*worker, error) {
	w, err := startWorker(len(c.workers)+1, c.program, c.folder)
	if err != nil {
		return nil, err
	}
	c.workers = append(c.workers, w)
	return w, nil
}

func (c *crew) last() *worker { return c.workers[len(c.workers)-1] }

// of returns the worker whose server has this uuid (host:pid:8hex), or nil.
func (c *crew) of(uuid string) *worker {
	parts := strings.Split(uuid, ":")
	if len(parts) < 3 {
		return nil
	}
	pid, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil {
		return nil
	}
	for _, w := range c.workers {
		if w.pid == pid {
			return w
		}
	}
	return nil
}

// name is what the view calls the server: its worker, or the uuid of a stranger.
func (c *crew) name(uuid string) string {
	if w := c.of(uuid); w != nil {
		return w.String()
	}
	return uuid
}

// employs tells whether the server with this uuid is a worker that was not killed.
func (c *crew) employs(uuid string) bool {
	w := c.of(uuid)
	return w != nil && !w.killed
}

// living is the number of workers that were not killed.
func (c *crew) living() int {
	n := 0
	for _, w := range c.workers {
		if !w.killed {
			n++
		}
	}
	return n
}

// check returns an error if a worker ended although nobody told it to.
func (c *crew) check() error {
	for _, w := range c.workers {
		if !w.killed && !w.leaving && w.ended() {
			return fmt.Errorf("%s (pid %d) ended by itself: %w", w, w.pid, w.failure())
		}
	}
	return nil
}

func (c *crew) terminate() {
	for _, w := range c.workers {
		if !w.killed {
			w.terminate()
		}
	}
}

func (c *crew) ended() bool {
	for _, w := range c.workers {
		if !w.ended() {
			return false
		}
	}
	return true
}

// farewell returns an error if a worker that was told to leave, and has, did not do it in order.
func (c *crew) farewell() error {
	var errs []error
	for _, w := range c.workers {
		if !w.killed && w.err != nil {
			errs = append(errs, fmt.Errorf("%s was told to leave and must exit 0: %w", w, w.failure()))
		}
	}
	return errors.Join(errs...)
}

// kill ends whoever still runs, and waits until nobody does.
func (c *crew) kill() {
	for _, w := range c.workers {
		if !w.ended() {
			w.kill()
		}
	}
	for _, w := range c.workers {
		<-w.gone
	}
}
