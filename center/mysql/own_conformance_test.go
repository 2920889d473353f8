package mysql_test

import (
	"context"
	"database/sql/driver"
	"net/url"
	"testing"
	"time"

	gosqldriver "github.com/go-sql-driver/mysql"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/center/mysql"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/internal/testdb"
)

func init() { centertest.Database = overOwnConnector }

// The roster works over connections that the program makes and wraps, and whose statements with parameters take three
// round trips.
func TestConformanceOfConnector(t *testing.T) {
	centertest.Variant(t)
	t.Parallel()
	for _, kind := range []string{testdb.MySQL, testdb.MariaDB} {
		t.Run(kind, func(t *testing.T) { centertest.Run(t, testdb.URL(t, kind)) })
	}
}

// A statement ends with its context when the network is dead, and the pool heals.
func TestDeadNetwork(t *testing.T) {
	t.Parallel()
	raw, p := testdb.Through(t, testdb.URL(t, testdb.MySQL))
	c := centertest.Open(t, raw, center.Options{})
	p.EndsAndHeals(t, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return c.CheckWrite(ctx)
	})
}

// overOwnConnector returns the database at the URL of a test server, over a tracing wrapper.
func overOwnConnector(raw string) center.Database {
	u, err := url.Parse(raw)
	if err != nil {
		return center.Database{Err: err}
	}
	cfg, err := gosqldriver.ParseDSN(u.User.String() + "@tcp(" + u.Host + ")" + u.Path + "?parseTime=true&clientFoundRows=true")
	if err != nil {
		return center.Database{Err: err}
	}
	c, err := gosqldriver.NewConnector(cfg)
	if err != nil {
		return center.Database{Err: err}
	}
	db := mysql.Connector(tracing{c})
	db.Local = true // the suite creates the tables
	return db
}

// tracing is a connector whose connections have the methods that a tracing wrapper has, and no others of the driver.
type tracing struct{ driver.Connector }

// Connect implements driver.Connector.
func (c tracing) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return struct {
		sqldb.OwnConn
		driver.Pinger
		driver.SessionResetter
	}{conn.(sqldb.OwnConn), conn.(driver.Pinger), conn.(driver.SessionResetter)}, nil
}
