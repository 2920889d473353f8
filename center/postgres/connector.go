package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net"
	"time"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
)

const (
	// preparedStatements limits how many statements a connection prepares.
	preparedStatements = 100
	// preparedForDealers is the same for a connection of dealers. There are more of these, and a batch of another size may
	// be another statement.
	preparedForDealers = 16
)

// connector forces what correctness needs on the configuration of the user.
func connector(cfg pq.Config, role sqldb.Role, o sqldb.PoolOptions) (driver.Connector, error) {
	cfg = cfg.Clone()
	// Without it, lib/pq prepares and executes in two round trips, and PgBouncer in transaction
	// mode sends them to different servers: the rows of another statement come back.
	cfg.BinaryParameters = true
	if cfg.ApplicationName == "" {
		cfg.ApplicationName = "rota"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = sqldb.ConnectTimeout
	}
	c, err := pq.NewConnectorConfig(cfg)
	if err != nil {
		return nil, err
	}
	preparing := sqldb.Preparing{
		Connector:  sqldb.Leaving{Connector: explaining{c, cfg}, Classify: classify},
		MayPrepare: direct, Unprepared: unprepared, MaxStatements: preparedStatements,
	}
	if role == sqldb.RoleHeartbeat {
		preparing.MayPrepare = plansOnce
	}
	switch {
	case role.Brief():
		c.Dialer(dialer{prepares: true, limit: sqldb.IOTimeout})
	case role == sqldb.RoleDealers:
		c.Dialer(dialer{prepares: true, limit: o.ReplyLimit(false)})
		preparing.MaxStatements, preparing.OnlyRepeated = preparedForDealers, true
	default:
		c.Dialer(dialer{})
		return explaining{c, cfg}, nil
	}
	return preparing, nil
}

// direct reports whether there is no proxy between the program and the server, so that statements may be prepared.
// PgBouncer in transaction mode may send the next statement to another session. lib/pq uses the same names for
// prepared statements on all connections, so that the rows of another statement would come back.
//
// There is no proxy if the server sees the same two ends of the connection as the program: a proxy's connection to the
// server has other ends, and no two connections have both ends in common. On a Unix socket, and where addresses are
// translated, direct cannot tell and returns false. It also returns false if its query fails: the next statement
// reports the failure.
func direct(ctx context.Context, c sqldb.Conn, dialed net.Conn) bool {
	if dialed == nil {
		return false
	}
	row, err := sqldb.Row(ctx, c, `SELECT host(inet_client_addr()) || ' ' || CAST(inet_client_port() AS text) || ' ' ||
		host(inet_server_addr()) || ' ' || CAST(inet_server_port() AS text)`)
	return err == nil && sqldb.ValueText(row[0]) == end(dialed.LocalAddr())+" "+end(dialed.RemoteAddr())
}

// plansOnce does what direct does for a connection of heartbeats, and makes the session keep the plans of its prepared
// statements. Left to itself, PostgreSQL plans a heartbeat anew each time, because it takes the number of its servers
// into account, and the planning costs five times as much as the rest. There is only one good plan: each row is found
// by its key.
func plansOnce(ctx context.Context, c sqldb.Conn, dialed net.Conn) bool {
	if !direct(ctx, c, dialed) {
		return false
	}
	_, err := c.ExecContext(ctx, `SET plan_cache_mode = force_generic_plan`, nil)
	return err == nil
}

// end returns one end of a connection in the format of the query in direct.
func end(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return ""
	}
	return fmt.Sprint(tcp.AddrPort().Addr().Unmap().WithZone(""), " ", tcp.Port)
}

// cancelTimeout bounds how long a request to cancel a statement takes.
const cancelTimeout = 300 * time.Millisecond

// dialer opens connections that notice a dead network: all of them by keep-alive, and those with a limit by a deadline
// for each read and each write. Only the deadline ends a statement of lib/pq when the network loses packets (its issue
// 620), or when the server is frozen (F10). Migrations may run statements of any length.
type dialer struct {
	prepares bool // the connection may prepare statements
	limit    time.Duration
}

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialTimeout(network, address, sqldb.IOTimeout)
}

func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	limit := d.limit
	if d.prepares && !sqldb.Connecting(ctx) { // a cancel request: lib/pq waits for its reply if the statement was prepared
		limit = cancelTimeout
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}
	conn, err := (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext(ctx, network, address)
	sqldb.Dialed(ctx, conn)
	if err != nil || limit == 0 {
		return conn, err
	}
	return &limitedConn{Conn: conn, limit: limit}, nil
}

// limitedConn fails a read or a write that takes longer than its limit.
type limitedConn struct {
	net.Conn
	limit time.Duration
	until time.Time // while lib/pq connects, when that must have ended
}

// SetDeadline implements net.Conn. lib/pq calls it before and after it connects.
func (c *limitedConn) SetDeadline(t time.Time) error {
	c.until = t
	return c.Conn.SetDeadline(t)
}

func (c *limitedConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(c.deadline()); err != nil {
		return 0, fmt.Errorf("set the read deadline: %w", err)
	}
	return c.Conn.Read(p)
}

func (c *limitedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(c.deadline()); err != nil {
		return 0, fmt.Errorf("set the write deadline: %w", err)
	}
	return c.Conn.Write(p)
}

func (c *limitedConn) deadline() time.Time {
	t := time.Now().Add(c.limit)
	if !c.until.IsZero() && c.until.Before(t) {
		return c.until
	}
	return t
}
