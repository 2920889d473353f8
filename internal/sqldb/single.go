package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// Single runs single statements on connections of a pool, and reads how many rows they matched before it gives the
// connection back. A pool gives it back first, and the RowsAffected of its result then waits for the connection: if
// another goroutine has begun a statement there, until that has ended.
type Single struct{ Pool *sql.DB }

// ExecContext runs a statement, as that of a pool does: it tries another connection if the first one was closed.
func (s Single) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	for try := 1; ; try++ {
		n, err := s.exec(ctx, query, args)
		if try < 3 && errors.Is(err, driver.ErrBadConn) { // the statement was not sent
			continue
		}
		return driver.RowsAffected(n), err
	}
}

func (s Single) exec(ctx context.Context, query string, args []any) (int, error) {
	conn, err := s.Pool.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close() // it gives the connection back
	return Affected(conn.ExecContext(ctx, query, args...))
}
