package program

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// checkAnswers checks the operations that the program answers beside OpExecute. Its items are divided into two queues.
func (c *conformance) checkAnswers(ctx context.Context) {
	if !slices.Contains(c.Answers, OpSelect) {
		return
	}
	var queues [conformQueues]*Answer
	c.check(ctx, "select: two queues share no item and no order key", func(ctx context.Context) (err error) {
		for i := range queues {
			if queues[i], err = c.question(ctx, c.selectOf(i, 1_000)); err != nil {
				return err
			}
		}
		return shareNothing(queues[0].Items, queues[1].Items)
	})
	c.check(ctx, "select: a limit of one item", func(ctx context.Context) error {
		_, err := c.question(ctx, c.selectOf(0, 1))
		return err
	})
	c.check(ctx, "select: held order keys", func(ctx context.Context) error { return c.checkHeld(ctx, queues[0]) })
	if slices.Contains(c.Answers, OpDiscard) {
		b := c.batch(1)
		b.Op, b.Items[0].Error = OpDiscard, "rota worker check"
		c.checkBatch(ctx, "discard", b)
	}
	if slices.Contains(c.Answers, OpBacklog) {
		c.check(ctx, "backlog", func(ctx context.Context) error {
			b := c.selectOf(0, 0)
			b.Op = OpBacklog
			_, err := c.question(ctx, b)
			return err
		})
	}
	if slices.Contains(c.Answers, OpPeek) {
		c.check(ctx, "peek: the queues with items", func(ctx context.Context) error { return c.checkPeek(ctx, queues[:]) })
	}
}

// conformQueues is the number of queues into which the items of the program are divided.
const conformQueues = 2

// selectOf returns the select of a queue.
func (c *conformance) selectOf(queue, limit int) *Batch {
	b := c.batch(0)
	b.Op, b.Queue, b.Limit, b.Server, b.Fence = OpSelect, strconv.Itoa(queue), limit, "", nil
	b.Part = &Part{Index: queue, Total: conformQueues}
	return b
}

// question is request for the operations with an Answer.
func (c *conformance) question(ctx context.Context, b *Batch) (*Answer, error) {
	b.complete(c.names.next(), c.Timeout)
	reply, err := c.replyTo(ctx, b, nil)
	if err != nil {
		return nil, err
	}
	return b.parseAnswer(reply)
}

// shareNothing checks that no item and no order key of one queue is in another.
func shareNothing(one, other []Selected) error {
	keys, orderKeys := map[string]bool{}, map[string]bool{}
	for _, s := range one {
		keys[s.Key], orderKeys[s.OrderKey] = true, s.OrderKey != ""
	}
	for _, s := range other {
		switch {
		case keys[s.Key]:
			return fmt.Errorf("both queues have the item %.80q", s.Key)
		case orderKeys[s.OrderKey]:
			return fmt.Errorf("both queues have items of the order key %.80q, which have no order then", s.OrderKey)
		}
	}
	return nil
}

// checkHeld selects without the first order key. The program may ignore that, and leaves out no other item.
func (c *conformance) checkHeld(ctx context.Context, all *Answer) error {
	b := c.selectOf(0, 1_000)
	b.Held = []string{"rota-check"}
	if all != nil && len(all.Items) > 0 && all.Items[0].OrderKey != "" {
		b.Held = []string{all.Items[0].OrderKey}
	}
	a, err := c.question(ctx, b)
	if err != nil || all == nil || len(all.Items) == b.Limit {
		return err
	}
	for _, s := range all.Items {
		same := func(other Selected) bool { return other.Key == s.Key }
		if s.OrderKey != b.Held[0] && !slices.ContainsFunc(a.Items, same) {
			return fmt.Errorf("the order key %.80q is held, and the item %.80q of another is left out", b.Held[0], s.Key)
		}
	}
	return nil
}

// checkPeek checks that the program names each queue in which it has selected items.
func (c *conformance) checkPeek(ctx context.Context, selected []*Answer) error {
	b := c.batch(0)
	b.Op, b.Queue, b.Epoch, b.Server, b.Fence = OpPeek, "", 0, "", nil
	for i := range selected {
		b.Queues = append(b.Queues, Idle{strconv.Itoa(i), 1, Part{Index: i, Total: conformQueues}})
	}
	a, err := c.question(ctx, b)
	if err != nil {
		return err
	}
	for i, s := range selected {
		if s != nil && len(s.Items) > 0 && !slices.Contains(a.Queues, strconv.Itoa(i)) {
			return fmt.Errorf("queue %d has items, and the reply does not name it", i)
		}
	}
	return nil
}
