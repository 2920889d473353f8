package sqldealer

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/processor"
)

// action is a statement that changes selected rows, under the fence.
type action struct {
	*statement
	name     string // its key in the file
	bindings []int  // for each placeholder, the index of its column in the shape, or -1
}

// usesRow reports whether the statement has {{row.COLUMN}} for each of the columns.
func (a *action) usesRow(columns []string) bool {
	for _, c := range columns {
		if !a.usesColumn("row", c) {
			return false
		}
	}
	return true
}

// run executes the statement once, for all rows, under the fence. cause is the value of {{error}}.
func (a *action) run(ctx context.Context, in database, rows []Row, cause error) error {
	return sqldb.Wrap(in.ExecFenced(ctx, a.text(len(rows)), a.args(ctx, rows, cause)...), "run %s", a.name)
}

// runEach executes the statement for one row after another, in a fenced transaction.
func (a *action) runEach(ctx context.Context, tx *sql.Tx, rows []Row) error {
	stmt, err := tx.PrepareContext(ctx, a.text(0))
	if err != nil {
		return fmt.Errorf("prepare %s: %w", a.name, err)
	}
	defer stmt.Close() // before the commit: after it, PgBouncer gives the session to another client
	for i := range rows {
		if _, err := stmt.ExecContext(ctx, a.args(ctx, rows[i:i+1], nil)...); err != nil {
			return fmt.Errorf("run %s: %w", a.name, err)
		}
	}
	return nil
}

// args returns the values of the marks. {{row.COLUMN}} is a column of the first row.
func (a *action) args(ctx context.Context, rows []Row, cause error) []any {
	args := make([]any, 0, a.markCount(len(rows)))
	for i, name := range a.names {
		switch {
		case name == keys:
			for _, r := range rows {
				args = append(args, r.values[:a.keyWidth]...)
			}
		case name == lastError:
			args = append(args, sqldb.Clean(cause.Error()))
		case a.bindings[i] >= 0:
			args = append(args, rows[0].values[a.bindings[i]])
		default:
			args = append(args, executeArg(ctx, name, rows[0].from, a.syntax))
		}
	}
	return args
}

func executeArg(ctx context.Context, name string, s *processor.Selection, sy syntax) any {
	if name == server {
		batch, _ := center.BatchFrom(ctx) // InTx refuses a context without a batch
		return batch.Server
	}
	return commonArg(name, s, sy)
}
