package sqldealer

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// Dealer selects and executes rows. Use gives it a database. Several goroutines
// may use it.
type Dealer struct {
	task       string // its name, for errors
	db         *sql.DB
	syntax     syntax
	sel        *statement
	exec       *statement
	each       bool        // exec runs once per row, not once per batch
	modeRun    bool        // the mode in the file is RUN
	keyed      bool        // the first column is the key
	cursor     *cursorSpec // nil without {{cursor}}
	afterStart string      // the value of {{after}} at the start of the table
	columns    []string    // the columns that a Row keeps
	bindings   []int       // for each placeholder of exec, its index in columns, or -1
}

var (
	_ processor.TaskDealer[Row] = (*Dealer)(nil)
	_ processor.Keyed[Row]      = keyed{}
	_ processor.Cursored[Row]   = cursored{}
	_ processor.Paged[Row]      = paged{}
)

// New parses the statements of a task. It needs no database, so it finds an error
// before the worker connects or creates anything. The error names the key in the
// file and the rule.
func New(task config.Task, d schema.Dialect) (*Dealer, error) {
	dealer, err := build(task.SQL, syntaxes[d], task.Settings)
	if err != nil {
		return nil, fmt.Errorf("tasks.%s.dealer.sql%w", task.Name, err)
	}
	dealer.task = task.Name
	return dealer, nil
}

// Use sets the database. It must be the roster's own, as the fence works within
// one transaction. The caller calls it once, before all other methods. The result
// has the capabilities that follow from the statements: with a key it is Keyed, so
// rows fail one by one; with {{cursor}} it is Cursored, so rows are read in order
// and never twice; with {{after}} it is Paged, so failed rows hide no others.
func (d *Dealer) Use(db *sql.DB) processor.TaskDealer[Row] {
	d.db = db
	switch {
	case d.cursor != nil:
		return cursored{keyed{d}}
	case d.sel.uses(after):
		return paged{keyed{d}}
	case d.keyed:
		return keyed{d}
	}
	return d
}

// keyed is a Dealer whose rows have a key.
type keyed struct{ *Dealer }

// Key implements processor.Keyed.
func (keyed) Key(r Row) string { return r.key() }

// paged is a Dealer whose select can go on behind the key of a row.
type paged struct{ keyed }

// Position implements processor.Paged.
func (paged) Position(r Row) string { return r.key() }

// Select returns the rows of one queue.
func (d *Dealer) Select(ctx context.Context, s processor.Selection) ([]Row, error) {
	return d.query(ctx, &s, func(name string) any { return d.selectArg(name, &s) })
}

// query executes the select with the values that arg returns for its placeholders.
func (d *Dealer) query(ctx context.Context, s *processor.Selection, arg func(name string) any) ([]Row, error) {
	args := make([]any, len(d.sel.names))
	for i, name := range d.sel.names {
		args[i] = arg(name)
	}
	rows, err := d.db.QueryContext(ctx, d.sel.text(0), args...)
	if err != nil {
		return nil, fmt.Errorf("run select: %w", err)
	}
	defer rows.Close()
	list, err := d.read(rows, s)
	if err != nil {
		return nil, fmt.Errorf("run select: %w", err)
	}
	return list, nil
}

// isOrdered reports whether select compares a column with the value of an earlier row.
func (d *Dealer) isOrdered(at int) bool {
	return d.cursor != nil && slices.Contains(d.cursor.at, at) || at == 0 && d.sel.uses(after)
}

func (d *Dealer) selectArg(name string, s *processor.Selection) any {
	switch name {
	case after:
		return decode(cmp.Or(s.After, d.afterStart), d.syntax)
	case total:
		return s.Total
	case index:
		return s.Queue.Index
	case limit:
		return s.Limit
	case queueParameter:
		return s.Queue.Parameter
	}
	return commonArg(name, s)
}

func commonArg(name string, s *processor.Selection) any {
	switch name {
	case queue:
		return s.Queue.ID
	case parameter:
		return s.Parameter
	case ownSign:
		return s.OwnSign
	case runKey:
		if s.Run == nil {
			return nil // the file says RUN, the database says CONTINUOUS, and the database wins
		}
		return s.Run.Key
	}
	panic("sqldealer: no value for {{" + name + "}}") // parse refuses all other names
}

// Execute runs the statement for the rows in one fenced transaction.
func (d *Dealer) Execute(ctx context.Context, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	return center.InTx(ctx, d.db, func(tx *sql.Tx) error {
		if d.each {
			return d.executeEach(ctx, tx, rows)
		}
		_, err := tx.ExecContext(ctx, d.exec.text(len(rows)), d.keyArgs(ctx, rows)...)
		if err != nil {
			return fmt.Errorf("run execute: %w", err)
		}
		return nil
	})
}

func (d *Dealer) keyArgs(ctx context.Context, rows []Row) []any {
	args := make([]any, 0, len(d.exec.names)-1+len(rows))
	for _, name := range d.exec.names {
		if name != keys {
			args = append(args, executeArg(ctx, name, rows[0].from))
			continue
		}
		for _, r := range rows {
			args = append(args, r.values[0])
		}
	}
	return args
}

func (d *Dealer) executeEach(ctx context.Context, tx *sql.Tx, rows []Row) error {
	stmt, err := tx.PrepareContext(ctx, d.exec.text(0))
	if err != nil {
		return fmt.Errorf("prepare execute_each: %w", err)
	}
	defer stmt.Close() // before the commit: after it, PgBouncer gives the session to another client
	args := make([]any, len(d.exec.names))
	for _, r := range rows {
		for i, name := range d.exec.names {
			if column := d.bindings[i]; column >= 0 {
				args[i] = r.values[column]
			} else {
				args[i] = executeArg(ctx, name, r.from)
			}
		}
		if _, err := stmt.ExecContext(ctx, args...); err != nil {
			return fmt.Errorf("run execute_each: %w", err)
		}
	}
	return nil
}

func executeArg(ctx context.Context, name string, s *processor.Selection) any {
	if name == server {
		batch, _ := center.BatchFrom(ctx) // InTx refuses a context without a batch
		return batch.Server
	}
	return commonArg(name, s)
}
