package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// Leaving is a connector whose connections end when the server refuses a write because it is read-only: after a
// fail-over they lead to the old primary, and the next one to the new primary. A session of PostgreSQL also stays
// read-only after its database or role has taken writes again.
type Leaving struct {
	driver.Connector

	Classify func(error) Class // nil if there are no such servers
	// Ended reports whether the database has rolled the transaction of the connection back at an error, so that it would
	// commit each further statement of it by itself, without a fence (F1). The connection then fails what follows, and the
	// commit. Nil if the database does not do so.
	Ended func(Conn, error) bool
}

// Connect implements driver.Connector.
func (l Leaving) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if full, ok := conn.(Conn); ok {
		return &leavingConn{Conn: full, of: l}, nil
	}
	return conn, nil // of a wrapper of the program, which lacks a method
}

// leavingConn is a connection of Leaving.
type leavingConn struct {
	Conn
	of   Leaving
	left bool
	inTx bool
	lost error // of a transaction that the database has rolled back
}

// IsValid implements driver.Validator. The pool gives up a connection that has left in a transaction.
func (c *leavingConn) IsValid() bool { return !c.left && c.Conn.IsValid() }

// readOnlyError is the answer of a server that is read-only. database/sql tries a statement outside of a transaction
// again on other connections, because the error is a driver.ErrBadConn, too.
type readOnlyError struct{ error }

func (e readOnlyError) Error() string { return fmt.Sprintf("the database is read-only: %v", e.error) }

func (e readOnlyError) Unwrap() []error {
	return []error{e.error, ErrReadOnly, driver.ErrBadConn}
}

// rolledBack is the error of a transaction that the database has rolled back. It does not wrap its cause: that of an
// interrupt would say that the outcome of a commit is unknown.
type rolledBack struct{ cause error }

func (e rolledBack) Error() string {
	return fmt.Sprintf("the database has rolled the transaction back: %v", e.cause)
}

// leave closes the connection after an error of a server that is read-only, and notes that the transaction has ended.
func (c *leavingConn) leave(err error) error {
	if err != nil && c.inTx && c.of.Ended != nil && c.of.Ended(c.Conn, err) {
		c.lost = rolledBack{err}
	}
	if err == nil || c.of.Classify == nil || c.of.Classify(err) != ReadOnly {
		return err
	}
	c.left = true
	_ = c.Close() // the connection is given up, whatever it answers
	return readOnlyError{err}
}

// ExecContext implements driver.ExecerContext.
func (c *leavingConn) ExecContext(ctx context.Context, query string,
	args []driver.NamedValue,
) (driver.Result, error) {
	if c.lost != nil {
		return nil, c.lost
	}
	result, err := c.Conn.ExecContext(ctx, query, args)
	return result, c.leave(err)
}

// QueryContext implements driver.QueryerContext.
func (c *leavingConn) QueryContext(ctx context.Context, query string,
	args []driver.NamedValue,
) (driver.Rows, error) {
	if c.lost != nil {
		return nil, c.lost
	}
	rows, err := c.Conn.QueryContext(ctx, query, args)
	return c.read(rows), c.leave(err)
}

// read returns rows whose errors the connection notes: the server sends the columns before it waits for a lock.
func (c *leavingConn) read(rows driver.Rows) driver.Rows {
	if all, ok := rows.(driverRows); ok && c.inTx && c.of.Ended != nil {
		return leavingRows{all, c}
	}
	return rows
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *leavingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.Conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.leave(err)
	}
	if full, ok := stmt.(Stmt); ok {
		return leavingStmt{full, c}, nil
	}
	return stmt, nil
}

// BeginTx implements driver.ConnBeginTx.
func (c *leavingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, o)
	c.inTx = err == nil
	return leavingTx{tx, c}, c.leave(err)
}

// leavingStmt is a prepared statement of a leavingConn.
type leavingStmt struct {
	Stmt
	conn *leavingConn
}

// ExecContext implements driver.StmtExecContext.
func (s leavingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.conn.lost != nil {
		return nil, s.conn.lost
	}
	result, err := s.Stmt.ExecContext(ctx, args)
	return result, s.conn.leave(err)
}

// QueryContext implements driver.StmtQueryContext.
func (s leavingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.conn.lost != nil {
		return nil, s.conn.lost
	}
	rows, err := s.Stmt.QueryContext(ctx, args)
	return s.conn.read(rows), s.conn.leave(err)
}

// driverRows are the rows of the driver.
type driverRows interface {
	driver.RowsNextResultSet
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

// leavingRows are the rows of a statement in a transaction of a leavingConn.
type leavingRows struct {
	driverRows
	conn *leavingConn
}

// Next implements driver.Rows.
func (r leavingRows) Next(into []driver.Value) error { return r.conn.leave(r.driverRows.Next(into)) }

// leavingTx is a transaction of a leavingConn.
type leavingTx struct {
	driver.Tx
	conn *leavingConn
}

// Commit implements driver.Tx. The server may have become read-only since the transaction began.
func (t leavingTx) Commit() error {
	if lost := t.conn.lost; lost != nil {
		return errors.Join(lost, t.Rollback())
	}
	t.conn.inTx = false
	return t.conn.leave(t.Tx.Commit())
}

// Rollback implements driver.Tx.
func (t leavingTx) Rollback() error {
	t.conn.inTx, t.conn.lost = false, nil
	return t.Tx.Rollback()
}
