//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// variant is a kind of dealer.
type variant string

const (
	plain    variant = ""
	notSleep variant = "NOTSLEEP" // keyed; selects while batches are in flight; every seventh item fails twice
	inOrder  variant = "CURSOR"   // reads in order, only from a cursor that is saved under the fence
)

// variantScenarios play other scenarios with other kinds of dealers.
var variantScenarios = []scenario{
	{name: "notsleep-kill", play: kill, variant: notSleep, kinds: everywhere, quick: true},
	{name: "notsleep-pause-in-item", play: pauseInItem, variant: notSleep, threads: 1},
	{name: "cursor-kill", play: kill, variant: inOrder, kinds: everywhere, quick: true},
	{name: "cursor-kill-before-commit", play: killBeforeCommit, variant: inOrder},
	{name: "cursor-pause-in-item", play: pauseInItem, variant: inOrder, threads: 1},
	{name: "cursor-pause-before-commit", play: pauseBeforeCommit, variant: inOrder, threads: 1},
	{name: "cursor-commit-under-way", play: commitUnderWay, variant: inOrder, proxied: true, inTx: true},
}

func (v variant) apply(s *manager.Settings) {
	switch {
	case v.runs():
		v.applyRuns(s)
	case v.blocks():
		v.applyBlock(s)
	case v.orders():
		v.applyOrder(s)
	}
	if v == notSleep {
		s.ProcessorType, s.ThreadNumber, s.ExecuteNumber = center.ProcessorNotSleep, 3, 2
		s.ItemRetry, s.ItemRetryMax = s.HeartbeatInterval/10, s.HeartbeatInterval
	}
}

func (d *dealer) with(v variant) processor.TaskDealer[int64] {
	switch v {
	case notSleep:
		return keyed{d}
	case inOrder:
		return cursored{d}
	case blocked, outages, behind, tenant:
		return d.blocking(v)
	case orderly, orderlyOn:
		return ordering{keyed{d}, false}
	case orderlyAll:
		return ordering{keyed{d}, true}
	case plain:
		return d
	}
	return d.sweeping(v)
}

// keyed fails with some items at the first attempts.
type keyed struct{ *dealer }

// Key implements processor.Keyed.
func (keyed) Key(id int64) string { return strconv.FormatInt(id, 10) }

// Execute fails twice with every seventh item. It counts the attempts in the database, because a take-over changes the
// server.
func (k keyed) Execute(ctx context.Context, ids []int64) error { return k.unless(ctx, ids, k.refuse) }

func (k keyed) refuse(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		if id%7 != 0 {
			continue
		}
		var attempts int
		err := k.c.DB().QueryRowContext(ctx, bind(k.c, `SELECT COALESCE(MAX(attempts), 0) FROM schedule_failed_item
			WHERE item_key = ?`), k.Key(id)).Scan(&attempts)
		if err != nil {
			return err
		}
		if attempts < 2 {
			return fmt.Errorf("item %d: %w", id, errors.ErrUnsupported)
		}
	}
	return nil
}

// cursored ignores the column done: only the cursor prevents a second execution.
type cursored struct{ *dealer }

// Cursor implements processor.Cursored.
func (cursored) Cursor(id int64) string { return strconv.FormatInt(id, 10) }

// Select returns the items after the cursor.
func (c cursored) Select(ctx context.Context, s processor.Selection) (ids []int64, err error) {
	after := int64(-1)
	if s.Queue.Cursor != "" {
		if after, err = strconv.ParseInt(s.Queue.Cursor, 10, 64); err != nil {
			return nil, err
		}
	}
	return idsIn(ctx, placeOf(c.c, s.Queue.Database),
		`SELECT id FROM items WHERE id > ? AND id % ? = ? ORDER BY id LIMIT 20`, after, s.Total, s.Queue.Index)
}
