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

// FenceByWriting makes a Center fence as on Galera, where share locks do not reach the other nodes (F3).
func (c *Center) FenceByWriting() { c.roster.WriteFence = true }

// Store returns the pool for the roster's own statements.
func (c *Center) Store() *sql.DB { return c.db.Store }

// RolledBack returns how many attempts of transactions the database has rolled back.
func (c *Center) RolledBack() int64 { return c.db.Counts().Errors[sqldb.RolledBack] }

// ExplainEvents returns SQLite's query plan for Events.List.
func (c *Center) ExplainEvents(ctx context.Context, f EventFilter) (plan string, err error) {
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

// WorkerPrivileges lists the rights that Diagnose tries, as GRANT has them.
func WorkerPrivileges() (list []string) {
	for _, n := range needs {
		list = append(list, strings.Join(strings.Fields(n.verbs), ", ")+" ON "+n.table)
	}
	return list
}

// HeartbeatPool returns the pool of one connection for heartbeats.
func (c *Center) HeartbeatPool() *sql.DB { return c.db.Heartbeat }

// AgePrepared ages the records of the statements on the connection for heartbeats.
func (c *Center) AgePrepared(t testing.TB, by time.Duration) {
	t.Helper()
	c.eachPrepared(t, func(s *sqldb.Statement) error {
		if !s.PreparedAt.IsZero() {
			s.PreparedAt = s.PreparedAt.Add(-by)
		}
		s.UsedAt = s.UsedAt.Add(-by)
		return nil
	})
}

// ClosePrepared closes the prepared statements of the connection for heartbeats in the server, without its knowledge.
func (c *Center) ClosePrepared(t testing.TB) {
	t.Helper()
	c.eachPrepared(t, func(s *sqldb.Statement) error {
		stmt := reflect.ValueOf(s.Prepared).Elem()
		clone := reflect.New(stmt.Type())
		clone.Elem().Set(stmt) // the driver refuses to execute a statement that it has closed itself
		return clone.Interface().(driver.Stmt).Close()
	})
}

// eachPrepared calls f for each statement on the connection for heartbeats.
func (c *Center) eachPrepared(t testing.TB, f func(*sqldb.Statement) error) {
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

// OwnPools returns how many pools of the program the Center remembers.
func (c *Center) OwnPools() int {
	c.ownPools.mu.Lock()
	defer c.ownPools.mu.Unlock()
	return len(c.ownPools.fit)
}
