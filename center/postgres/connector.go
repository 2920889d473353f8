package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/lib/pq"

	"github.com/dutyrota/rota/internal/sqldb"
)

// preparedStatements limits how many statements a connection prepares.
const preparedStatements = 100

// connector forces what correctness needs on the configuration of the user.
func connector(cfg pq.Config, role sqldb.Role) (driver.Connector, error) {
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
	c.Dialer(dialer{strict: role.Brief()})
	if !role.Brief() {
		return explaining{c}, nil
	}
	return sqldb.Preparing{Connector: explaining{c}, MayPrepare: direct, Unprepared: unprepared,
		MaxStatements: preparedStatements}, nil
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
	rows, err := c.QueryContext(ctx, `SELECT host(inet_client_addr()) || ' ' || CAST(inet_client_port() AS text) || ' ' ||
		host(inet_server_addr()) || ' ' || CAST(inet_server_port() AS text)`, nil)
	if err != nil {
		return false
	}
	row := make([]driver.Value, 1)
	if err := errors.Join(rows.Next(row), rows.Close()); err != nil {
		return false
	}
	return row[0] != nil && fmt.Sprintf("%s", row[0]) == end(dialed.LocalAddr())+" "+end(dialed.RemoteAddr())
}

// end returns one end of a connection in the format of the query in direct.
func end(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return ""
	}
	return fmt.Sprint(tcp.AddrPort().Addr().Unmap().WithZone(""), " ", tcp.Port)
}
