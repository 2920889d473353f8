package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/dutyrota/rota/internal/sqldb"
)

// ending is a connector whose connections end a transaction that SQLite has ended by itself. SQLite rolls the whole
// transaction back, and not only the statement, when a statement that writes is interrupted, and at some other errors,
// such as a full disk. It would commit each further statement by itself, without a fence (F1).
type ending struct{ driver.Connector }

// Connect implements driver.Connector.
func (e ending) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := e.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &endingConn{driverConn: conn.(driverConn)}, nil
}

// endingConn is a connection of ending. After the end of a transaction it fails what follows, and the commit.
type endingConn struct {
	driverConn
	inTx bool
	lost error // why SQLite has rolled the transaction back
}

// failed returns the error of a statement, and notes whether it has ended the transaction. There is none any more if
// another one can begin, which the Commit or Rollback of the caller then ends.
func (c *endingConn) failed(err error) error {
	if err == nil || !c.inTx {
		return err
	}
	if _, within := c.driverConn.ExecContext(context.Background(), "BEGIN", nil); within == nil {
		c.lost = rolledBack{err}
	}
	return err
}

// rolledBack is the error of a transaction that SQLite has rolled back. It does not wrap its cause: an interrupt would say
// that the outcome of the commit is unknown.
type rolledBack struct{ cause error }

func (e rolledBack) Error() string {
	return fmt.Sprintf("SQLite has rolled the transaction back: %v", e.cause)
}

// ExecContext implements driver.ExecerContext.
func (c *endingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.lost != nil {
		return nil, c.lost
	}
	result, err := c.driverConn.ExecContext(ctx, query, args)
	return result, c.failed(err)
}

// QueryContext implements driver.QueryerContext. A statement that writes has written all before its first row.
func (c *endingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.lost != nil {
		return nil, c.lost
	}
	rows, err := c.driverConn.QueryContext(ctx, query, args)
	return rows, c.failed(err)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *endingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	prepared, err := c.driverConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.failed(err)
	}
	return endingStmt{prepared.(sqldb.Stmt), c}, nil
}

// BeginTx implements driver.ConnBeginTx.
func (c *endingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.driverConn.BeginTx(ctx, o)
	c.inTx = err == nil
	return endingTx{tx, c}, err
}

// endingStmt is a prepared statement of an endingConn.
type endingStmt struct {
	sqldb.Stmt
	conn *endingConn
}

// ExecContext implements driver.StmtExecContext.
func (s endingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.conn.lost != nil {
		return nil, s.conn.lost
	}
	result, err := s.Stmt.ExecContext(ctx, args)
	return result, s.conn.failed(err)
}

// QueryContext implements driver.StmtQueryContext.
func (s endingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.conn.lost != nil {
		return nil, s.conn.lost
	}
	rows, err := s.Stmt.QueryContext(ctx, args)
	return rows, s.conn.failed(err)
}

// endingTx is a transaction of an endingConn.
type endingTx struct {
	driver.Tx
	conn *endingConn
}

// Commit implements driver.Tx.
func (t endingTx) Commit() error {
	if lost := t.conn.lost; lost != nil {
		_ = t.Rollback() // of nothing
		return lost
	}
	t.conn.inTx = false
	return t.Tx.Commit()
}

// Rollback implements driver.Tx.
func (t endingTx) Rollback() error {
	t.conn.inTx, t.conn.lost = false, nil
	return t.Tx.Rollback()
}
