package center

import (
	"context"
	"database/sql"
)

// Column returns the values of a query with one column, for the Select of a dealer:
//
//	return center.Column[int64](ctx, db, `SELECT id FROM orders WHERE state = 'NEW' AND mod(id, $1) = $2 ORDER BY id LIMIT $3`,
//		s.Total, s.Queue.Index, s.Limit)
//
// The values are scanned as by database/sql. It returns the error of the query, of a scan, or of reading on, and no
// values then.
func Column[T any](ctx context.Context, db Queryer, query string, args ...any) (values []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return values, nil
}

// Queryer is a *sql.DB, *sql.Conn or *sql.Tx, or what wraps one.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}
