package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// TimeLayout is how SQLite stores a time: as text of a fixed width, so that the order of the texts is the order of the
// times.
const TimeLayout = "2006-01-02 15:04:05.000000"

// Instant scans a time from a native column or from SQLite's text. NULL is the zero time. A time beyond the bounds of a
// column, such as PostgreSQL's infinity, counts as the bound, and a text that is no time as the earliest time.
type Instant time.Time

// Scan implements sql.Scanner.
func (i *Instant) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*i = Instant{}
	case time.Time:
		*i = Instant(ClampTime(v.UTC()))
	case string:
		*i = Instant(ClampTime(parseTime(v)))
	case []byte: // PostgreSQL's infinity
		*i = Instant(ClampTime(parseTime(string(v))))
	default:
		return fmt.Errorf("read a time: %T is not a time", src)
	}
	return nil
}

// Text scans a string. NULL is empty.
type Text string

// Scan implements sql.Scanner.
func (t *Text) Scan(src any) error {
	var s sql.NullString
	err := s.Scan(src)
	*t = Text(s.String)
	return err
}

// List scans a JSON list of strings. NULL is an empty list. What is no JSON list counts as an empty one, and an element
// that is no string does not count: the statement also returns what other rows hold, and must not fail for one of them.
type List []string

// Scan implements sql.Scanner.
func (l *List) Scan(src any) error {
	*l = nil
	var t Text
	if err := t.Scan(src); err != nil {
		return err
	}
	var elements []any
	if json.Unmarshal([]byte(t), &elements) != nil {
		return nil
	}
	for _, e := range elements {
		if text, ok := e.(string); ok {
			*l = append(*l, text)
		}
	}
	return nil
}

// Value implements driver.Valuer: an empty list is NULL.
func (l List) Value() (driver.Value, error) {
	if len(l) == 0 {
		return nil, nil
	}
	return JSON(l)
}

// Map scans a JSON object whose values have one type. NULL is an empty map, and so is what is no such object: see List.
type Map[V any] map[string]V

// Texts is a JSON object of strings.
type Texts = Map[string]

// Scan implements sql.Scanner.
func (m *Map[V]) Scan(src any) error {
	*m = nil
	var t Text
	if err := t.Scan(src); err != nil {
		return err
	}
	var object map[string]V
	if json.Unmarshal([]byte(t), &object) == nil {
		*m = object
	}
	return nil
}

// Value implements driver.Valuer.
func (m Map[V]) Value() (driver.Value, error) {
	doc, err := json.Marshal(m)
	return string(doc), err
}

// NoRows reports whether a query for one row found none.
func NoRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// Queryer is a pool or a transaction.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Reading reads on a pool or in a transaction, in a dialect.
type Reading struct {
	Queryer
	Dialect *Dialect
}

// Each calls scan for each row that a query returns.
func (r Reading) Each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := r.QueryContext(ctx, r.Dialect.SQL(query), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Affected returns how many rows a statement matched.
func Affected(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// Changed returns ErrRaced if a statement that has to change a row has changed none, because another transaction came
// before it.
func Changed(rows int, err error) error {
	if err == nil && rows == 0 {
		err = ErrRaced
	}
	return err
}

// Wrap returns an error that begins with what was being done, or nil if err is nil.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// Prefix does what Wrap does for an error that begins with the object: "release" and "orders$BASE: ..." become "release
// orders$BASE: ...".
func Prefix(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %w", fmt.Sprintf(format, args...), err)
}
