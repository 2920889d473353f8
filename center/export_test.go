package center

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// FenceByWriting makes a Center fence as on Galera, where share locks do not reach the other nodes (F3).
func (c *Center) FenceByWriting() { c.db.Dialect = c.db.WithWriteFence() }

// Store returns the pool for the roster's own statements.
func (c *Center) Store() *sql.DB { return c.db.Store }

// RolledBack returns how many attempts of transactions the database has rolled back.
func (c *Center) RolledBack() int64 { return c.db.Counts().Errors[sqldb.RolledBack] }

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
		stmt := reflect.ValueOf(s.Prepared)
		if stmt.Kind() == reflect.Struct { // a wrapper, which embeds the statement of the driver
			stmt = stmt.FieldByName("Stmt").Elem()
		}
		stmt = stmt.Elem()
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

// OwnPools returns how many pools of the program the Center remembers.
func (c *Center) OwnPools() int {
	c.ownPools.mu.Lock()
	defer c.ownPools.mu.Unlock()
	return len(c.ownPools.fit)
}

// ForgetData undoes FenceIn.
func (c *Center) ForgetData(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.data[name]
	delete(c.data, name)
	return d.db.Close()
}

// FenceByWriting makes a data database fence as on Galera.
func (d *Data) FenceByWriting(t testing.TB) {
	t.Helper()
	if err := d.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.db.Dialect = d.db.WithWriteFence()
}
