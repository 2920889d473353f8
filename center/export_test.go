package center

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// FenceByWriting makes a Center fence as it does on Galera, where share locks do not reach the other
// nodes (F3).
func (c *Center) FenceByWriting() { c.roster.WriteFence = true }

// Store returns the roster's own pool.
func (c *Center) Store() *sql.DB { return c.db.Store }

// Transact asks for one string in a transaction that holds no lock row.
func (c *Center) Transact(ctx context.Context, query string) (got string, err error) {
	err = c.db.Transact(ctx, c.db.Store, func(ctx context.Context, t sqldb.Tx) error {
		return t.QueryRow(ctx, query).Scan(&got)
	})
	return got, err
}

// PlanOfEvents returns how SQLite answers Events.List.
func (c *Center) PlanOfEvents(ctx context.Context, f EventFilter) (plan string, err error) {
	query, args := c.Events().eventQuery(f, 100)
	err = c.db.Each(ctx, func(rows *sql.Rows) error {
		var id, parent, unused int
		var line string
		err := rows.Scan(&id, &parent, &unused, &line)
		plan += line + "\n"
		return err
	}, "EXPLAIN QUERY PLAN "+strings.Replace(query, "{columns}", "*", 1), args...)
	return plan, err
}

// Needs lists the rights that Diagnose tries, as GRANT has them.
func Needs() (list []string) {
	for _, n := range needs {
		list = append(list, strings.Join(strings.Fields(n.verbs), ", ")+" ON "+n.table)
	}
	return list
}

// Heart returns the pool of one connection for heartbeats.
func (c *Center) Heart() *sql.DB { return c.db.Heartbeat }

// AgePrepared makes older what the heart knows of its statements.
func (c *Center) AgePrepared(t testing.TB, by time.Duration) {
	t.Helper()
	c.prepared(t, func(s *sqldb.Statement) error {
		if !s.PreparedAt.IsZero() {
			s.PreparedAt = s.PreparedAt.Add(-by)
		}
		s.UsedAt = s.UsedAt.Add(-by)
		return nil
	})
}

// LosePrepared makes the server forget the statements that the heart has prepared.
func (c *Center) LosePrepared(t testing.TB) {
	t.Helper()
	c.prepared(t, func(s *sqldb.Statement) error {
		stmt := reflect.ValueOf(s.Prepared).Elem()
		again := reflect.New(stmt.Type())
		again.Elem().Set(stmt) // for one that is closed cannot be asked any more
		return again.Interface().(driver.Stmt).Close()
	})
}

func (c *Center) prepared(t testing.TB, f func(*sqldb.Statement) error) {
	t.Helper()
	conn, err := c.db.Heartbeat.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Raw(func(raw any) error {
		var errs []error
		for _, s := range raw.(*sqldb.PreparingConn).Statements {
			errs = append(errs, f(s))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Remembered returns how many events the follower remembers as returned.
func (f *EventFollower) Remembered() int { return len(f.returned) }
