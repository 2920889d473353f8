package sqldealer

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

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
	exec       *action     // execute, or execute_each
	discard    *action     // nil without discard
	backlog    *statement  // nil without backlog
	cursor     *cursorSpec // nil without {{cursor}}
	afterStart []string    // the values of {{after}} at the start of the table
	shape      shape
}

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

// Use sets the database. It must be that of the roster, because the fence is part
// of the transaction. The caller calls it once, before all other methods. The result
// has the capabilities that follow from the statements (capabilities.go).
func (d *Dealer) Use(db *sql.DB) processor.TaskDealer[Row] {
	d.db = db
	return d.withCapabilities()
}

// Select returns the rows of one queue.
func (d *Dealer) Select(ctx context.Context, s processor.Selection) ([]Row, error) {
	return d.query(ctx, &s, func(name string) any { return d.selectArg(name, &s) })
}

// query executes the select with the values that arg returns for its placeholders.
func (d *Dealer) query(ctx context.Context, s *processor.Selection, arg func(name string) any) ([]Row, error) {
	rows, err := d.db.QueryContext(ctx, d.sel.text(0), d.selectArgs(arg)...)
	if err != nil {
		return nil, fmt.Errorf("run select: %w", err)
	}
	defer rows.Close()
	list, err := d.shape.read(rows, s)
	if err != nil {
		return nil, fmt.Errorf("run select: %w", err)
	}
	return list, nil
}

func (d *Dealer) selectArgs(arg func(name string) any) []any {
	args := make([]any, len(d.sel.names))
	for i, name := range d.sel.names {
		args[i] = arg(name)
	}
	return args
}

func (d *Dealer) selectArg(name string, s *processor.Selection) any {
	switch name {
	case total:
		return s.Total
	case index:
		return s.Queue.Index
	case limit:
		return s.Limit
	case queueParameter:
		return s.Queue.Parameter
	}
	if at, ok := columnOf(name, after, d.shape.columns[:d.shape.key]); ok {
		return d.afterArg(at, s.After)
	}
	return commonArg(name, s)
}

// afterArg returns the value of a column of the key at a position. The empty position is the start.
func (d *Dealer) afterArg(at int, position string) any {
	text := d.afterStart[at]
	if position != "" {
		text = splitKey(position, d.shape.key)[at]
	}
	return decode(text, d.syntax)
}

// columnOf returns the index of the column that {{placeholder.COLUMN}} names, 0 for {{placeholder}} alone, and false
// for another name.
func columnOf(name, placeholder string, columns []string) (at int, ok bool) {
	if name == placeholder {
		return 0, true
	}
	column, ok := strings.CutPrefix(name, placeholder+".")
	return indexFold(columns, column), ok
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
		if d.exec.uses(keys) {
			return d.exec.run(ctx, tx, rows, nil)
		}
		return d.exec.runEach(ctx, tx, rows)
	})
}
