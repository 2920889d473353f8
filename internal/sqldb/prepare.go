package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"time"
)

// Preparing is a connector whose connections prepare each statement that they execute repeatedly. Parsing and
// planning are four fifths of the cost of a heartbeat on PostgreSQL, and a quarter on MariaDB, which plans each time.
// SQLite does both in our own process, where they take more than half of the time of a worker.
type Preparing struct {
	driver.Connector

	// MayPrepare reports whether a connection may prepare statements. dialed is nil if it is unknown.
	MayPrepare func(ctx context.Context, c Conn, dialed net.Conn) bool
	// Unprepared reports whether the server does not know the statement, or has no room for another one.
	Unprepared func(error) bool
	// MaxStatements is the largest number of prepared statements per connection.
	MaxStatements int
	// OnlyRepeated prepares only what is executed with a context of Repeated, for connections that carry the statements of
	// users, too. Their plans depend on the values, as for a select that reads a part of a queue.
	OnlyRepeated bool
}

type repeatedKey struct{}

// Repeated returns a context for a statement that is executed again and again.
func Repeated(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatedKey{}, true)
}

// Connect implements driver.Connector.
func (p Preparing) Connect(ctx context.Context) (driver.Conn, error) {
	var dialed net.Conn
	conn, err := p.Connector.Connect(WithDialed(ctx, &dialed))
	if err != nil {
		return nil, err
	}
	c, ok := conn.(Conn)
	if !ok || !p.OnlyRepeated && !p.MayPrepare(ctx, c, dialed) {
		return conn, nil
	}
	preparing := &PreparingConn{
		Conn: c, unprepared: p.Unprepared, maxStatements: p.MaxStatements, Statements: map[string]*Statement{},
		usedAt: time.Now(),
	}
	if p.OnlyRepeated { // most connections are never asked
		preparing.mayRepeat = func(ctx context.Context) bool { return p.MayPrepare(ctx, c, dialed) }
	}
	return preparing, nil
}

// dialedKey marks a context whose dialer reports, in a *net.Conn, what it has dialed.
type dialedKey struct{}

// Connecting reports whether a dialer was called by Preparing.Connect.
func Connecting(ctx context.Context) bool { return ctx.Value(dialedKey{}) != nil }

// Dialed tells Preparing.Connect, if it is the caller, which connection a dialer has made.
func Dialed(ctx context.Context, conn net.Conn) {
	if to, ok := ctx.Value(dialedKey{}).(*net.Conn); ok {
		*to = conn
	}
}

// WithDialed returns a context whose dialer reports to the caller, as Connect needs it.
func WithDialed(ctx context.Context, to *net.Conn) context.Context {
	return context.WithValue(ctx, dialedKey{}, to)
}

// Prepares reports whether the connections of a pool prepare statements.
func Prepares(ctx context.Context, pool *sql.DB) (prepares bool, err error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	err = conn.Raw(func(raw any) error {
		_, prepares = raw.(*PreparingConn)
		return nil
	})
	return prepares, err
}

// Conn is what database/sql looks for in a connection of the drivers.
type Conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// PreparingConn prepares a statement at its second execution: a command executes most statements once.
type PreparingConn struct {
	Conn
	Statements map[string]*Statement // by text

	unprepared    func(error) bool
	maxStatements int
	mayRepeat     func(context.Context) bool // not nil: only statements of Repeated are prepared, if it returns true
	repeats       *bool                      // what it has returned
	usedAt        time.Time                  // when it was made, or last executed a statement outside of Begin and Commit
}

// longIdle is after how long a server that is going down, or limits idle sessions, may have closed a connection.
const longIdle = time.Second

// Answering returns a connection of a pool for a statement that must not be sent twice. If one was idle for long,
// Answering asks first whether the server still answers there: a statement that is sent to a server that has closed the
// connection looks like one whose reply was lost. It asks only in a pool of Preparing.
func Answering(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	for try := 0; ; try++ {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return nil, err
		}
		idle := false
		err = conn.Raw(func(raw any) error {
			c, ok := raw.(*PreparingConn)
			idle = ok && time.Since(c.usedAt) >= longIdle
			return nil
		})
		if idle {
			err = conn.PingContext(ctx)
		}
		if err == nil {
			return conn, nil
		}
		_ = conn.Close() // the connection is given up
		if !errors.Is(err, driver.ErrBadConn) || try > IdleDealerConns {
			return nil, err
		}
	}
}

// Statement is a statement that a connection has seen.
type Statement struct {
	Prepared   Stmt      // nil: not yet, or the server refused
	PreparedAt time.Time // when the server prepared or refused it; zero after one execution
	UsedAt     time.Time // when it was last executed
}

// Stmt is what we need of a prepared statement of the drivers.
type Stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// maxPlanAge bounds the age of a plan: a plan that was made while the tables were empty would otherwise stay until an
// ANALYZE. A statement that was not used for as long makes room for others, and so does a statement that was executed
// only once.
const maxPlanAge = 5 * time.Minute

// QueryContext implements driver.QueryerContext.
func (c *PreparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.usedAt = time.Now()
	s, err := c.prepare(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.Conn.QueryContext(ctx, query, args)
	}
	rows, err := s.QueryContext(ctx, args)
	return rows, c.refuse(query, err)
}

// ExecContext implements driver.ExecerContext.
func (c *PreparingConn) ExecContext(ctx context.Context, query string,
	args []driver.NamedValue,
) (driver.Result, error) {
	c.usedAt = time.Now()
	s, err := c.prepare(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.Conn.ExecContext(ctx, query, args)
	}
	result, err := s.ExecContext(ctx, args)
	return result, c.refuse(query, err)
}

// prepare returns the prepared statement. It returns nil at the first execution, for a statement without parameters,
// and for a statement that the server refused or that the connection is not to prepare.
func (c *PreparingConn) prepare(ctx context.Context, query string, args []driver.NamedValue) (Stmt, error) {
	if len(args) == 0 || c.mayRepeat != nil && !c.prepares(ctx) {
		return nil, nil
	}
	now := time.Now()
	s := c.Statements[query]
	if s == nil {
		return nil, c.note(query, now)
	}
	s.UsedAt = now
	if !s.PreparedAt.IsZero() && now.Sub(s.PreparedAt) < maxPlanAge {
		return s.Prepared, nil
	}
	if err := s.close(); err != nil {
		return nil, err
	}
	s.PreparedAt = now
	prepared, err := c.PrepareContext(ctx, query)
	switch {
	case err == nil:
		s.Prepared = prepared.(Stmt) // only a COPY of lib/pq lacks the methods, and we have none
	case c.unprepared(err):
		err = nil
	default:
		delete(c.Statements, query)
	}
	return s.Prepared, err
}

// prepares reports whether the connection prepares the statement of a context, of Repeated only.
func (c *PreparingConn) prepares(ctx context.Context) bool {
	if ctx.Value(repeatedKey{}) == nil {
		return false
	}
	if c.repeats == nil {
		c.repeats = new(c.mayRepeat(ctx))
	}
	return *c.repeats
}

// note records the first execution of a statement, if there is room.
func (c *PreparingConn) note(query string, now time.Time) error {
	if len(c.Statements) >= c.maxStatements {
		for text, s := range c.Statements {
			if !s.PreparedAt.IsZero() && now.Sub(s.UsedAt) < maxPlanAge {
				continue
			}
			delete(c.Statements, text)
			if err := s.close(); err != nil {
				return err
			}
		}
	}
	if len(c.Statements) < c.maxStatements {
		c.Statements[query] = &Statement{UsedAt: now}
	}
	return nil
}

// close closes the prepared statement. Its error is that of a lost connection, so that database/sql tries the caller's
// statement on another connection.
func (s *Statement) close() error {
	if s.Prepared == nil {
		return nil
	}
	err := s.Prepared.Close()
	s.Prepared = nil
	if err != nil {
		return driver.ErrBadConn
	}
	return nil
}

// refuse returns the error unchanged. If the server did not accept the prepared statement, the error can be retried,
// and the connection sends the text of the statement for a while: the reason may last.
func (c *PreparingConn) refuse(query string, err error) error {
	if err == nil || !c.unprepared(err) {
		return err
	}
	s := c.Statements[query]
	s.PreparedAt = time.Now()
	return cmp.Or(s.close(), err)
}
