package sqldealer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/dutyrota/rota/processor"
)

// Backlog implements processor.Backlogger with the statement backlog. Its one row has the number of rows that are left.
// A second column may have the time of the oldest, or its age in seconds.
func (d *Dealer) Backlog(ctx context.Context, s processor.Selection) (b processor.Backlog, err error) {
	if d.backlog == nil {
		return b, processor.ErrNoBacklog
	}
	if d, err = d.at(s.Queue.Database); err == nil {
		err = d.backlog.checkNumbered(s.Queue)
	}
	if err != nil {
		return b, err
	}
	rows, err := d.database.DB().QueryContext(ctx, d.backlog.text(0),
		d.backlog.values(args{Selection: &s, shape: &d.shape}.value)...)
	if err == nil {
		defer rows.Close()
		b, err = readBacklog(rows)
	}
	if err != nil {
		return processor.Backlog{}, fmt.Errorf("run backlog%s: %w", in(d.name), err)
	}
	return b, nil
}

func readBacklog(rows *sql.Rows) (b processor.Backlog, err error) {
	columns, err := rows.Columns()
	if err != nil {
		return b, err
	}
	if len(columns) > 2 {
		return b, fmt.Errorf("the statement returns %d columns: want the number of rows, and the time of the oldest",
			len(columns))
	}
	if !rows.Next() {
		return b, errors.Join(rows.Err(), errors.New("the statement returns no row: want one"))
	}
	var count sql.NullInt64
	var oldest any
	if err := rows.Scan([]any{&count, &oldest}[:len(columns)]...); err != nil {
		return b, err
	}
	if rows.Next() {
		return b, errors.New("the statement returns several rows: want one")
	}
	b.Items = count.Int64
	if at, ok := oldest.(time.Time); ok && at.IsZero() {
		return b, fmt.Errorf("the second column, %s, is 0000-00-00, which is no date: correct the rows, or leave them out",
			columns[1])
	}
	if b.Items > 0 {
		b.Oldest, err = oldestTime(oldest)
	}
	return b, errors.Join(err, rows.Err())
}

// timeLayouts are the forms in which SQLite's columns hold times. A time without a zone is UTC.
var timeLayouts = []string{time.DateTime, time.RFC3339, "2006-01-02 15:04:05Z07:00", time.DateOnly}

// oldestTime returns the time of a value from the database: a time, a text with a time, or an age in seconds.
func oldestTime(value any) (time.Time, error) {
	var text string
	switch v := value.(type) {
	case nil:
		return time.Time{}, nil
	case time.Time:
		return v.UTC(), nil
	case []byte:
		text = string(v)
	default:
		text = fmt.Sprint(v)
	}
	if age, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(age) < 1e9 {
		age = max(age, 0) // a clock may be ahead
		return time.Now().Add(-time.Duration(age * float64(time.Second))), nil
	}
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("the second column is %.40q: want a time, or an age in seconds below 1e9", text)
}
