package center

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	"github.com/lib/pq"
)

// preparingConnector makes connections of lib/pq prepare what comes again: to parse and to plan is four fifths of what a
// heartbeat costs PostgreSQL. Only if nothing stands between: behind PgBouncer in transaction mode the next
// statement may meet another server's session, and lib/pq's names are the same on all connections, so that another
// statement's rows would come back. The other databases plan each time anyway, and parse quickly.
type preparingConnector struct {
	driver.Connector
	direct func(context.Context, driver.QueryerContext, net.Conn) bool // direct, but in tests
}

func (p preparingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	var dialed net.Conn
	conn, err := p.Connector.Connect(context.WithValue(ctx, dialedKey{}, &dialed))
	if err != nil {
		return nil, err
	}
	c, ok := conn.(pqConn)
	if !ok || dialed == nil || !p.direct(ctx, c, dialed) {
		return conn, nil
	}
	return &preparingConn{pqConn: c, statements: map[string]*statement{}}, nil
}

// dialedKey is of a context whose dialer shall tell, in a *net.Conn, what it has dialed.
type dialedKey struct{}

// tell does so.
func tell(ctx context.Context, conn net.Conn) {
	if to, ok := ctx.Value(dialedKey{}).(*net.Conn); ok {
		*to = conn
	}
}

// pqConn is what database/sql looks for in a connection of lib/pq.
type pqConn interface {
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

// direct reports that the server sees the same two ends of the connection as we do. A pooler's own
// connection has other ends: no two connections have both in common. Of a Unix socket nobody can tell, nor where
// addresses are translated; there it is false, and so it is if the question fails, for the next statement
// tells of that.
func direct(ctx context.Context, c driver.QueryerContext, dialed net.Conn) bool {
	rows, err := c.QueryContext(ctx, `SELECT host(inet_client_addr()) || ' ' || inet_client_port() || ' ' || host(inet_server_addr()) || ' ' || inet_server_port()`, nil)
	if err != nil {
		return false
	}
	row := make([]driver.Value, 1)
	if err := errors.Join(rows.Next(row), rows.Close()); err != nil {
		return false
	}
	return row[0] != nil && fmt.Sprintf("%s", row[0]) == end(dialed.LocalAddr())+" "+end(dialed.RemoteAddr())
}

// end is one of a connection, as PostgreSQL writes it.
func end(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return ""
	}
	return fmt.Sprint(tcp.AddrPort().Addr().Unmap().WithZone(""), " ", tcp.Port)
}

// preparingConn prepares each statement when it comes for the second time: most of those of a command come once.
type preparingConn struct {
	pqConn
	statements map[string]*statement // by text
}

type statement struct {
	prepared pqStmt // nil: not yet
	at       time.Time
}

// pqStmt is what we want of a prepared statement of lib/pq.
type pqStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

const (
	// preparedFor bounds the age of a plan: one that was made while the tables were empty would stay
	// until somebody analyzes them.
	preparedFor = 5 * time.Minute
	// preparedMost bounds the statements of a connection. The roster has fewer, but for lists whose
	// lengths differ; those that came once only make room.
	preparedMost = 100
)

func (c *preparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.prepare(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.pqConn.QueryContext(ctx, query, args)
	}
	rows, err := s.QueryContext(ctx, args)
	return rows, c.forgetUnknown(query, err)
}

func (c *preparingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.prepare(ctx, query, args)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.pqConn.ExecContext(ctx, query, args)
	}
	result, err := s.ExecContext(ctx, args)
	return result, c.forgetUnknown(query, err)
}

// prepare returns nil for a statement that comes for the first time, or is not worth it.
func (c *preparingConn) prepare(ctx context.Context, query string, args []driver.NamedValue) (pqStmt, error) {
	s, again := c.statements[query]
	switch {
	case len(args) == 0:
		return nil, nil
	case !again:
		if len(c.statements) >= preparedMost {
			maps.DeleteFunc(c.statements, func(_ string, s *statement) bool { return s.prepared == nil })
		}
		if len(c.statements) < preparedMost {
			c.statements[query] = &statement{}
		}
		return nil, nil
	case s.prepared != nil && time.Since(s.at) < preparedFor:
		return s.prepared, nil
	case s.prepared != nil:
		if err := s.prepared.Close(); err != nil {
			return nil, err
		}
		s.prepared = nil
	}
	prepared, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.prepared, s.at = prepared.(pqStmt), time.Now() // it is no COPY, which alone has not the methods
	return s.prepared, nil
}

// noSuchStatement is PostgreSQL's code for a prepared statement that it does not know.
const noSuchStatement = "26000"

// forgetUnknown returns the error as it is. If somebody has made the server forget its statements (DISCARD ALL), ours
// are forgotten, too; the error is one after which is tried again.
func (c *preparingConn) forgetUnknown(query string, err error) error {
	var e *pq.Error
	if errors.As(err, &e) && e.Code == noSuchStatement {
		delete(c.statements, query)
	}
	return err
}
