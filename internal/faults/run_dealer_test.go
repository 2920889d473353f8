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

// The powers of dealers in mode RUN. They sweep what was there when the run began.
const (
	sweeping power = "RUN"
	byName   power = "RUN NAMED"  // of queues q0 to q5, which come and go
	poisoned power = "RUN KEYED"  // every seventh item fails until there is a cure
	tracking power = "RUN CURSOR" // reads in order, from the run's cursor, and nothing but that
	endless  power = "RUN SAME"   // a select that does not know what is done
	graph    power = "RUN GRAPH"  // three more task types follow: left and right, and last
)

func (p power) runs() bool { return strings.HasPrefix(string(p), "RUN") }

func (p power) backlog() int {
	if p.runs() {
		return 50
	}
	return backlog
}

func (p power) settleRuns(s *manager.Settings) {
	s.Mode, s.QueueRetry, s.RunTimeout = center.ModeRun, s.HeartbeatInterval/2, 2*patience // no deadline mends what hangs
	s.QueueMaxAttempts, s.MaxRecoveries = 20, 20
	switch p {
	case byName:
		s.Queues, s.QueueNames = 0, []string{"q0", "q1", "q2", "q3", "q4", "q5"}
	case poisoned, endless:
		s.QueueMaxAttempts = 2
	}
}

// tasks are what the worker serves.
func (d *dealer) tasks(o order) []manager.Task {
	tasks := []manager.Task{manager.Serve(taskType, d.with(o.Power), o.Settings)}
	if o.Power == graph {
		for _, name := range followers {
			tasks = append(tasks, manager.Serve(name, processor.Each(d.call), following(o.Settings)))
		}
	}
	return tasks
}

// followers are the task types of a graph beside the first.
var followers = []string{"left", "right", "last"}

// following are the settings of the followers.
func following(s manager.Settings) manager.Settings {
	s.Queues = 2
	return s
}

// sweeping returns the dealer for a power in mode RUN.
func (d *dealer) sweeping(p power) processor.TaskDealer[int64] {
	switch p {
	case poisoned:
		return poison{sweeper{d}}
	case tracking:
		return tracker{sweeper{d}}
	case endless:
		return same{sweeper{d}}
	}
	return sweeper{d}
}

// sweeper selects the undone items that were there when the run began.
type sweeper struct{ *dealer }

// Select returns items that are not newer than the run.
func (s sweeper) Select(ctx context.Context, sel processor.Selection) ([]int64, error) {
	total, index := sel.Total, sel.Queue.Index
	if name, ok := strings.CutPrefix(sel.Queue.ID, "q"); ok { // whose place changes when others come and go
		n, err := strconv.Atoi(name)
		if err != nil {
			return nil, err
		}
		total, index = queues, n
	}
	ids, err := s.query(ctx, `SELECT id FROM items WHERE done = 0 AND made <= ? AND id % ? = ? ORDER BY id LIMIT ?`,
		sel.Run.StartedAt.UnixMilli(), total, index, sel.Limit)
	if err == nil && len(ids) == 0 {
		err = s.trap.take("empty").at("empty")
	}
	return ids, err
}

// sweepOf tells what the row of the batch's queue in its run says; "" in CONTINUOUS. The fence keeps it so.
func (d *dealer) sweepOf(ctx context.Context, tx *sql.Tx, b center.Batch) (string, error) {
	if b.Run == "" {
		return "", nil
	}
	var state string
	var epoch int64
	err := tx.QueryRowContext(ctx, bind(d.c, `SELECT state, epoch FROM schedule_run_queue WHERE run_id = ? AND queue_id = ?`),
		b.Run, b.Queues[0].ID).Scan(&state, &epoch)
	return fmt.Sprintf("%s %d", state, epoch), err
}

// poison fails with some items.
type poison struct{ sweeper }

// Key implements processor.Keyed.
func (poison) Key(id int64) string { return strconv.FormatInt(id, 10) }

// Execute fails with every seventh item until there is a cure.
func (p poison) Execute(ctx context.Context, ids []int64) error {
	for _, id := range ids {
		if id%7 != 0 {
			continue
		}
		if cures, err := p.query(ctx, `SELECT id FROM cures`); err != nil || len(cures) == 0 {
			return cmp.Or(err, fmt.Errorf("item %d: %w", id, errors.ErrUnsupported))
		}
	}
	return p.dealer.Execute(ctx, ids)
}

// tracker does not look at what is done: the run's cursor alone keeps it from doing things twice.
type tracker struct{ sweeper }

// Cursor implements processor.Cursored.
func (tracker) Cursor(id int64) string { return strconv.FormatInt(id, 10) }

// Select returns the items after the cursor; what runs before this one have done lies before Run.Params.
func (t tracker) Select(ctx context.Context, sel processor.Selection) ([]int64, error) {
	after, err := strconv.ParseInt(cmp.Or(sel.Queue.Cursor, "-1"), 10, 64)
	since, errSince := strconv.ParseInt(sel.Run.Params, 10, 64)
	if err := errors.Join(err, errSince); err != nil {
		return nil, err
	}
	return t.query(ctx, `SELECT id FROM items WHERE id > ? AND made > ? AND made <= ? AND id % ? = ? ORDER BY id LIMIT 20`,
		after, since, sel.Run.StartedAt.UnixMilli(), sel.Total, sel.Queue.Index)
}

// same selects what it has done.
type same struct{ sweeper }

// Select returns the first items, whatever has become of them, until there is a cure.
func (s same) Select(ctx context.Context, sel processor.Selection) ([]int64, error) {
	if cures, err := s.query(ctx, `SELECT id FROM cures`); err != nil || len(cures) > 0 {
		return nil, err
	}
	return s.query(ctx, `SELECT id FROM items WHERE id % ? = ? ORDER BY id LIMIT 20`, sel.Total, sel.Queue.Index)
}

// Execute takes the items for done without a trace: it is the select that this is about.
func (same) Execute(context.Context, []int64) error { return nil }

// call is the work of the task types that follow: it notes, in a fenced transaction, that it was called, and how many
// upstreams of its run have not ended. The right one is slow, so that the left one ends long before it.
func (d *dealer) call(ctx context.Context, sel processor.Selection) error {
	b, _ := center.BatchFrom(ctx)
	for range map[string]int{"left": 1, "right": 10, "last": 1}[sel.TaskType] {
		if err := d.outside(ctx, snare{}); err != nil {
			return err
		}
	}
	return center.InTx(ctx, d.c.DB(), func(tx *sql.Tx) error {
		found, err := d.sweepOf(ctx, tx, b)
		if err != nil {
			return err
		}
		var waiting int64
		err = tx.QueryRowContext(ctx, bind(d.c, `SELECT COUNT(*) FROM schedule_run_dep d JOIN schedule_run u ON u.run_id = d.upstream_run_id
			WHERE d.run_id = ? AND u.state IN ('WAITING', 'READY', 'RUNNING')`), b.Run).Scan(&waiting)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, bind(d.c, `INSERT INTO calls (run, queue, epoch, sweep, waiting) VALUES (?, ?, ?, ?, ?)`),
			b.Run, sel.Queue.ID, sel.Queue.Epoch, found, waiting)
		return err
	})
}
