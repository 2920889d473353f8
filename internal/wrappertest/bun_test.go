package wrappertest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

func overBun(c *center.Center) *bun.DB {
	switch c.Dialect().Family() {
	case schema.Postgres:
		return bun.NewDB(c.DB(), pgdialect.New())
	case schema.MySQL:
		return bun.NewDB(c.DB(), mysqldialect.New())
	default:
		return bun.NewDB(c.DB(), sqlitedialect.New())
	}
}

// F1: transactions of bun are fenced. bun's own ExecContext knows no $1, and drops the parameters of such a statement.
func TestBun(t *testing.T) {
	checkFence(t, func(ctx context.Context, c *center.Center) (transaction, error) {
		tx, err := overBun(c).BeginTx(ctx, nil)
		if err != nil {
			return transaction{}, err
		}
		write := func(ctx context.Context) error {
			_, err := tx.NewUpdate().Table("schedule_task_type").Set("task_parameter = ?", "written").Where("1 = 1").Exec(ctx)
			return err
		}
		return transaction{tx, write, tx.Commit, tx.Rollback}, nil
	})
}

// F1: InTx takes the pool that bun wraps, and bun's queries take the transaction of InTx.
func TestBunInTx(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		c := openRoster(t, url)
		db := overBun(c)
		ctx := c.Bind(t.Context(), center.Batch{Server: "A", TaskType: "settle", Queue: center.QueueEpoch{ID: "0", Epoch: 7}})
		err := center.InTx(ctx, db.DB, func(tx *sql.Tx) error {
			_, err := db.NewUpdate().Conn(tx).Table("schedule_task_type").Set("task_parameter = ?", "written").Where("1 = 1").Exec(ctx)
			return err
		})
		if err != nil {
			t.Error(err)
		}
		wantWritten(t, c)
	})
}

// F1: each statement of a pool is a transaction of its own, and so is that of a connection.
func TestBunWithoutTransaction(t *testing.T) {
	checkRefused(t, func(c *center.Center) []center.Tx {
		db := overBun(c)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return []center.Tx{db, db.DB, conn, conn.Conn}
	})
}
