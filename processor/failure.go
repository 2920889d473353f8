package processor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// judge finds out what a call that was started came to, and logs what went wrong. The lock is not held.
func (p *Processor) judge(c *call) {
	c.now = time.Now()
	if c.err == nil {
		c.verdict = done
		return
	}
	c.verdict = p.verdict(c)
	p.tell(c)
	c.err = c.describe()
}

func (p *Processor) verdict(c *call) verdict {
	var panicked *panicError
	switch {
	case errors.As(c.err, &panicked), errors.Is(c.err, errExited):
		return failed // a bug, whatever else is going on
	case c.ctx.Err() != nil:
		return cancelled
	case p.env.Lost(c.err):
		return lost
	}
	return failed
}

// tell logs a failure at Error, but a page once: a page of failing items, executed one by one, is a single line, and
// what repeats it is at Debug.
func (p *Processor) tell(c *call) {
	fields := logrus.Fields{"queue": names(c.queues), "err": c.err}
	if panicked, ok := errors.AsType[*panicError](c.err); ok {
		fields["stack"] = string(panicked.stack)
	}
	what := "select"
	if c.page != nil {
		what, fields["items"] = "execute", c.to-c.from
	}
	level := logrus.ErrorLevel
	switch {
	case c.verdict == cancelled, c.page != nil && c.page.told.Swap(true):
		level = logrus.DebugLevel
	case c.verdict == lost:
		level = logrus.WarnLevel
	}
	p.env.Log.WithFields(fields).Logf(level, "%s: %s", what, c.verdict)
}

// describe says in the error what was being done.
func (c *call) describe() error {
	if c.page == nil {
		return fmt.Errorf("select queue %s: %w", names(c.queues), c.err)
	}
	return fmt.Errorf("execute %d items of queue %s: %w", c.to-c.from, names(c.queues), c.err)
}

// names lists queues, but not thousands of them.
func names(queues []*held) string {
	const most = 8
	ids := make([]string, 0, most)
	for _, h := range queues[:min(len(queues), most)] {
		ids = append(ids, h.queue.ID)
	}
	if more := len(queues) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids, ", "), more)
	}
	return strings.Join(ids, ", ")
}
