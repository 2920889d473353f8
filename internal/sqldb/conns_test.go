package sqldb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/internal/sqldb"
)

// counting is a connector that counts its open connections.
type counting struct {
	open     atomic.Int64
	closeErr error // of each connection
}

func (c *counting) Connect(context.Context) (driver.Conn, error) {
	c.open.Add(1)
	return countedConn{c}, nil
}

func (c *counting) Driver() driver.Driver { return nil }

type countedConn struct{ of *counting }

func (c countedConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c countedConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (c countedConn) Close() error {
	c.of.open.Add(-1)
	return c.of.closeErr
}

func openCounted(c *counting) (*sqldb.DB, error) {
	return sqldb.Open(sqldb.Database{
		Dialect: &sqldb.Dialect{Classify: func(err error) sqldb.Class {
			if errors.Is(err, errDiskFull) {
				return sqldb.Refused
			}
			return sqldb.Other
		}},
		Connector: func(sqldb.Role, sqldb.PoolOptions) (driver.Connector, error) { return c, nil },
	}, sqldb.PoolOptions{})
}

// errDiskFull is the answer of a database.
var errDiskFull = errors.New("the disk is full")

// A worker that has handed everything over must not end as failed because its idle connections were reset before.
func TestCloseOfBrokenConnections(t *testing.T) {
	reset := &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
	unwritten := errors.New("bad connection") // of go-sql-driver/mysql, which does not export it
	for _, test := range []struct{ got, want error }{
		{nil, nil}, {reset, nil}, {driver.ErrBadConn, nil}, {unwritten, nil}, {errDiskFull, errDiskFull},
	} {
		c := counting{closeErr: test.got}
		db, err := openCounted(&c)
		if err != nil {
			t.Fatal(err)
		}
		use(t, db.Store, 4)
		use(t, db.Dealers, 2)
		if err := db.Close(); !errors.Is(err, test.want) || test.want == nil && err != nil {
			t.Errorf("close with connections that return %v: %v, want %v", test.got, err, test.want)
		}
		if n := c.open.Load(); n != 0 {
			t.Errorf("close with connections that return %v: %d are open", test.got, n)
		}
	}
}

// A hundred processes at rest must not use up the connections of a server.
func TestConnectionsAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counting
		db, err := openCounted(&c)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		use(t, db.Heartbeat, 1)
		use(t, db.Store, 4)
		use(t, db.Dealers, 30)
		if n := c.open.Load(); n != 1+4+16 {
			t.Errorf("%d connections stay open for the next batch, want 21", n)
		}
		time.Sleep(3 * time.Minute)
		if n := c.open.Load(); n != 1 {
			t.Errorf("%d connections are open at rest, want that of the heartbeats", n)
		}
	})
}

// use takes n connections of a pool at once and gives them back.
func use(t *testing.T, pool *sql.DB, n int) {
	t.Helper()
	var taken []*sql.Conn
	for range n {
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, conn)
	}
	for _, conn := range taken {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
