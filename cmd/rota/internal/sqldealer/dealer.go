package sqldealer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/cmd/rota/internal/program"
	"github.com/dutyrota/rota/processor"
)

// Dealer selects and executes rows of one database, and hands the queues of other databases on to their dealers. Use
// gives it the databases. Several goroutines may use it.
type Dealer struct {
	task      string           // its name, for errors
	name      string           // of the data database; empty for the roster's database
	database  database         // whose rows these are
	places    map[string]place // the dealers of all databases by name; nil if there is only this one
	syntax    syntax
	sel       *statement
	exec      *action                 // execute, or execute_each; nil if a program does it all
	external  bool                    // a program executes the rows
	program   program.Program         // nil until Call
	discard   *action                 // nil without discard
	backlog   *statement              // nil without backlog
	settings  center.Settings         // of the file: which queues are in which database
	undivided *statement              // backlog of all queues, with total 1 and index 0; nil if nothing is to be compared
	noPeek    atomic.Pointer[refusal] // why the database refuses the statement of Peek; nil if it does not
	cursor    *cursorSpec             // nil without {{cursor}}
	shape     shape
	runUses   []string // the placeholders of a run in all statements
}

// Select returns the rows of one queue.
func (d *Dealer) Select(ctx context.Context, s processor.Selection) ([]Row, error) {
	d, err := d.at(s.Queue.Database)
	if err == nil {
		err = d.sel.checkNumbered(s.Queue)
	}
	if err == nil {
		err = d.checkRun(s.Run)
	}
	if err != nil {
		return nil, err
	}
	if d.cursor != nil {
		return d.selectBehind(ctx, s)
	}
	return d.query(ctx, args{Selection: &s, shape: &d.shape})
}

// query executes the select.
func (d *Dealer) query(ctx context.Context, a args) ([]Row, error) {
	keys, sel := d.shape.heldValues(a.Held), *d.sel
	sel.heldFolds = d.shape.orderFolds.Load()
	rows, err := d.database.DB().QueryContext(ctx, sel.text(len(keys)), sel.values(a.value)...)
	var list []Row
	if err == nil {
		defer rows.Close()
		list, err = d.shape.read(rows, a.Selection)
	}
	if err != nil {
		return nil, fmt.Errorf("run select%s: %w", in(d.name), err)
	}
	return list, nil
}

// args are what a select says about the rows that it wants.
type args struct {
	*processor.Selection
	shape    *shape
	cursor   *cursorSpec
	position []string // the texts of the cursor
	bound    any      // the horizon
}

// value returns the value of a placeholder.
func (a args) value(name string) any {
	switch name {
	case total:
		return a.Total
	case index:
		return a.Queue.Index
	case limit:
		return a.Limit
	case queueParameter:
		return a.Queue.Parameter
	case held:
		return a.shape.heldValues(a.Held)
	case horizonName:
		return a.bound
	}
	if a.cursor != nil {
		if at, ok := columnOf(name, cursor, a.cursor.names); ok {
			return decode(a.position[at], a.shape.syntax)
		}
	}
	if at, ok := columnOf(name, after, a.shape.columns[:a.shape.key]); ok {
		return a.shape.afterValue(at, a.After)
	}
	return commonArg(name, a.Selection, a.shape.syntax)
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

func commonArg(name string, s *processor.Selection, sy syntax) any {
	switch name {
	case queue:
		return s.Queue.ID
	case parameter:
		return s.Parameter
	case ownSign:
		return s.OwnSign
	}
	return runArg(name, s.Run, sy)
}

// Execute runs the statement for the rows under one fence. If there is a program, it gets the rows first, and
// the statement is for those that it has done.
func (d *Dealer) Execute(ctx context.Context, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	d, err := d.at(rows[0].from.Queue.Database)
	if err != nil {
		return err
	}
	if err := d.shape.checkKeys(rows); err != nil {
		return err
	}
	if d.external {
		return d.callProgram(ctx, rows)
	}
	return d.execute(ctx, rows)
}

func (d *Dealer) execute(ctx context.Context, rows []Row) error {
	if d.exec.uses(keys) {
		return d.exec.run(ctx, d.database, rows, nil)
	}
	return d.database.InTx(ctx, func(tx *sql.Tx) error { return d.exec.runEach(ctx, tx, rows) })
}

// Holder is the oldest transaction of PostgreSQL that has written and not ended. No
// row that was written after it began is below {{horizon}}.
type Holder struct {
	PID         int           // of its session; 0 if the transaction is prepared
	Application string        // the session's name for itself
	State       string        // of the session, such as "idle in transaction"
	Prepared    string        // the name of a prepared transaction
	Age         time.Duration // since it began or was prepared
	Hidden      bool          // this role may not see Application, State and Age
}

// pg_locks shows transactions to each role, pg_stat_activity shows their age only to some.
const selectHolder = `
SELECT COALESCE(l.pid, 0), COALESCE(a.application_name, ''), COALESCE(a.state, ''), COALESCE(p.gid, ''),
       CAST(EXTRACT(epoch FROM clock_timestamp() - COALESCE(p.prepared, a.xact_start)) AS double precision)
  FROM pg_locks l
  LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  LEFT JOIN pg_prepared_xacts p ON p.transaction = l.transactionid
 WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
   AND l.transactionid = CAST(pg_snapshot_xmin(pg_current_snapshot()) AS xid)`

// FindHolder returns the transaction that holds {{horizon}} of the select back, or nil
// if there is none or the select has no such horizon.
func (d *Dealer) FindHolder(ctx context.Context) (*Holder, error) {
	if _, ok := d.cursor.bounds().(xidHorizon); !ok {
		return nil, nil
	}
	var h Holder
	var seconds sql.NullFloat64
	err := d.database.DB().QueryRowContext(ctx, selectHolder).Scan(&h.PID, &h.Application, &h.State, &h.Prepared, &seconds)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("find the oldest transaction that writes: %w", err)
	}
	h.Age, h.Hidden = time.Duration(seconds.Float64*float64(time.Second)), !seconds.Valid
	return &h, nil
}

// Capabilities implements processor.Capable. They follow from the statements: with a key rows fail one by one, with
// {{cursor}} they are read in order and never twice, and with {{after}} failed rows hide no others.
func (d *Dealer) Capabilities() processor.Capabilities {
	return processor.Capabilities{
		Keyed: d.shape.key > 0, Cursored: d.cursor != nil, Paged: d.sel.usesColumns(after), Ordered: d.shape.order >= 0,
		Discarder: d.discard != nil, Slotless: d.slotless(),
	}
}

// Key implements processor.Keyed.
func (d *Dealer) Key(r Row) string { return d.shape.keyOf(r) }

// Position implements processor.Paged.
func (d *Dealer) Position(r Row) string { return d.shape.keyOf(r) }

// Discard implements processor.Discarder: it runs the statement for the row under the fence.
func (d *Dealer) Discard(ctx context.Context, r Row, cause error) error {
	d, err := d.at(r.from.Queue.Database)
	if err != nil {
		return err
	}
	return d.discard.run(ctx, d.database, []Row{r}, cause)
}

var (
	_ processor.TaskDealer[Row] = (*Dealer)(nil)
	_ processor.Capable         = (*Dealer)(nil)
	_ processor.Keyed[Row]      = (*Dealer)(nil)
	_ processor.Cursored[Row]   = (*Dealer)(nil)
	_ processor.Paged[Row]      = (*Dealer)(nil)
	_ processor.Ordered[Row]    = (*Dealer)(nil)
	_ processor.Atomic          = (*Dealer)(nil)
	_ processor.Discarder[Row]  = (*Dealer)(nil)
	_ processor.Backlogger      = (*Dealer)(nil)
	_ processor.StrayCounter    = (*Dealer)(nil)
	_ processor.Peeker          = (*Dealer)(nil)
)
