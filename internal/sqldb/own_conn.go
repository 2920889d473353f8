package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// OwnConn is what the roster needs of a connection that the program makes itself. database/sql does without these
// methods, but a statement then does not end with its context.
type OwnConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// ConnectOwn makes a connection of the program's own connector. prepare sets and asks for what the roster needs. If it
// returns an error, ConnectOwn closes the connection.
func ConnectOwn(ctx context.Context, c driver.Connector,
	prepare func(context.Context, OwnConn) error,
) (driver.Conn, error) {
	conn, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	own, ok := conn.(OwnConn)
	if !ok {
		err = fmt.Errorf("the connections of %T have no %s: a statement could not end with its context", conn, missing(conn))
	} else {
		err = prepare(ctx, own)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// missing returns the name of the first method of OwnConn that a connection lacks.
func missing(conn driver.Conn) string {
	if _, ok := conn.(driver.QueryerContext); !ok {
		return "QueryContext"
	}
	if _, ok := conn.(driver.ExecerContext); !ok {
		return "ExecContext"
	}
	if _, ok := conn.(driver.ConnPrepareContext); !ok {
		return "PrepareContext"
	}
	return "BeginTx"
}

// Row asks a connection for one row. The query has no parameters.
func Row(ctx context.Context, conn driver.QueryerContext, query string) ([]driver.Value, error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	row := make([]driver.Value, len(rows.Columns()))
	return row, errors.Join(rows.Next(row), rows.Close())
}

// ValueText returns a value of Row as text.
func ValueText(v driver.Value) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}
