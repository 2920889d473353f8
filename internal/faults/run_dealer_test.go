//go:build linux

package faults

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// The variants of dealers in mode RUN. They sweep the items that existed when the run began.
const (
	sweeping variant = "RUN"
	byName   variant = "RUN NAMED"   // its queues are q0 to q5, and are added and removed
	poisoned variant = "RUN KEYED"   // every seventh item fails until the table cures has a row
	spoiled  variant = "RUN SPOILED" // likewise every 35th item, three in a hundred
	// Likewise, with an error that is Permanent: no outage, even if only such items are left.
	refused  variant = "RUN REFUSED"
	tracking variant = "RUN CURSOR" // reads in order, only from the cursor of the run
	endless  variant = "RUN SAME"   // selects items again that are done
	graph    variant = "RUN GRAPH"  // left and right run after the first task type, and last after both
)

func (v variant) runs() bool { return strings.HasPrefix(string(v), "RUN") }

func (v variant) backlog() int {
	if v.runs() || v.blocks() {
		return 50
	}
	return backlog
}

func (v variant) applyRuns(s *manager.Settings) {
	// no deadline ends a run that hangs
	s.Mode, s.QueueRetry, s.RunTimeout = center.ModeRun, s.HeartbeatInterval/2, 2*patience
	s.QueueMaxAttempts, s.MaxRecoveries = 20, 20
	switch v {
	case byName:
		s.Queues, s.QueueNames = 0, []string{"q0", "q1", "q2", "q3", "q4", "q5"}
	case poisoned, spoiled, refused, endless:
		s.QueueMaxAttempts = 2
	}
}

// tasks returns the task types that the worker serves.
func (d *dealer) tasks(o order) []manager.Task {
	tasks := []manager.Task{manager.Serve(taskType, d.with(o.Variant), o.Settings)}
	if o.Variant == graph {
		for _, name := range dependants {
			tasks = append(tasks, manager.Serve(name, processor.Each(d.call), dependantSettings(o.Settings)))
		}
	}
	return tasks
}

// dependants are the task types of a graph except the first.
var dependants = []string{"left", "right", "last"}

// dependantSettings returns the settings of the dependants.
func dependantSettings(s manager.Settings) manager.Settings {
	s.Queues = 2
	return s
}

// sweeping returns the dealer for a variant in mode RUN.
func (d *dealer) sweeping(v variant) processor.TaskDealer[int64] {
	switch v {
	case poisoned:
		return poison{sweeper{d}, 7, func(err error) error { return err }}
	case spoiled:
		return poison{sweeper{d}, 35, func(err error) error { return err }}
	case refused:
		return poison{sweeper{d}, 7, processor.Permanent}
	case tracking:
		return tracker{sweeper{d}}
	case endless:
		return same{sweeper{d}}
	}
	return sweeper{d}
}

// sweeper selects the undone items that existed when the run began.
type sweeper struct{ *dealer }

// Select returns undone items that are not newer than the run.
func (s sweeper) Select(ctx context.Context, sel processor.Selection) ([]int64, error) {
	total, index := sel.Total, sel.Queue.Index
	// the index of a named queue changes when other queues are added or removed
	if name, ok := strings.CutPrefix(sel.Queue.ID, "q"); ok {
		n, err := strconv.Atoi(name)
		if err != nil {
			return nil, err
		}
		total, index = queues, n
	}
	ids, err := s.query(ctx, `SELECT id FROM items WHERE done = 0 AND made <= ? AND id % ? = ? ORDER BY id LIMIT ?`,
		sel.Run.StartedAt.UnixMilli(), total, index, sel.Limit)
	if err == nil && len(ids) == 0 {
		err = s.failpoints.take("empty").at("empty")
	}
	return ids, err
}

// sweepOf returns the state and the epoch in the run's row of the batch's queue, or "" in mode CONTINUOUS. The fence
// keeps that row unchanged.
func (d *dealer) sweepOf(ctx context.Context, tx querier, b center.Batch) (string, error) {
	if b.Run == "" {
		return "", nil
	}
	var state string
	var epoch int64
	err := tx.QueryRowContext(ctx, bind(d.c, `SELECT state, epoch FROM schedule_run_queue WHERE run_id = ?
		AND queue_id = ?`),
		b.Run, b.Queue.ID).Scan(&state, &epoch)
	return fmt.Sprintf("%s %d", state, epoch), err
}

// poison fails with some items until the table cures has a row.
type poison struct {
	sweeper
	every int64             // which items fail: those whose id it divides
	mark  func(error) error // of the error of an item
}

// Key implements processor.Keyed.
func (poison) Key(id int64) string { return strconv.FormatInt(id, 10) }

// Execute fails with some items until the table cures has a row.
func (p poison) Execute(ctx context.Context, ids []int64) error { return p.unless(ctx, ids, p.refuse) }

func (p poison) refuse(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		if id%p.every != 0 {
			continue
		}
		if cures, err := p.query(ctx, `SELECT id FROM cures`); err != nil || len(cures) == 0 {
			return cmp.Or(err, p.mark(fmt.Errorf("item %d: %w", id, errors.ErrUnsupported)))
		}
	}
	return nil
}

// tracker ignores the column done: only the cursor of the run prevents a second execution.
type tracker struct{ sweeper }

// Cursor implements processor.Cursored.
func (tracker) Cursor(id int64) string { return strconv.FormatInt(id, 10) }

// Select returns the items after the cursor. Run.Params is the time up to which earlier runs have done the items.
func (t tracker) Select(ctx context.Context, sel processor.Selection) ([]int64, error) {
	after, err := strconv.ParseInt(cmp.Or(sel.Queue.Cursor, "-1"), 10, 64)
	since, errSince := strconv.ParseInt(sel.Run.Params, 10, 64)
	if err := errors.Join(err, errSince); err != nil {
		return nil, err
	}
	return t.query(ctx, `SELECT id FROM items WHERE id > ? AND made > ? AND made <= ? AND id % ? = ? ORDER BY id LIMIT 20`,
		after, since, sel.Run.StartedAt.UnixMilli(), sel.Total, sel.Queue.Index)
}

// same selects the same items again after it has done them.
type same struct{ sweeper }

// Select returns the first items, done or not, until the table cures has a row.
func (s same) Select(ctx context.Context, sel processor.Selection) ([]int64, error) {
	if cures, err := s.query(ctx, `SELECT id FROM cures`); err != nil || len(cures) > 0 {
		return nil, err
	}
	return s.query(ctx, `SELECT id FROM items WHERE id % ? = ? ORDER BY id LIMIT 20`, sel.Total, sel.Queue.Index)
}

// Execute succeeds and writes nothing, because only the select matters here.
func (same) Execute(context.Context, []int64) error { return nil }

// call is the work of the dependants. In a fenced transaction it records that it was called, and the number of
// upstreams of its run that have not ended. The right dependant is slow, so that the left one ends long before it.
func (d *dealer) call(ctx context.Context, sel processor.Selection) error {
	b, _ := center.BatchFrom(ctx)
	for range map[string]int{"left": 1, "right": 10, "last": 1}[sel.TaskType] {
		if err := d.outside(ctx, failpoint{}); err != nil {
			return err
		}
	}
	return center.InTx(ctx, d.c.DB(), func(tx *sql.Tx) error {
		found, err := d.sweepOf(ctx, tx, b)
		if err != nil {
			return err
		}
		var waiting int64
		err = tx.QueryRowContext(ctx, bind(d.c, `SELECT COUNT(*) FROM schedule_run_dep d
			JOIN schedule_run u ON u.run_id = d.upstream_run_id
			WHERE d.run_id = ? AND u.state IN ('WAITING', 'READY', 'RUNNING')`), b.Run).Scan(&waiting)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, bind(d.c,
			`INSERT INTO calls (run, queue, epoch, sweep, waiting) VALUES (?, ?, ?, ?, ?)`),
			b.Run, sel.Queue.ID, sel.Queue.Epoch, found, waiting)
		return err
	})
}
