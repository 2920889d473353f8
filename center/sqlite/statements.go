package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"maps"
	"net"

	"github.com/dutyrota/rota/internal/sqldb"
)

// preparedStatements limits how many statements a connection of the roster keeps prepared. A worker executes about 80
// again and again.
const preparedStatements = 150

// preparing returns a connector whose connections prepare the statements that they repeat: to parse and to plan one
// takes longer than most statements of a roster run.
func preparing(c driver.Connector) driver.Connector {
	return sqldb.Preparing{
		Connector:  keeping{c},
		MayPrepare: func(context.Context, sqldb.Conn, net.Conn) bool { return true },
		// SQLite prepares a statement anew by itself if the schema has changed.
		Unprepared:    func(error) bool { return false },
		MaxStatements: preparedStatements,
	}
}

// keeping is a connector for connections whose prepared statements can be kept.
type keeping struct{ driver.Connector }

// Connect implements driver.Connector.
func (k keeping) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{conn.(sqldb.Conn), map[*statement]struct{}{}}, nil
}

// connection ends its prepared statements with itself. SQLite would keep the file open until they have ended.
type connection struct {
	sqldb.Conn
	statements map[*statement]struct{}
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *connection) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	prepared, err := c.Conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s := &statement{Stmt: prepared.(sqldb.Stmt), conn: c, text: text}
	c.statements[s] = struct{}{}
	return s, nil
}

// Close implements driver.Conn.
func (c *connection) Close() error {
	var errs []error
	for s := range maps.Clone(c.statements) {
		errs = append(errs, s.end())
	}
	return errors.Join(append(errs, c.Conn.Close())...)
}

// statement is a prepared statement. SQLite executes it once at a time: while somebody reads its rows, its text is
// executed instead, and it ends after them.
type statement struct {
	sqldb.Stmt
	conn   *connection
	text   string
	read   bool // its rows are open
	closed bool
}

// QueryContext implements driver.StmtQueryContext.
func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.read {
		return s.conn.QueryContext(ctx, s.text, args)
	}
	r, err := s.Stmt.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.read = true
	return &rows{r, s}, nil
}

// ExecContext implements driver.StmtExecContext.
func (s *statement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.read {
		return s.conn.ExecContext(ctx, s.text, args)
	}
	return s.Stmt.ExecContext(ctx, args)
}

// Close implements driver.Stmt.
func (s *statement) Close() error {
	if s.closed = true; s.read {
		return nil
	}
	return s.end()
}

func (s *statement) end() error {
	delete(s.conn.statements, s)
	return s.Stmt.Close()
}

// rows are the rows of a prepared statement.
type rows struct {
	driver.Rows
	of *statement
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	err := r.Rows.Close()
	if r.of.read = false; r.of.closed {
		err = errors.Join(err, r.of.end())
	}
	return err
}
