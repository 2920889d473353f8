package mysql

import (
	"cmp"
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"

	driver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/internal/sqldb"
)

const (
	defaultHost = "127.0.0.1"
	defaultPort = "3306"
)

// hosts is a connector that tries hosts in order.
type hosts []host

type host struct {
	sqldriver.Connector
	name string
}

// newHosts returns a connector to the hosts of a URL for a role. It sets the variables in each session.
func newHosts(u *sqldb.URL, role sqldb.Role, o sqldb.PoolOptions, variables map[string]string) (hosts, error) {
	cfg, err := config(u)
	if err != nil {
		return nil, err
	}
	delete(cfg.Params, syncVariable) // the URL cannot change it: heartbeats must not wait (F7)
	maps.Copy(cfg.Params, variables)
	force(cfg, role)
	if role == sqldb.RoleDealers {
		limitIdle(cfg, o.IdleTxTimeout)
	}
	var list hosts
	for _, address := range addresses(u) {
		own := cfg.Clone() // NewConnector keeps the name of the server in it, to verify it
		own.Net, own.Addr = address.network, address.text
		c, err := driver.NewConnector(own)
		if err != nil {
			return nil, fmt.Errorf("database URL: %w", err)
		}
		list = append(list, host{c, address.text})
	}
	return list, nil
}

type address struct{ network, text string }

// addresses returns the addresses to try.
func addresses(u *sqldb.URL) []address {
	if socket := u.Query.Get("socket"); socket != "" {
		return []address{{"unix", socket}}
	}
	if len(u.Hosts) == 0 {
		return []address{{"tcp", net.JoinHostPort(defaultHost, defaultPort)}}
	}
	var list []address
	for _, h := range u.Hosts {
		list = append(list, address{"tcp", net.JoinHostPort(cmp.Or(h.Name, defaultHost), cmp.Or(h.Port, defaultPort))})
	}
	return list
}

// Connect implements driver.Connector.
func (list hosts) Connect(ctx context.Context) (sqldriver.Conn, error) {
	if len(list) == 1 {
		return list[0].connect(ctx)
	}
	var errs []error
	for _, h := range list {
		conn, err := h.connect(ctx)
		if err == nil {
			err = refuseReadOnly(ctx, conn)
		}
		if err == nil {
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", h.name, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// Driver implements driver.Connector.
func (list hosts) Driver() sqldriver.Driver { return list[0].Driver() }

// connect connects, and explains the errors that a parameter of the URL can avoid.
func (h host) connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := h.Connect(ctx)
	if refused := charsetError(err, "the URL"); refused != nil {
		return nil, refused
	}
	if errors.Is(err, driver.ErrNoTLS) {
		return nil, fmt.Errorf("%w; tls=false in the URL connects without TLS", err)
	}
	return conn, err
}

// refuseReadOnly closes a connection to a server that takes no writes: after a fail-over the old primary is the first
// host that answers.
func refuseReadOnly(ctx context.Context, conn sqldriver.Conn) error {
	rows, err := conn.(sqldb.Conn).QueryContext(ctx, "SELECT @@global.read_only", nil)
	row := make([]sqldriver.Value, 1)
	if err == nil {
		err = errors.Join(rows.Next(row), rows.Close())
	}
	if err == nil && fmt.Sprintf("%s", row[0]) != "0" && fmt.Sprint(row[0]) != "0" {
		err = sqldb.TakesNoWrites("this server is read-only (read_only = 1: a replica?)")
	}
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	return nil
}
