package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

// Finding is the end of one check of a program.
type Finding struct {
	Check string
	Err   error // nil if the program is as the protocol says
	Took  time.Duration
}

// ConformOptions say how a program is checked.
type ConformOptions struct {
	Row     json.RawMessage // of each item
	Fence   string          // a statement that changes one row; empty: the requests have no fence
	Answers []string        // the operations that the program answers beside OpExecute
	Env     []string        // the variables that a command gets besides those of all programs
	Timeout time.Duration   // of each check
}

// conformance is a program that is checked.
type conformance struct {
	ConformOptions
	ask    func(ctx context.Context, request []byte, b *Batch) (reply []byte, err error)
	report func(Finding)
}

// ConformCommand checks a program that is a command. It calls report after each check.
func ConformCommand(ctx context.Context, args []string, o ConformOptions, log logrus.FieldLogger,
	report func(Finding),
) error {
	env, err := environment(o.Env)
	if err != nil {
		return err
	}
	p, err := start(args, env, log.WithField("program", nameOf(args)))
	if err != nil {
		return err
	}
	defer func() {
		p.kill()
		p.await()
	}()
	c := conformance{ConformOptions: o, report: report}
	c.ask = func(ctx context.Context, request []byte, b *Batch) ([]byte, error) {
		reply, err := p.ask(ctx, request, b.replyLimit())
		if err != nil {
			err = p.explain(ctx, err)
		}
		return reply, err
	}
	c.checkReplies(ctx)
	c.check(ctx, "nothing but replies on stdout, and an end with stdin", p.endsInOrder)
	return nil
}

// endsInOrder ends stdin and checks that the program then ends, and has written nothing more.
func (p *process) endsInOrder(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.kill)
	defer stop()
	if err := p.in.Close(); err != nil {
		return errors.New("the program has ended before")
	}
	rest, err := io.ReadAll(io.LimitReader(p.lines, 1<<10))
	switch {
	case len(rest) > 0:
		return fmt.Errorf("stdout has more than the replies: %s", excerpt(rest))
	case err != nil:
		return errors.New("the program does not end")
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		return errors.New("the program does not end")
	}
	if p.err != nil {
		return fmt.Errorf("the program has ended with %w", p.err)
	}
	return nil
}

// ConformHTTP checks a service. It calls report after each check.
func ConformHTTP(ctx context.Context, h *HTTP, o ConformOptions, report func(Finding)) {
	c := conformance{ConformOptions: o, report: report}
	c.ask = func(ctx context.Context, request []byte, b *Batch) ([]byte, error) {
		status, text, _, err := h.post(ctx, b, request)
		if err == nil && status/100 != 2 {
			err = fmt.Errorf("status %d %s: %s", status, http.StatusText(status), excerpt(text))
		}
		return text, err
	}
	c.checkReplies(ctx)
	if len(h.secret) > 0 {
		c.checkSignatures(ctx, h)
	}
}

// noReply is the error of a request without a reply.
type noReply struct{ error }

// check runs one check within its time.
func (c *conformance) check(ctx context.Context, name string, f func(context.Context) error) {
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := f(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no end within %s", c.Timeout)
	}
	c.report(Finding{name, err, time.Since(begun)})
}

// oddKeys are keys that a program must repeat as they are.
var oddKeys = []string{
	"007", " ", "a/b%2Fc", `\x00ff`, `"quoted"`, "two\nlines", "日本", "1e3", "null", strings.Repeat("k", 500),
}

// checkReplies sends requests and checks the replies.
func (c *conformance) checkReplies(ctx context.Context) {
	c.checkBatch(ctx, "one row", c.batch(1))
	c.checkBatch(ctx, "ten rows", c.batch(10))
	c.checkBatch(ctx, "the same rows again", c.batch(10))
	odd := c.batch(0)
	for _, key := range oddKeys {
		odd.Items = append(odd.Items, Item{Key: key, Row: c.Row})
	}
	c.checkBatch(ctx, "keys are repeated as they are", odd)
	c.checkBatch(ctx, "1,000 rows in a batch", c.batch(1_000))
	c.check(ctx, "unknown properties are ignored", func(ctx context.Context) error {
		return c.exchange(ctx, c.batch(1), func(request []byte) []byte {
			return append([]byte(`{"no_such_property":{"a":[1]},`), request[1:]...)
		})
	})
	c.check(ctx, "an unknown op is an error of the batch", c.checkUnknownOp)
	if c.Fence != "" {
		c.check(ctx, "a fence that changes no row", c.checkFence)
	}
	c.checkAnswers(ctx)
	c.check(ctx, "twenty batches, one after the other", func(ctx context.Context) error {
		for range 20 {
			if err := c.exchange(ctx, c.batch(1), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// batch returns a batch of n rows.
func (c *conformance) batch(n int) *Batch {
	b := &Batch{TaskType: "rota-check", OwnSign: "CHECK", Queue: "0", Epoch: 1, Server: "rota-check:1:00000001"}
	for i := range n {
		b.Items = append(b.Items, Item{Key: fmt.Sprintf("rota-check-%d", i+1), Row: c.Row})
	}
	if c.Fence != "" {
		b.Fence = &Fence{c.Fence, []any{}}
	}
	return b
}

func (c *conformance) checkBatch(ctx context.Context, name string, b *Batch) {
	c.check(ctx, name, func(ctx context.Context) error { return c.exchange(ctx, b, nil) })
}

// exchange sends a batch, whose request change may change, and checks the reply. Rows may fail, but not the batch.
func (c *conformance) exchange(ctx context.Context, b *Batch, change func([]byte) []byte) error {
	_, err := c.request(ctx, b, change)
	return err
}

// request is exchange, and returns the reply.
func (c *conformance) request(ctx context.Context, b *Batch, change func([]byte) []byte) (*Reply, error) {
	b.complete(c.Timeout)
	request, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	if change != nil {
		request = change(request)
	}
	reply, err := c.ask(ctx, request, b)
	if err != nil {
		return nil, noReply{err}
	}
	return b.parse(reply)
}

func (c *conformance) checkUnknownOp(ctx context.Context) error {
	err := c.exchange(ctx, c.batch(1), func(request []byte) []byte {
		return bytes.Replace(request, []byte(`"op":"execute"`), []byte(`"op":"no-such-op"`), 1)
	})
	switch {
	case err == nil:
		return errors.New("the reply has items, and should have an error")
	case errors.As(err, new(badReply)), errors.As(err, new(noReply)):
		return err
	}
	return nil
}

func (c *conformance) checkFence(ctx context.Context) error {
	b := c.batch(1)
	b.Fence.SQL += " AND 1 = 0"
	err := c.exchange(ctx, b, nil)
	if errors.Is(err, ErrFenced) {
		return nil
	}
	if err == nil {
		err = errors.New("the program has not rolled back")
	}
	return fmt.Errorf("the reply must be fenced: %w", err)
}

// checkSignatures checks that the service refuses requests that no worker has sent just now.
func (c *conformance) checkSignatures(ctx context.Context, h *HTTP) {
	for _, forged := range []struct {
		name   string
		change func(*HTTP)
	}{
		{"a request without a signature is refused", func(h *HTTP) { h.secret = nil }},
		{"a request with another secret is refused", func(h *HTTP) { h.secret = append([]byte("x"), h.secret...) }},
		{"a request of an hour ago is refused", func(h *HTTP) {
			h.now = func() time.Time { return time.Now().Add(-time.Hour) }
		}},
	} {
		c.check(ctx, forged.name, func(ctx context.Context) error {
			other := *h
			forged.change(&other)
			b := c.batch(1)
			b.complete(c.Timeout)
			return other.wantRefusal(ctx, b)
		})
	}
	c.check(ctx, "a request that comes a second time is refused", func(ctx context.Context) error {
		b := c.batch(1)
		if err := c.exchange(ctx, b, nil); err != nil {
			return err
		}
		return h.wantRefusal(ctx, b)
	})
}

func (h *HTTP) wantRefusal(ctx context.Context, b *Batch) error {
	request, err := json.Marshal(b)
	if err != nil {
		return err
	}
	status, text, _, err := h.post(ctx, b, request)
	if err == nil && status/100 != 4 {
		err = fmt.Errorf("status %d, want 4xx: %s", status, excerpt(text))
	}
	return err
}
