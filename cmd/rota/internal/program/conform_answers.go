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
	var queues [conformQueues]*Reply
	c.check(ctx, "select: two queues share no item and no order key", func(ctx context.Context) (err error) {
		for i := range queues {
			if queues[i], err = c.request(ctx, c.selectOf(i, 1_000), nil); err != nil {
				return err
			}
		}
		return shareNothing(queues[0].Selected, queues[1].Selected)
	})
	c.check(ctx, "select: a limit of one item", func(ctx context.Context) error {
		return c.exchange(ctx, c.selectOf(0, 1), nil)
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
			return c.exchange(ctx, b, nil)
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
func (c *conformance) checkHeld(ctx context.Context, all *Reply) error {
	b := c.selectOf(0, 1_000)
	b.Held = []string{"rota-check"}
	if all != nil && len(all.Selected) > 0 && all.Selected[0].OrderKey != "" {
		b.Held = []string{all.Selected[0].OrderKey}
	}
	r, err := c.request(ctx, b, nil)
	if err != nil || all == nil || len(all.Selected) == b.Limit {
		return err
	}
	for _, s := range all.Selected {
		same := func(other Selected) bool { return other.Key == s.Key }
		if s.OrderKey != b.Held[0] && !slices.ContainsFunc(r.Selected, same) {
			return fmt.Errorf("the order key %.80q is held, and the item %.80q of another is left out", b.Held[0], s.Key)
		}
	}
	return nil
}

// checkPeek checks that the program names each queue in which it has selected items.
func (c *conformance) checkPeek(ctx context.Context, selected []*Reply) error {
	b := c.batch(0)
	b.Op, b.Queue, b.Epoch, b.Server, b.Fence = OpPeek, "", 0, "", nil
	for i := range selected {
		b.Queues = append(b.Queues, Idle{strconv.Itoa(i), 1, Part{Index: i, Total: conformQueues}})
	}
	r, err := c.request(ctx, b, nil)
	if err != nil {
		return err
	}
	for i, s := range selected {
		if s != nil && len(s.Selected) > 0 && !slices.Contains(r.Queues, strconv.Itoa(i)) {
			return fmt.Errorf("queue %d has items, and the reply does not name it", i)
		}
	}
	return nil
}
