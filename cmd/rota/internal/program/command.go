package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/cmd/rota/internal/environ"
)

// Command executes batches in processes of a program. It starts a process when a batch finds all others busy, so that
// there are as many as the worker executes batches at once, and keeps them.
type Command struct {
	args []string
	env  []string
	name string // of the program, for errors and the log
	log  logrus.FieldLogger

	mu       sync.Mutex
	idle     []*process // the one that was used last is the last
	all      map[*process]struct{}
	failures int       // how many processes have ended by themselves since the last reply
	startAt  time.Time // no process starts before
	closed   bool
}

const (
	firstPause = 100 * time.Millisecond // before a process starts again
	mostPause  = 10 * time.Second

	// endPatience is how long a program may take to end when its input has ended.
	endPatience = 5 * time.Second
)

// NewCommand returns a Command for a program and its arguments, which no shell reads. The program gets the variables
// that all programs get, those with the given names, and ROTA_PROTOCOL. NewCommand starts nothing. It returns an error
// if there is no such program or variable.
func NewCommand(args, variables []string, log logrus.FieldLogger) (*Command, error) {
	if _, err := exec.LookPath(args[0]); err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	env, err := environment(variables)
	if err != nil {
		return nil, err
	}
	name := nameOf(args)
	log = log.WithField("program", name)
	return &Command{args: args, env: env, name: name, log: log, all: map[*process]struct{}{}}, nil
}

// environment returns the environment of a program: what all programs get, the variables with these names, and
// ROTA_PROTOCOL.
func environment(variables []string) ([]string, error) {
	for _, name := range variables {
		if _, there := os.LookupEnv(name); !there {
			return nil, fmt.Errorf("env (%s): the environment has no such variable", name)
		}
	}
	return append(environ.Select(os.Environ(), variables), "ROTA_PROTOCOL="+strconv.Itoa(Version)), nil
}

// nameOf returns the name of a program for people. The first argument tells apart the programs of one interpreter.
func nameOf(args []string) string {
	name := filepath.Base(args[0])
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		name += " " + args[1]
	}
	return name
}

// Ask sends a request to a process and returns its reply. When ctx ends, Ask kills the process and all that it has
// started.
func (c *Command) Ask(ctx context.Context, b *Batch) (*Reply, error) {
	p, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	line, err := c.send(ctx, p, b)
	if err != nil {
		err = p.explain(ctx, err)
		c.drop(p, ctx.Err() == nil)
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	r, err := b.parse(line)
	if errors.As(err, new(badReply)) {
		p.kill()
		c.drop(p, true)
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	c.put(ctx, p)
	return r, err
}

func (c *Command) send(ctx context.Context, p *process, b *Batch) (line []byte, err error) {
	b.complete(timeLeft(ctx))
	request, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return p.ask(ctx, request, b.replyLimit())
}

// timeLeft returns the time until ctx ends; 0 if it has no deadline.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(deadline), time.Millisecond)
}

// take returns a process that waits for a batch. It starts one if there is none.
func (c *Command) take(ctx context.Context) (*process, error) {
	for {
		p, pause, err := c.tryTake()
		if p != nil || err != nil {
			return p, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// tryTake returns a process, or the pause until one may be started.
func (c *Command) tryTake() (p *process, pause time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, 0, errors.New("the worker has stopped its programs")
	}
	for len(c.idle) > 0 {
		p := c.idle[len(c.idle)-1]
		c.idle = c.idle[:len(c.idle)-1]
		if !p.hasEnded() {
			return p, 0, nil
		}
		c.log.WithError(errors.New(p.status())).Warn("the program has ended between two batches")
		c.forgetLocked(p, true)
	}
	if pause := time.Until(c.startAt); pause > 0 {
		return nil, pause, nil
	}
	p, err = start(c.args, c.env, c.log)
	if err != nil {
		c.delayLocked()
		return nil, 0, fmt.Errorf("start %s: %w", c.name, err)
	}
	c.all[p] = struct{}{}
	return p, 0, nil
}

// put keeps a process that has replied for the next batch. If ctx has ended, the process is being killed.
func (c *Command) put(ctx context.Context, p *process) {
	if ctx.Err() != nil {
		p.kill()
		c.drop(p, false)
		return
	}
	c.mu.Lock()
	c.failures, c.startAt = 0, time.Time{}
	closed := c.closed
	if !closed {
		c.idle = append(c.idle, p)
	}
	c.mu.Unlock()
	if closed {
		p.end()
	}
}

// drop forgets a process that is dead or dying. delays says that the next one starts after a pause.
func (c *Command) drop(p *process, delays bool) {
	p.await()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetLocked(p, delays)
}

func (c *Command) forgetLocked(p *process, delays bool) {
	delete(c.all, p)
	if delays {
		c.delayLocked()
	}
}

// delayLocked makes the next start wait: twice as long after each process that has ended without a reply.
func (c *Command) delayLocked() {
	pause := min(firstPause<<min(c.failures, 16), mostPause)
	c.failures++
	c.startAt = time.Now().Add(pause)
}

// Close ends the input of all processes and waits for their end. It kills those that take longer than five seconds. It
// is called when no batch is in flight any more.
func (c *Command) Close() {
	c.mu.Lock()
	c.closed = true
	all := make([]*process, 0, len(c.all))
	for p := range c.all {
		all = append(all, p)
	}
	c.idle, c.all = nil, map[*process]struct{}{}
	c.mu.Unlock()
	var ended sync.WaitGroup
	for _, p := range slices.Clone(all) {
		ended.Go(p.end)
	}
	ended.Wait()
}
