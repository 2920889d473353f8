package postgres

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// cancelTimeout bounds how long a request to cancel a statement takes.
const cancelTimeout = 300 * time.Millisecond

// dialer opens connections that notice a dead network: all of them by keep-alive, and the roster's own (strict) by a
// deadline for each read and each write. Only the deadline ends a statement of lib/pq when the network loses packets
// (its issue 620). Dealers and migrations may run statements of any length.
type dialer struct{ strict bool }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialTimeout(network, address, sqldb.IOTimeout)
}

func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	timeout := sqldb.IOTimeout
	if d.strict && !sqldb.Connecting(ctx) { // a cancel request: lib/pq waits for its reply if the statement was prepared
		timeout = cancelTimeout
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}
	conn, err := (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext(ctx, network, address)
	sqldb.Dialed(ctx, conn)
	if err != nil || !d.strict {
		return conn, err
	}
	return strictConn{conn, timeout}, nil
}

// strictConn fails a read or a write that takes longer than its timeout.
type strictConn struct {
	net.Conn
	timeout time.Duration
}

func (c strictConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, fmt.Errorf("set the read deadline: %w", err)
	}
	return c.Conn.Read(p)
}

func (c strictConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, fmt.Errorf("set the write deadline: %w", err)
	}
	return c.Conn.Write(p)
}
