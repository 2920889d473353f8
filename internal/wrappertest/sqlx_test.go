package wrappertest

import (
	"context"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/dutyrota/rota/center"
)

func overSqlx(c *center.Center) *sqlx.DB { return sqlx.NewDb(c.DB(), string(c.Dialect())) }

// F1: transactions of sqlx are fenced.
func TestSqlx(t *testing.T) {
	checkFence(t, func(ctx context.Context, c *center.Center) (transaction, error) {
		tx, err := overSqlx(c).BeginTxx(ctx, nil)
		if err != nil {
			return transaction{}, err
		}
		write := func(ctx context.Context) error {
			_, err := tx.NamedExecContext(ctx, `UPDATE schedule_task_type SET task_parameter = :value`, map[string]any{"value": "written"})
			return err
		}
		return transaction{tx, write, tx.Commit, tx.Rollback}, nil
	})
}

// F1: each statement of a pool is a transaction of its own, and so is that of a connection.
func TestSqlxWithoutTransaction(t *testing.T) {
	checkRefused(t, func(c *center.Center) []center.Tx {
		db := overSqlx(c)
		conn, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return []center.Tx{db, db.DB, conn, conn.Conn}
	})
}
