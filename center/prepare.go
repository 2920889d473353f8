package center

import (
	"cmp"
	"context"
	"database/sql/driver"
	"net"
	"time"
)

// preparingConnector makes connections prepare what comes again: to parse and to plan is four fifths of what a heartbeat
// costs PostgreSQL, and a quarter of what it costs MariaDB, which plans each time. SQLite does both in our own process.
type preparingConnector struct {
	driver.Connector
	may        func(context.Context, driverConn, net.Conn) bool // whether a connection may; the last is what was dialed, nil if that is not known
	unprepared func(error) bool                                 // the server does not know the statement, or takes no more of them
	most       int                                              // statements of a connection
}

func (p preparingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	var dialed net.Conn
	conn, err := p.Connector.Connect(context.WithValue(ctx, dialedKey{}, &dialed))
	if err != nil {
		return nil, err
	}
	c, ok := conn.(driverConn)
	if !ok || !p.may(ctx, c, dialed) {
		return conn, nil
	}
	return &preparingConn{driverConn: c, unprepared: p.unprepared, most: p.most, statements: map[string]*statement{}}, nil
}

// dialedKey is of a context whose dialer shall tell, in a *net.Conn, what it has dialed.
type dialedKey struct{}

// telling reports that it shall.
func telling(ctx context.Context) bool { return ctx.Value(dialedKey{}) != nil }

// tell does so.
func tell(ctx context.Context, conn net.Conn) {
	if to, ok := ctx.Value(dialedKey{}).(*net.Conn); ok {
		*to = conn
	}
}

// driverConn is what database/sql looks for in a connection of the drivers.
type driverConn interface {
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

// preparingConn prepares each statement when it comes for the second time: most of those of a command come once.
type preparingConn struct {
	driverConn
	unprepared func(error) bool
	most       int
	statements map[string]*statement // by text
}

type statement struct {
	prepared driverStmt // nil: not yet, or refused
	at       time.Time  // when it was prepared, or refused; zero: it came once
	used     time.Time
}

// driverStmt is what we want of a prepared statement of the drivers.
type driverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// preparedFor bounds the age of a plan: one that was made while the tables were empty would stay until somebody
// analyzes them. What has not come again for as long makes room, and so does what came once.
const preparedFor = 5 * time.Minute

func (c *preparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.prepare(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.driverConn.QueryContext(ctx, query, args)
	}
	rows, err := s.QueryContext(ctx, args)
	return rows, c.refuse(query, err)
}

func (c *preparingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.prepare(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.driverConn.ExecContext(ctx, query, args)
	}
	result, err := s.ExecContext(ctx, args)
	return result, c.refuse(query, err)
}

// prepare returns nil for a statement that comes for the first time, or cannot be prepared, or is not worth it.
func (c *preparingConn) prepare(ctx context.Context, query string, args []driver.NamedValue) (driverStmt, error) {
	if len(args) == 0 {
		return nil, nil
	}
	now := time.Now()
	s := c.statements[query]
	if s == nil {
		return nil, c.note(query, now)
	}
	s.used = now
	if !s.at.IsZero() && now.Sub(s.at) < preparedFor {
		return s.prepared, nil
	}
	if err := s.close(); err != nil {
		return nil, err
	}
	s.at = now
	prepared, err := c.PrepareContext(ctx, query)
	switch {
	case err == nil:
		s.prepared = prepared.(driverStmt) // it is no COPY of lib/pq, which alone has not the methods
	case c.unprepared(err):
		err = nil
	default:
		delete(c.statements, query)
	}
	return s.prepared, err
}

// note remembers a statement that has come once, if there is room.
func (c *preparingConn) note(query string, now time.Time) error {
	if len(c.statements) >= c.most {
		for text, s := range c.statements {
			if !s.at.IsZero() && now.Sub(s.used) < preparedFor {
				continue
			}
			delete(c.statements, text)
			if err := s.close(); err != nil {
				return err
			}
		}
	}
	if len(c.statements) < c.most {
		c.statements[query] = &statement{used: now}
	}
	return nil
}

// close fails as a connection does that is gone: nothing was sent but that.
func (s *statement) close() error {
	if s.prepared == nil {
		return nil
	}
	err := s.prepared.Close()
	s.prepared = nil
	if err != nil {
		return driver.ErrBadConn
	}
	return nil
}

// refuse returns the error as it is, which is one after which is tried again if the server did not take the statement as
// prepared. Then the text goes for a while: what was the reason may last.
func (c *preparingConn) refuse(query string, err error) error {
	if err == nil || !c.unprepared(err) {
		return err
	}
	s := c.statements[query]
	s.at = time.Now()
	return cmp.Or(s.close(), err)
}
