package center

import (
	"context"
	"database/sql"
	"reflect"
)

// Tx is a transaction that can be fenced: a *sql.Tx, or a wrapper of one that has the methods Commit() error and
// Rollback() error as well, such as *sqlx.Tx and bun.Tx.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// ender has the methods of a transaction that pools and connections do not have. They are not a part of Tx, so that a
// pool is refused with the reason.
type ender interface {
	Commit() error
	Rollback() error
}

// begun returns the transaction on which the fence runs its statements, or ErrNoTx (F1). It is the *sql.Tx that a
// struct embeds: the methods of a wrapper may have placeholders of their own. Those of bun.Tx replace each ? by a value
// and know no $1.
func begun(tx Tx) (Tx, error) {
	if _, ok := tx.(ender); !ok {
		return nil, ErrNoTx
	}
	v := reflect.Indirect(reflect.ValueOf(tx))
	if v.Kind() != reflect.Struct {
		return tx, nil
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); !f.Anonymous || f.Type != reflect.TypeFor[*sql.Tx]() {
			continue
		}
		if raw := v.Field(i).Interface().(*sql.Tx); raw != nil {
			return raw, nil
		}
	}
	return tx, nil
}
