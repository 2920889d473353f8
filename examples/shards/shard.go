package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/schema"
)

// payments is the dealer. It pays the invoices of a queue in the shard of the queue.
type payments struct{ c *center.Center }

// Select returns invoices of a queue that are not paid. The fence of the shard was raised before: no earlier owner of
// the queue can pay one of them any more.
func (p payments) Select(ctx context.Context, s processor.Selection) ([]int64, error) {
	data := p.c.Data(s.Queue.Database)
	return center.Column[int64](ctx, data.DB(),
		bind(data, `SELECT id FROM invoice WHERE paid_by IS NULL AND queue = ? ORDER BY id LIMIT ?`), s.Queue.Index, s.Limit)
}

// Execute pays invoices in one fenced transaction of the shard. Nothing keeps a second entry of an invoice out of the
// ledger but the fence.
func (payments) Execute(ctx context.Context, ids []int64) error {
	data := center.DataOf(ctx)
	b, _ := center.BatchFrom(ctx)
	return data.InTx(ctx, func(tx *sql.Tx) error {
		for _, id := range ids {
			_, err := tx.ExecContext(ctx, bind(data, `INSERT INTO ledger (invoice, server, epoch) VALUES (?, ?, ?)`),
				id, b.Server, b.Queue.Epoch)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, bind(data, `UPDATE invoice SET paid_by = ? WHERE id = ?`), b.Server, id)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// bind writes the placeholders of a statement as the database of a shard does.
func bind(data *center.Data, query string) string {
	if data.Dialect() != schema.Postgres {
		return query
	}
	parts := strings.Split(query, "?")
	for i := range parts[1:] {
		parts[i] += "$" + strconv.Itoa(i+1)
	}
	return strings.Join(parts, "")
}

// createTables creates the tables of all shards.
func createTables(ctx context.Context, c *center.Center) error {
	for _, data := range c.AllData() {
		for _, table := range []string{
			`CREATE TABLE invoice (id BIGINT NOT NULL PRIMARY KEY, queue INT NOT NULL, paid_by VARCHAR(150))`,
			`CREATE TABLE ledger (invoice BIGINT NOT NULL, server VARCHAR(150) NOT NULL, epoch BIGINT NOT NULL)`,
		} {
			if _, err := data.DB().ExecContext(ctx, table); err != nil {
				return fmt.Errorf("create the tables of %s: %w", data.Name(), err)
			}
		}
	}
	return nil
}

// addInvoices inserts invoices into the shard of their queues.
func addInvoices(ctx context.Context, data *center.Data, ids []int) error {
	tx, err := data.DB().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	for _, id := range ids {
		_, err := tx.ExecContext(ctx, bind(data, `INSERT INTO invoice (id, queue) VALUES (?, ?)`), id, id%queues)
		if err != nil {
			return fmt.Errorf("add invoice %d to %s: %w", id, data.Name(), err)
		}
	}
	return tx.Commit()
}

// account is what the tables of a shard say at the end.
type account struct {
	Invoices, Entries, Twice, Lost int // Lost is invoices without an entry
	Servers                        int // that have paid here
}

const accountOf = `SELECT (SELECT COUNT(*) FROM invoice), (SELECT COUNT(*) FROM ledger),
	(SELECT COUNT(*) FROM (SELECT invoice FROM ledger GROUP BY invoice HAVING COUNT(*) > 1) t),
	(SELECT COUNT(*) FROM invoice WHERE id NOT IN (SELECT invoice FROM ledger)),
	(SELECT COUNT(DISTINCT server) FROM ledger)`

// audit reads the ledgers, and returns a table of them. It returns an error if an invoice was paid twice or not at all.
func audit(ctx context.Context, c *center.Center) (report string, err error) {
	var text strings.Builder
	line := "%-8s %-9s %8v %8v %6v %5v %8v\n"
	fmt.Fprintf(&text, line, "shard", "kind", "invoices", "entries", "twice", "lost", "servers")
	var sum account
	for _, data := range c.AllData() {
		var a account
		err := data.DB().QueryRowContext(ctx, accountOf).Scan(&a.Invoices, &a.Entries, &a.Twice, &a.Lost, &a.Servers)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, line, data.Name(), data.Dialect(), a.Invoices, a.Entries, a.Twice, a.Lost, a.Servers)
		sum.Invoices, sum.Entries = sum.Invoices+a.Invoices, sum.Entries+a.Entries
		sum.Twice, sum.Lost = sum.Twice+a.Twice, sum.Lost+a.Lost
	}
	fmt.Fprintf(&text, line, "all", "", sum.Invoices, sum.Entries, sum.Twice, sum.Lost, "")
	if sum.Twice > 0 || sum.Lost > 0 {
		err = errors.New("invoices were paid twice, or not at all")
	}
	return text.String(), err
}
