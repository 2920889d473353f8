package testdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"strings"
	"testing"
)

// Answering returns a pool of a server that is not there: it answers a query with one row, by a part of the query, and
// refuses all others.
func Answering(t testing.TB, rows map[string][]any) *sql.DB {
	t.Helper()
	db := sql.OpenDB(answering(rows))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// answering is the connector and the connection.
type answering map[string][]any

func (a answering) Connect(context.Context) (driver.Conn, error) { return a, nil }
func (a answering) Driver() driver.Driver                        { return nil }
func (a answering) Close() error                                 { return nil }
func (a answering) Begin() (driver.Tx, error)                    { return nil, driver.ErrSkip }
func (a answering) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }

func (a answering) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	for part, row := range a {
		if strings.Contains(query, part) {
			return &answer{row: row}, nil
		}
	}
	return nil, fmt.Errorf("no answer to %s", query)
}

// answer is one row.
type answer struct {
	row  []any
	done bool
}

func (a *answer) Columns() []string { return make([]string, len(a.row)) }
func (a *answer) Close() error      { return nil }

func (a *answer) Next(to []driver.Value) error {
	if a.done {
		return io.EOF
	}
	a.done = true
	for i, v := range a.row {
		to[i] = v
	}
	return nil
}
