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

// power is what a dealer can do besides.
type power string

const (
	plain    power = ""
	notSleep power = "NOTSLEEP" // keyed, selected while others are executed, and every seventh item fails twice
	inOrder  power = "CURSOR"   // reads in order, from a cursor that the fence saves, and nothing but that
)

// powerScenarios are some of the others, with dealers that can do more.
var powerScenarios = []scenario{
	{name: "notsleep-kill", play: kill, power: notSleep, kinds: everywhere, quick: true},
	{name: "notsleep-pause-in-item", play: pauseInItem, power: notSleep, threads: 1},
	{name: "notsleep-rolling-restart", play: rollingRestart, power: notSleep},
	{name: "notsleep-replies-lost-at-random", play: repliesLostAtRandom, power: notSleep, proxied: true},
	{name: "cursor-kill", play: kill, power: inOrder, kinds: everywhere, quick: true},
	{name: "cursor-kill-before-commit", play: killBeforeCommit, power: inOrder},
	{name: "cursor-pause-in-item", play: pauseInItem, power: inOrder, threads: 1},
	{name: "cursor-pause-before-commit", play: pauseBeforeCommit, power: inOrder, threads: 1},
	{name: "cursor-rolling-restart", play: rollingRestart, power: inOrder, kinds: everywhere},
	{name: "cursor-replies-lost-at-random", play: repliesLostAtRandom, power: inOrder, proxied: true, quick: true},
	{name: "cursor-partition-of-one", play: partitionOfOne, power: inOrder, proxied: true},
}

func (p power) settle(s *manager.Settings) {
	if p.runs() {
		p.settleRuns(s)
	}
	if p == notSleep {
		s.ProcessorType, s.ThreadNumber, s.ExecuteNumber = center.ProcessorNotSleep, 3, 2
		s.ItemRetry, s.ItemRetryMax = s.HeartbeatInterval/10, s.HeartbeatInterval
	}
}

func (d *dealer) with(p power) processor.TaskDealer[int64] {
	switch p {
	case notSleep:
		return keyed{d}
	case inOrder:
		return cursored{d}
	case plain:
		return d
	}
	return d.sweeping(p)
}

// keyed fails with some items at first.
type keyed struct{ *dealer }

// Key implements processor.Keyed.
func (keyed) Key(id int64) string { return strconv.FormatInt(id, 10) }

// Execute fails twice with every seventh item, whoever executes it: the effects are counted in the database.
func (k keyed) Execute(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		if id%7 != 0 {
			continue
		}
		var attempts int
		err := k.c.DB().QueryRowContext(ctx, bind(k.c, `SELECT COALESCE(MAX(attempts), 0) FROM schedule_failed_item WHERE item_key = ?`), k.Key(id)).Scan(&attempts)
		if err != nil {
			return err
		}
		if attempts < 2 {
			return fmt.Errorf("item %d: %w", id, errors.ErrUnsupported)
		}
	}
	return k.dealer.Execute(ctx, ids)
}

// cursored does not look at what is done: the cursor alone keeps it from doing things twice.
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
	return c.query(ctx, `SELECT id FROM items WHERE id > ? AND id % ? = ? ORDER BY id LIMIT 20`, after, s.Total, s.Queue.Index)
}
