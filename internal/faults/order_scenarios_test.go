//go:build linux

package faults

import (
	"context"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// The variants of dealers whose items have order keys. Every seventh item fails twice, and holds its key meanwhile.
const (
	orderly    variant = "ORDER"          // items of one key share no batch
	orderlyAll variant = "ORDER ATOMIC"   // Execute is all or nothing, so that they do
	orderlyOn  variant = "ORDER NOTSLEEP" // selects while batches are in flight
)

// orderScenarios play other scenarios with order keys.
var orderScenarios = []scenario{
	{name: "order-kill", play: kill, variant: orderly, kinds: everywhere, quick: true, review: keysInOrder},
	{name: "order-kill-before-commit", play: killBeforeCommit, variant: orderlyAll, review: keysInOrder},
	{name: "order-pause-in-item", play: pauseInItem, variant: orderlyAll, threads: 1, review: keysInOrder},
	{name: "order-notsleep-kill", play: kill, variant: orderlyOn, review: keysInOrder},
}

// keysPerQueue is how many order keys the items of a queue have. It is even, so that the two halves of a split queue
// share no key.
const keysPerQueue = 4

// orderKey returns the order key of an item. Its items are in one queue.
func orderKey(id int64) int64 { return id % (keysPerQueue * queues) }

func (v variant) orders() bool { return strings.HasPrefix(string(v), "ORDER") }

func (v variant) applyOrder(s *manager.Settings) {
	s.ThreadNumber, s.ExecuteNumber = 3, 4
	s.ItemRetry, s.ItemRetryMax = s.HeartbeatInterval/10, s.HeartbeatInterval
	if v == orderlyOn {
		s.ProcessorType = center.ProcessorNotSleep
	}
}

// ordering is keyed with order keys.
type ordering struct {
	keyed
	atomic bool
}

// OrderKey implements processor.Ordered.
func (ordering) OrderKey(id int64) string { return strconv.FormatInt(orderKey(id), 10) }

// Atomic implements processor.Atomic.
func (o ordering) Atomic() bool { return o.atomic }

// Select leaves out the held keys.
func (o ordering) Select(ctx context.Context, s processor.Selection) (ids []int64, err error) {
	query, args := `SELECT id FROM items WHERE done = 0 AND id % ? = ?`, []any{s.Total, s.Queue.Index}
	for _, held := range s.Held {
		key, err := strconv.ParseInt(held, 10, 64)
		if err != nil {
			return nil, err
		}
		query, args = query+` AND id % ? <> ?`, append(args, keysPerQueue*queues, key)
	}
	return idsIn(ctx, o.c, query+` ORDER BY id LIMIT ?`, append(args, s.Limit)...)
}

// keysInOrder checks 23. The effects of one key have their numbers one after the other: the next item begins when the
// transaction of the one before has ended.
func keysInOrder(s *stage, h *History) {
	last := map[int64]int64{}
	for _, e := range h.Effects { // in the order of history.seq
		key := orderKey(e.Item)
		if before, ok := last[key]; ok && e.Item <= before {
			s.t.Errorf("invariant 23: item %d of order key %d took effect after item %d, under epoch %d of queue %s",
				e.Item, key, before, e.Epoch, e.Queue)
		}
		last[key] = e.Item
	}
	if len(last) < keysPerQueue*queues/2 {
		s.t.Errorf("the effects have %d order keys, too few to show an order", len(last))
	}
}
