package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/schema"
)

// store is the shop's tables.
type store struct {
	db      *sql.DB
	dialect schema.Dialect
}

// tables has the index by which a relay finds the events to send. It stays small, however many events were sent.
var tables = map[schema.Dialect][]string{
	schema.Postgres: {
		`CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY, state TEXT NOT NULL, version BIGINT NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS outbox (id BIGSERIAL PRIMARY KEY, aggregate_id BIGINT NOT NULL, payload TEXT NOT NULL,
			created_at TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP, sent_at TIMESTAMPTZ)`,
		`CREATE INDEX IF NOT EXISTS outbox_unsent ON outbox (id) WHERE sent_at IS NULL`,
	},
	schema.MySQL: {
		`CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY, state TEXT NOT NULL, version BIGINT NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS outbox (id BIGINT AUTO_INCREMENT PRIMARY KEY, aggregate_id BIGINT NOT NULL,
			payload TEXT NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, sent_at TIMESTAMP NULL,
			KEY outbox_unsent (sent_at, id))`,
	},
	schema.TiDB: {
		`CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY, state VARCHAR(20) NOT NULL, version BIGINT NOT NULL)`,
		// AUTO_ID_CACHE 1: the ids rise in the order in which they are drawn, in all sessions together.
		`CREATE TABLE IF NOT EXISTS outbox (id BIGINT AUTO_INCREMENT PRIMARY KEY, aggregate_id BIGINT NOT NULL,
			payload TEXT NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, sent_at TIMESTAMP NULL,
			KEY outbox_unsent (sent_at, id)) AUTO_ID_CACHE 1`,
	},
	schema.SQLite: {
		`CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL, version INTEGER NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, aggregate_id INTEGER NOT NULL,
			payload TEXT NOT NULL, created_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, sent_at TEXT)`,
		`CREATE INDEX IF NOT EXISTS outbox_unsent ON outbox (id) WHERE sent_at IS NULL`,
	},
}

// openStore creates the tables where they are missing, in the roster's database.
func openStore(ctx context.Context, c *center.Center) (store, error) {
	s := store{c.DB(), c.Dialect()}
	own, found := tables[s.dialect]
	if !found {
		own = tables[s.dialect.Family()]
	}
	for _, table := range own {
		if _, err := s.db.ExecContext(ctx, table); err != nil {
			return s, err
		}
	}
	return s, nil
}

// change is the payload of an event. The relay does not look into it.
type change struct {
	Order   int64
	Version int64 // 1, 2, 3 and so on for each order
	State   string
}

// setState changes the state of an order, and writes the event of it in the same transaction. The UPDATE comes first:
// it locks the row of the order until the commit, so that no other transaction of this order draws the id of its event
// before. So the events of an order are committed in the order of their ids, which the relay relies on.
func (s store) setState(ctx context.Context, order int64, state string) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	_, err = tx.ExecContext(ctx, s.bind(`UPDATE orders SET state = ?, version = version + 1 WHERE id = ?`), state, order)
	if err != nil {
		return err
	}
	c := change{Order: order, State: state}
	err = tx.QueryRowContext(ctx, s.bind(`SELECT version FROM orders WHERE id = ?`), order).Scan(&c.Version)
	if err != nil {
		return fmt.Errorf("order %d: %w", order, err)
	}
	payload, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, s.bind(`INSERT INTO outbox (aggregate_id, payload) VALUES (?, ?)`), order, string(payload))
	if err != nil {
		return err
	}
	return tx.Commit()
}

// addOrders inserts those of the orders 0 to n-1 that do not exist yet.
func (s store) addOrders(ctx context.Context, n int64) error {
	var have int64
	if err := s.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM orders`).Scan(&have); err != nil {
		return err
	}
	for id := have; id < n; id++ {
		_, err := s.db.ExecContext(ctx, s.bind(`INSERT INTO orders (id, state, version) VALUES (?, 'NEW', 0)`), id)
		if err != nil {
			return err
		}
	}
	return nil
}

// trade changes the states of the orders 0 to n-1 at random, until ctx ends.
func (s store) trade(ctx context.Context, n int64, pause time.Duration) error {
	states := []string{"PAID", "PACKED", "SHIPPED", "RETURNED"}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		err := s.setState(context.WithoutCancel(ctx), rand.Int64N(n), states[rand.IntN(len(states))])
		if err != nil {
			return err
		}
	}
}

// bind writes the placeholders of a statement as the database does.
func (s store) bind(query string) string {
	if s.dialect != schema.Postgres {
		return query
	}
	parts := strings.Split(query, "?")
	for i := range parts[1:] {
		parts[i] += "$" + strconv.Itoa(i+1)
	}
	return strings.Join(parts, "")
}

// marks returns n placeholders.
func marks(n int) string { return "?" + strings.Repeat(", ?", n-1) }
