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
	c.took = c.now.Sub(c.since)
	if c.err == nil && c.how == ordinary && !p.powers.cursored && c.ended == nil && c.lane.sweep == nil {
		return // most of them
	}
	if c.err != nil {
		c.verdict = p.verdict(c, c.err)
		p.tell(c)
	}
	if c.page != nil {
		p.conclude(c)
		c.now = time.Now()
	}
	if c.err != nil {
		c.err = c.describe()
	}
}

// verdict says what an error of the dealer or of a store means for the call.
func (p *Processor) verdict(c *call, err error) verdict {
	_, panicked := errors.AsType[*panicError](err)
	switch {
	case panicked, errors.Is(err, errExited):
		return failed // a bug, whatever else is going on
	case errors.Is(err, errWithdrawn):
		return dropped
	case c.ctx.Err() != nil:
		return cancelled
	case p.env.Lost(err):
		return lost
	}
	return failed
}

// conclude keeps what a batch came to.
func (p *Processor) conclude(c *call) {
	if c.verdict == failed && p.powers.cursored && c.lane.sweep != nil {
		p.askCursor(c)
	}
	err := c.err
	switch {
	case c.trouble: // nobody knows what it has done
	case c.verdict == failed && c.how == passed:
		c.trouble, c.failed = true, 1
	case c.verdict == failed:
		p.blame(c)
	case c.verdict == done && p.powers.cursored:
		p.advance(c)
	}
	if c.verdict == done && c.how > ordinary {
		p.cure(c)
	}
	if c.verdict == done {
		c.remember()
	}
	if c.ended != nil {
		c.ended(Result{Err: err, Verdict: c.verdict.public(), Failed: c.failed, Dead: c.dead, Took: c.took})
	}
}

// complain logs an error of what is done beside Execute. If it says that the queue is lost, that is the verdict.
func (p *Processor) complain(c *call, what string, err error) verdict {
	level, v := logrus.ErrorLevel, p.verdict(c, err)
	switch v {
	case lost:
		level, c.verdict = logrus.WarnLevel, lost
	case cancelled:
		level = logrus.DebugLevel
	}
	p.log(c).WithField("err", err).Logf(level, "%s: %s", what, v)
	return v
}

func (p *Processor) log(c *call) *logrus.Entry { return p.env.Log.WithField("queue", names(c.queues)) }

// tell logs a failure at Error, but a page once: a page of failing items, executed one by one, is a single line, and
// what repeats it is at Debug.
func (p *Processor) tell(c *call) {
	fields := logrus.Fields{"err": c.err}
	if panicked, ok := errors.AsType[*panicError](c.err); ok {
		fields["stack"] = string(panicked.stack)
	}
	what := "select"
	if c.page != nil {
		what, fields["items"] = "execute", c.to-c.from
	}
	level := logrus.ErrorLevel
	switch {
	case c.verdict == cancelled, c.verdict == dropped, c.page != nil && c.page.told.Swap(true):
		level = logrus.DebugLevel
	case c.verdict == lost:
		level = logrus.WarnLevel
	}
	p.log(c).WithFields(fields).Logf(level, "%s: %s", what, c.verdict)
}

// describe says in the error what was being done.
func (c *call) describe() error {
	if c.page == nil {
		return fmt.Errorf("select queue %s: %w", names(c.queues), c.err)
	}
	return fmt.Errorf("execute %s of queue %s: %w", itemsText(c.to-c.from), names(c.queues), c.err)
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

func itemsText(n int) string {
	if n == 1 {
		return "1 item"
	}
	return fmt.Sprintf("%d items", n)
}
