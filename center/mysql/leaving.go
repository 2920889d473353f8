package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// leaving is a connector whose connections end when the server refuses a write because it is read-only: after a
// fail-over they lead to the old primary, and the next one to the new primary. The driver can do that by itself
// (rejectReadOnly), but then says "driver: bad connection" instead of the reason.
type leaving struct{ sqldriver.Connector }

// Connect implements driver.Connector.
func (l leaving) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if full, ok := conn.(sqldb.Conn); ok {
		return &leavingConn{Conn: full}, nil
	}
	return conn, nil // of a wrapper of the program, which lacks a method
}

// leavingConn is a connection of leaving. It also ends a transaction that the server has ended by itself: the server
// would commit each further statement by itself, without a fence (F1).
type leavingConn struct {
	sqldb.Conn
	inTx bool
	lost error // why the server has rolled the transaction back
}

// readOnlyError is the answer of a server that is read-only. database/sql tries a statement outside of a transaction
// again on other connections, because the error is a driver.ErrBadConn, too.
type readOnlyError struct{ error }

func (e readOnlyError) Error() string { return fmt.Sprintf("the database is read-only: %v", e.error) }

func (e readOnlyError) Unwrap() []error {
	return []error{e.error, sqldb.ErrReadOnly, sqldriver.ErrBadConn}
}

// leave closes the connection after an error of a server that is read-only, and notes that the transaction has ended.
func (c *leavingConn) leave(err error) error {
	if c.inTx && (numbered(err, deadlock, recordChanged) || numbered(err, lockTimeout) && c.endsAtTimeout()) {
		c.lost = fmt.Errorf("the server has rolled the transaction back: %w", err)
	}
	if err == nil || classify(err) != sqldb.ReadOnly {
		return err
	}
	_ = c.Close() // the connection is given up, whatever it answers
	return readOnlyError{err}
}

// endsAtTimeout asks whether the server rolls the transaction back when a lock wait takes too long. Without an answer
// it may have done so.
func (c *leavingConn) endsAtTimeout() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	rows, err := c.Conn.QueryContext(ctx, `SELECT 1 FROM DUAL WHERE @@innodb_rollback_on_timeout = 0`, nil)
	if err != nil {
		return true
	}
	defer rows.Close()
	return rows.Next(make([]sqldriver.Value, 1)) != nil
}

// ExecContext implements driver.ExecerContext.
func (c *leavingConn) ExecContext(ctx context.Context, query string,
	args []sqldriver.NamedValue,
) (sqldriver.Result, error) {
	if c.lost != nil {
		return nil, c.lost
	}
	result, err := c.Conn.ExecContext(ctx, query, args)
	return result, c.leave(err)
}

// QueryContext implements driver.QueryerContext.
func (c *leavingConn) QueryContext(ctx context.Context, query string,
	args []sqldriver.NamedValue,
) (sqldriver.Rows, error) {
	if c.lost != nil {
		return nil, c.lost
	}
	rows, err := c.Conn.QueryContext(ctx, query, args)
	return c.read(rows), c.leave(err)
}

// read returns rows whose errors the connection notes: the server sends the columns before it waits for a lock.
func (c *leavingConn) read(rows sqldriver.Rows) sqldriver.Rows {
	if all, ok := rows.(driverRows); ok && c.inTx {
		return leavingRows{all, c}
	}
	return rows
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *leavingConn) PrepareContext(ctx context.Context, query string) (sqldriver.Stmt, error) {
	stmt, err := c.Conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.leave(err)
	}
	if full, ok := stmt.(sqldb.Stmt); ok {
		return leavingStmt{full, c}, nil
	}
	return stmt, nil
}

// BeginTx implements driver.ConnBeginTx.
func (c *leavingConn) BeginTx(ctx context.Context, o sqldriver.TxOptions) (sqldriver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, o)
	c.inTx = err == nil
	return leavingTx{tx, c}, c.leave(err)
}

// leavingStmt is a prepared statement of a leavingConn.
type leavingStmt struct {
	sqldb.Stmt
	conn *leavingConn
}

// ExecContext implements driver.StmtExecContext.
func (s leavingStmt) ExecContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	if s.conn.lost != nil {
		return nil, s.conn.lost
	}
	result, err := s.Stmt.ExecContext(ctx, args)
	return result, s.conn.leave(err)
}

// QueryContext implements driver.StmtQueryContext.
func (s leavingStmt) QueryContext(ctx context.Context, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	if s.conn.lost != nil {
		return nil, s.conn.lost
	}
	rows, err := s.Stmt.QueryContext(ctx, args)
	return s.conn.read(rows), s.conn.leave(err)
}

// driverRows are the rows of the driver.
type driverRows interface {
	sqldriver.RowsNextResultSet
	sqldriver.RowsColumnTypeDatabaseTypeName
	sqldriver.RowsColumnTypeNullable
	sqldriver.RowsColumnTypePrecisionScale
	sqldriver.RowsColumnTypeScanType
}

// leavingRows are the rows of a statement in a transaction of a leavingConn.
type leavingRows struct {
	driverRows
	conn *leavingConn
}

// Next implements driver.Rows.
func (r leavingRows) Next(into []sqldriver.Value) error { return r.conn.leave(r.driverRows.Next(into)) }

// leavingTx is a transaction of a leavingConn.
type leavingTx struct {
	sqldriver.Tx
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
