package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// The items of a task. effects counts what was done for an item, and turn the effects of the file in their order. -1
// effects mean that the item was discarded.
const (
	itemTable = `CREATE TABLE sim_item (task TEXT, id INTEGER, order_key INTEGER, fate TEXT, effects INTEGER NOT NULL DEFAULT 0,
		turn INTEGER, PRIMARY KEY (task, id))`
	sweptTable = `CREATE TABLE sim_swept (task TEXT, run_id TEXT, id INTEGER, effects INTEGER NOT NULL, PRIMARY KEY (task, run_id, id))`
	// The effects under each epoch: who had it.
	effectTable = `CREATE TABLE sim_effect (task TEXT, queue TEXT, division TEXT, epoch INTEGER, server TEXT,
		PRIMARY KEY (task, queue, epoch, server))`
)

// The fates of items. An item ends its process while that executes it.
const (
	fateFine   = "fine"
	fateOnce   = "fails-once"
	fatePoison = "poison"
	fateKiller = "ends-its-process-once"
)

// eachItem says that a step gives the fate to all items that it adds, and not only to the last one.
const eachItem = "each"

type item struct {
	id   int64
	key  int64
	fate string
	of   string // the queue for which SelectSet has returned it
}

// dealer is a task in a process. It has the methods of all capabilities, and offers those of the task.
type dealer struct {
	*task
	p *process
}

// Capabilities implements processor.Capable.
func (d *dealer) Capabilities() processor.Capabilities { return d.offers }

// place is a database with items: the roster's, or a data database.
type place interface {
	DB() *sql.DB
	Dialect() schema.Dialect
}

func (d *dealer) place(data string) place {
	if data == "" {
		return d.p.center
	}
	return d.p.center.Data(data)
}

// Select implements processor.TaskDealer.
func (d *dealer) Select(ctx context.Context, s processor.Selection) ([]item, error) {
	if err := d.p.link.stands(ctx); err != nil {
		return nil, err
	}
	d.p.w.sees(d.task, s.Queue)
	where, args := d.where(s)
	if d.offers.Paged && s.After != "" {
		where, args = where+` AND id > ?`, append(args, number(s.After))
	}
	for _, held := range s.Held {
		where, args = where+` AND order_key <> ?`, append(args, number(held))
	}
	rows, err := d.place(s.Queue.Database).DB().QueryContext(ctx,
		`SELECT id, order_key, fate FROM sim_item i WHERE `+where+` ORDER BY id LIMIT ?`, append(args, s.Limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []item
	for rows.Next() {
		var i item
		if err := rows.Scan(&i.id, &i.key, &i.fate); err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	return list, rows.Err()
}

// where returns the condition of the items that a queue has left.
func (d *dealer) where(s processor.Selection) (where string, args []any) {
	where, args = `task = ? AND `+d.nameSQL()+` = ?`, []any{d.name, s.Queue.ID}
	if !d.named() {
		dialect := d.place(s.Queue.Database).Dialect()
		where, args = `task = ? AND `+dialect.Mine(d.dividedBy(), 2), []any{d.name, s.Total, s.Queue.Index}
	}
	switch {
	case s.Run != nil:
		where += ` AND NOT EXISTS (SELECT 1 FROM sim_swept w WHERE w.task = i.task AND w.run_id = ? AND w.id = i.id)`
		args = append(args, s.Run.ID)
	case !d.offers.Cursored:
		where += ` AND effects = 0`
	}
	if after := s.Queue.Cursor; d.offers.Cursored && after != "" {
		where, args = where+` AND id > ?`, append(args, number(after))
	}
	return where, args
}

// Peek implements processor.Peeker.
func (d *dealer) Peek(ctx context.Context, idle []processor.Selection) (ids []string, err error) {
	if !d.peeks {
		return nil, processor.ErrNoPeek
	}
	for _, s := range idle {
		items, err := d.Select(ctx, s)
		if err != nil {
			return nil, err
		}
		if len(items) > 0 {
			ids = append(ids, s.Queue.ID)
		}
	}
	return ids, nil
}

// Backlog implements processor.Backlogger.
func (d *dealer) Backlog(ctx context.Context, s processor.Selection) (b processor.Backlog, err error) {
	if !d.counts {
		return b, processor.ErrNoBacklog
	}
	if err := d.p.link.stands(ctx); err != nil {
		return b, err
	}
	where, args := d.where(s)
	err = d.place(s.Queue.Database).DB().QueryRowContext(ctx, `SELECT COUNT(*) FROM sim_item i WHERE `+where, args...).Scan(&b.Items)
	return b, err
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// Execute implements processor.TaskDealer.
func (d *dealer) Execute(ctx context.Context, items []item) error {
	b, _ := center.BatchFrom(ctx)
	call := d.p.w.enter(ctx, d.p, d.task, b, items)
	defer d.p.w.exit(call) //nolint:contextcheck // it asks the roster also when the context of Execute has ended
	if err := d.work(ctx); err != nil {
		return err
	}
	var failures processor.Failures
	var fine []item
	for n, i := range items {
		switch err := d.meet(i); {
		case errors.Is(err, errKilled):
			return err
		case err != nil && d.offers.Cursored:
			return err // a cursor passes all items of a batch or none
		case err != nil:
			failures.Add(n, err)
		default:
			fine = append(fine, i)
		}
	}
	if len(fine) > 0 {
		if err := d.write(d.careless(ctx), b, fine); err != nil {
			return err
		}
	}
	return failures.Err()
}

// work takes a while, and stands still with its process.
func (d *dealer) work(ctx context.Context) error {
	select {
	case <-time.After(d.p.w.upTo(d.takes)):
	case <-d.p.link.killed:
		return errKilled
	case <-ctx.Done():
		return ctx.Err()
	}
	for d.p.w.isHung(d.task) && !d.p.link.isDead() && ctx.Err() == nil {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = d.careless(ctx)
	if err := errors.Join(d.p.link.stands(ctx), ctx.Err()); err != nil {
		return err
	}
	if d.p.w.isOut(d.task) {
		return errors.New("what the task calls is away")
	}
	return nil
}

// careless returns the context of a dealer from the end of its work on. One with a single statement sends that whatever
// has happened meanwhile, so that only the fence keeps a process from writing that has stood still.
func (d *dealer) careless(ctx context.Context) context.Context {
	if d.writes == "exec" {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// meet returns what an item does instead of being done.
func (d *dealer) meet(i item) error {
	tried := d.p.w.try(d.task, i)
	switch {
	case i.fate == fatePoison, i.fate == fateOnce && tried == 1:
		return fmt.Errorf("item %d fails", i.id)
	case i.fate == fateKiller && tried == 1 && !d.p.w.calm.Load():
		d.p.w.kill(d.p)
		return errKilled
	}
	return nil
}

// write makes the effects of items, as the task does it.
func (d *dealer) write(ctx context.Context, b center.Batch, items []item) error {
	run, _ := processor.RunOf(ctx)
	effect := func(tx execer) error { return d.effect(ctx, tx, b, run, items) }
	data := center.DataOf(ctx)
	db := d.place(b.Database).DB()
	switch d.writes {
	case "exec":
		query, args := d.statement(run, items)
		if data != nil {
			return data.ExecFenced(ctx, query, args...)
		}
		return center.ExecFenced(ctx, db, query, args...)
	case "intx":
		if data != nil {
			return data.InTx(ctx, func(tx *sql.Tx) error { return effect(tx) })
		}
		return center.InTx(ctx, db, func(tx *sql.Tx) error { return effect(tx) })
	case "fence":
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if data != nil {
			err = data.Fence(ctx, tx)
		} else {
			err = center.Fence(ctx, tx)
		}
		if err == nil {
			err = effect(tx)
		}
		if err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return errors.Join(err, center.UnknownCommit(ctx))
		}
		return nil
	}
	return effect(db)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// effect makes the effects of items, and notes whose they are.
func (d *dealer) effect(ctx context.Context, tx execer, b center.Batch, run *processor.Run, items []item) error {
	query, args := d.statement(run, items)
	_, err := tx.ExecContext(ctx, query, args...)
	if err == nil && run == nil && d.writes != "plain" {
		_, err = tx.ExecContext(ctx, `INSERT OR IGNORE INTO sim_effect (task, queue, epoch, server) VALUES (?, ?, ?, ?)`,
			d.name, b.Queue.ID, b.Queue.Epoch, b.Server)
	}
	return err
}

// statement makes the effects of items. It does not look whether an item was done before.
func (d *dealer) statement(run *processor.Run, items []item) (query string, args []any) {
	ids := make([]string, len(items))
	for n, i := range items {
		ids[n] = strconv.FormatInt(i.id, 10)
	}
	slices.Sort(ids)
	list := strings.Join(ids, ", ")
	if run != nil {
		return `INSERT INTO sim_swept (task, run_id, id, effects)
			SELECT task, ?, id, 1 FROM sim_item WHERE task = ? AND id IN (` + list + `)
			ON CONFLICT DO UPDATE SET effects = effects + 1`, []any{run.ID, d.name}
	}
	return `UPDATE sim_item SET effects = effects + 1,
		turn = (SELECT COALESCE(MAX(turn), 0) FROM sim_item) + 1 WHERE task = ? AND id IN (` + list + `)`, []any{d.name}
}

// Key implements processor.Keyed.
func (d *dealer) Key(i item) string { return strconv.FormatInt(i.id, 10) }

// Cursor implements processor.Cursored.
func (d *dealer) Cursor(i item) string { return strconv.FormatInt(i.id, 10) }

// Position implements processor.Paged.
func (d *dealer) Position(i item) string { return strconv.FormatInt(i.id, 10) }

// OrderKey implements processor.Ordered.
func (d *dealer) OrderKey(i item) string { return strconv.FormatInt(i.key, 10) }

// Discard implements processor.Discarder.
func (d *dealer) Discard(ctx context.Context, i item, _ error) error {
	if err := d.p.link.stands(ctx); err != nil {
		return err
	}
	b, _ := center.BatchFrom(ctx)
	_, err := d.place(b.Database).DB().ExecContext(ctx,
		`UPDATE sim_item SET effects = -1 WHERE task = ? AND id = ? AND effects = 0`, d.name, i.id)
	return err
}

// SelectSet implements processor.SetSelector.
func (d *dealer) SelectSet(ctx context.Context, s processor.Selection, owned []processor.Queue) (list []item, err error) {
	for _, q := range owned {
		of := s
		of.Queue, of.Limit = q, max(1, s.Limit/len(owned))
		some, err := d.Select(ctx, of)
		if err != nil {
			return nil, err
		}
		for i := range some {
			some[i].of = q.ID
		}
		list = append(list, some...)
	}
	return list, nil
}

// QueueOf implements processor.SetSelector.
func (d *dealer) QueueOf(i item) string { return i.of }
