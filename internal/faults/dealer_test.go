//go:build linux

package faults

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// place is a database with items: the roster's, or a data database.
type place interface {
	DB() *sql.DB
	Dialect() schema.Dialect
}

// placeOf returns the data database of a name, or the roster's database if the name is empty.
func placeOf(c *center.Center, name string) place {
	if name == "" {
		return c
	}
	return c.Data(name)
}

// dealer does the items of the table items, and records its calls in the notes and its effects in the database of the
// items.
type dealer struct {
	c          *center.Center
	notes      notes
	work       time.Duration
	single     bool // it writes a batch by one statement
	failpoints failpoints
	calls      atomic.Int64
	// A call that stops the process waits for the transactions of the others: they would keep their queues from the other
	// processes.
	writing sync.RWMutex
}

// Select returns undone items of a queue.
func (d *dealer) Select(ctx context.Context, s processor.Selection) (ids []int64, err error) {
	return idsIn(ctx, placeOf(d.c, s.Queue.Database),
		`SELECT id FROM items WHERE done = 0 AND id % ? = ? ORDER BY id LIMIT 20`, s.Total, s.Queue.Index)
}

// query returns the ids that a query of the roster's database yields.
func (d *dealer) query(ctx context.Context, query string, args ...any) ([]int64, error) {
	return idsIn(ctx, d.c, query, args...)
}

func idsIn(ctx context.Context, at place, query string, args ...any) (ids []int64, err error) {
	rows, err := at.DB().QueryContext(ctx, bind(at, query), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// Execute does some work outside the database and then marks the items under the fence. A call with a
// failpoint ignores its context, as a careless dealer does. Only the fence protects the items from it.
func (d *dealer) Execute(ctx context.Context, ids []int64) error {
	return d.unless(ctx, ids, func(context.Context, []int64) error { return nil })
}

// unless is Execute, and fails instead if refuse returns an error. The call has begun before refuse asks the database.
func (d *dealer) unless(ctx context.Context, ids []int64, refuse func(context.Context, []int64) error) (err error) {
	b, _ := center.BatchFrom(ctx)
	call := d.calls.Add(1)
	d.notes.add(note{What: "begin", Call: call, Batch: b.Server, Queue: b.Queue.ID, Epoch: b.Queue.Epoch})
	defer func() { d.notes.add(note{What: "end", Call: call, Error: fmt.Sprint(err)}) }() // noError if err is nil
	if err := refuse(ctx, ids); err != nil {
		return err
	}
	s := d.failpoints.take("work", "commit")
	if s.point != "" {
		ctx = context.WithoutCancel(ctx)
	}
	err = d.outside(ctx, s)
	d.notes.add(note{What: "worked", Call: call})
	if err != nil {
		return err
	}
	d.writing.RLock()
	defer d.writing.RUnlock()
	return d.write(ctx, b, ids, s)
}

// outside takes a random time between 0.5 and 1.5 times the work of the order.
func (d *dealer) outside(ctx context.Context, s failpoint) error {
	if err := d.stopAt(s, "work"); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d.work/2 + rand.N(d.work)):
		return nil
	}
}

// stopAt sends the signal if this is its point, while no other call of the process is in a transaction.
func (d *dealer) stopAt(s failpoint, point string) error {
	if s.signal == syscall.SIGSTOP && s.point == point {
		d.writing.Lock()
		defer d.writing.Unlock()
	}
	return s.at(point)
}

// write marks the items under the fence: by one statement that is all of the batch, or in a transaction. A failpoint
// before a commit needs the latter, and so does what a run reads beside its effects.
func (d *dealer) write(ctx context.Context, b center.Batch, ids []int64, s failpoint) error {
	at, data := placeOf(d.c, b.Database), center.DataOf(ctx)
	if d.single && b.Run == "" && s.point != "commit" && at.Dialect() != schema.TiDB {
		query, args, err := d.effects(ctx, at.DB(), b, ids)
		switch {
		case err != nil:
			return err
		case data != nil:
			return data.ExecFenced(ctx, query, args...)
		}
		return center.ExecFenced(ctx, d.c.DB(), query, args...)
	}
	inTx := func(tx *sql.Tx) error {
		query, args, err := d.effects(ctx, tx, b, ids)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return err
		}
		if at.Dialect() == schema.TiDB { // it has no triggers
			if err := d.mark(ctx, tx, ids); err != nil {
				return err
			}
		}
		return s.at("commit")
	}
	if data != nil {
		return data.InTx(ctx, inTx)
	}
	return center.InTx(ctx, d.c.DB(), inTx)
}

func (d *dealer) mark(ctx context.Context, tx *sql.Tx, ids []int64) error {
	for _, id := range ids {
		if _, err := tx.ExecContext(ctx, strings.ReplaceAll(markItem, "NEW.item", "?"), id); err != nil {
			return err
		}
	}
	return nil
}

// querier is a transaction, or a pool.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// effects returns the statement that records the server and the epoch for each item, whose trigger marks the items. It
// counts the effects of older epochs in a statement of its own, because in MySQL a subquery of the INSERT would lock the
// rows that it reads. Before the statement is as good as under its fence: the older epochs have ended before the server
// selects, and if it has lost the queue meanwhile, the statement has no effect.
func (d *dealer) effects(ctx context.Context, tx querier, b center.Batch, ids []int64) (query string, args []any, err error) {
	q, at := b.Queue, placeOf(d.c, b.Database)
	found, err := d.sweepOf(ctx, tx, b)
	if err != nil {
		return "", nil, err
	}
	var seen int64
	err = tx.QueryRowContext(ctx, bind(at, `SELECT COUNT(*) FROM history WHERE queue = ? AND epoch < ?`), q.ID, q.Epoch).
		Scan(&seen)
	if err != nil {
		return "", nil, err
	}
	for _, id := range ids {
		args = append(args, clock(time.Now()), b.Server, q.Epoch, q.ID, id, seen, b.Run, found)
	}
	rows := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?), ", len(ids)), ", ")
	return bind(at, `INSERT INTO history (at, server, epoch, queue, item, seen, run, sweep) VALUES `+rows), args, nil
}

// tables returns the statements that create the tables of the dealer. The columns are the same in all databases.
func tables(kind schema.Dialect) []string {
	identity := map[schema.Dialect]string{
		schema.Postgres: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		schema.MySQL:    "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
		schema.SQLite:   "INTEGER PRIMARY KEY AUTOINCREMENT",
	}[kind.Family()]
	list := []string{
		`CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY, made BIGINT NOT NULL, done INT NOT NULL DEFAULT 0,
			effects INT NOT NULL DEFAULT 0)`,
		`CREATE INDEX items_done ON items (done, id)`,
		`CREATE TABLE history (seq ` + identity + `, at VARCHAR(20) NOT NULL, server VARCHAR(150) NOT NULL,
			epoch BIGINT NOT NULL, queue VARCHAR(20) NOT NULL, item BIGINT NOT NULL, seen BIGINT NOT NULL,
			run VARCHAR(40) NOT NULL, sweep VARCHAR(40) NOT NULL)`,
		`CREATE INDEX history_epoch ON history (queue, epoch)`,
		`CREATE TABLE calls (seq ` + identity + `, run VARCHAR(40) NOT NULL, queue VARCHAR(20) NOT NULL,
			epoch BIGINT NOT NULL,
			sweep VARCHAR(40) NOT NULL, waiting BIGINT NOT NULL)`,
		`CREATE TABLE cures (id BIGINT NOT NULL PRIMARY KEY)`,
		`CREATE TABLE outages (id BIGINT NOT NULL PRIMARY KEY)`,
	}
	if kind == schema.TiDB { // it has no triggers
		return list
	}
	return append(list, marking[kind.Family()])
}

// marking marks the item of each new row of the history, in its statement.
var marking = map[schema.Dialect]string{
	schema.Postgres: `CREATE FUNCTION mark_item() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN ` + markItem + `; RETURN NULL; END $$;
		CREATE TRIGGER mark_item AFTER INSERT ON history FOR EACH ROW EXECUTE FUNCTION mark_item()`,
	schema.MySQL:  `CREATE TRIGGER mark_item AFTER INSERT ON history FOR EACH ROW ` + markItem,
	schema.SQLite: `CREATE TRIGGER mark_item AFTER INSERT ON history BEGIN ` + markItem + `; END`,
}

const markItem = `UPDATE items SET done = 1, effects = effects + 1 WHERE id = NEW.item`

// bind translates the placeholders of a statement for a database.
func bind(at place, query string) string {
	if at.Dialect() != schema.Postgres {
		return query
	}
	parts := strings.Split(query, "?")
	for i := range parts[:len(parts)-1] {
		parts[i] += "$" + strconv.Itoa(i+1)
	}
	return strings.Join(parts, "")
}
