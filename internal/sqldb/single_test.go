package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
)

// counter is a driver with one kind of statement. Its connections are closed, as far as closed says.
type counter struct {
	driver.Conn
	pool   *sql.DB
	closed *int
	inUse  *int // how many connections were in use when the matched rows were read
}

func (c counter) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (c counter) Driver() driver.Driver                        { return nil }
func (c counter) Close() error                                 { return nil }

func (c counter) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	if *c.closed > 0 {
		*c.closed--
		return nil, driver.ErrBadConn
	}
	return counted{c}, nil
}

type counted struct{ counter }

func (counted) LastInsertId() (int64, error) { return 0, nil }

func (r counted) RowsAffected() (int64, error) {
	*r.inUse = r.pool.Stats().InUse
	return 7, nil
}

// The rows that a single statement has matched are read while no other goroutine can use its connection.
func TestSingleReadsItsResultBeforeOthersUseItsConnection(t *testing.T) {
	for _, closed := range []int{0, 2, 3} {
		c := counter{closed: &closed, inUse: new(int)}
		pool := sql.OpenDB(&c)
		c.pool = pool
		n, err := Affected(Single{pool}.ExecContext(t.Context(), ""))
		switch {
		case closed > 0 || n == 0 && err == nil:
			t.Errorf("%d rows, error %v, and %d closed connections were not tried", n, err, closed)
		case err == nil && (n != 7 || *c.inUse != 1):
			t.Errorf("%d rows, and %d connections in use while they are read, want 7 and 1", n, *c.inUse)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}
}
