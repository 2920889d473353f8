package costs

import (
	"context"
	"database/sql/driver"
	"io"
	"net"
	"net/url"
	"sync/atomic"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/sqldb"
)

// counter counts what the connections of a Center do.
type counter struct {
	statements atomic.Int64 // without BEGIN and COMMIT
	commits    atomic.Int64 // of transactions, and of statements outside of one that may write
	rows       atomic.Int64 // that the statements return
	sent       atomic.Int64 // bytes to the server
	received   atomic.Int64 // bytes from the server
}

// in returns the database with connections that the counter counts.
func (n *counter) in(d center.Database) center.Database {
	connect := d.Connector
	d.Connector = func(r sqldb.Role, o sqldb.PoolOptions) (driver.Connector, error) {
		c, err := connect(r, o)
		return connector{c, n}, err
	}
	return d
}

// connector makes connections whose statements are counted.
type connector struct {
	driver.Connector
	n *counter
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: made, n: c.n}, nil
}

// conn is a connection whose statements are counted.
type conn struct {
	driver.Conn
	n    *counter
	inTx bool
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	c.inTx = err == nil
	return transaction{tx, c}, err
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.n.statements.Add(1)
	if !c.inTx {
		c.n.commits.Add(1)
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.n.statements.Add(1)
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	return countedRows{rows, c.n}, err
}

// Ping implements driver.Pinger.
func (c *conn) Ping(ctx context.Context) error { return c.Conn.(driver.Pinger).Ping(ctx) }

// CheckNamedValue implements driver.NamedValueChecker. The driver of SQLite has none.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

type transaction struct {
	driver.Tx
	c *conn
}

// Commit implements driver.Tx.
func (t transaction) Commit() error {
	t.c.inTx = false
	t.c.n.commits.Add(1)
	return t.Tx.Commit()
}

// Rollback implements driver.Tx.
func (t transaction) Rollback() error {
	t.c.inTx = false
	return t.Tx.Rollback()
}

type countedRows struct {
	driver.Rows
	n *counter
}

// Next implements driver.Rows.
func (r countedRows) Next(to []driver.Value) error {
	err := r.Rows.Next(to)
	if err == nil {
		r.n.rows.Add(1)
	}
	return err
}

// relay passes connections on to the server of a URL, and counts their bytes until ctx is done. It returns the URL that
// leads through it.
func (n *counter) relay(ctx context.Context, raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() }) // Accept has the error
	server := u.Host
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go n.pass(ctx, client, server)
		}
	}()
	u.Host = l.Addr().String()
	return u.String(), nil
}

// pass relays a connection until one of its ends closes it. The other end then sees that.
func (n *counter) pass(ctx context.Context, client net.Conn, address string) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan struct{}, 2)
	relay := func(to io.Writer, from io.Reader, bytes *atomic.Int64) {
		_, _ = io.Copy(io.MultiWriter(to, tally{bytes}), from) // fails if an end has closed the connection
		done <- struct{}{}
	}
	go relay(server, client, &n.sent)
	go relay(client, server, &n.received)
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// tally counts the bytes that are written to it.
type tally struct{ bytes *atomic.Int64 }

// Write implements io.Writer.
func (t tally) Write(b []byte) (int, error) {
	t.bytes.Add(int64(len(b)))
	return len(b), nil
}
