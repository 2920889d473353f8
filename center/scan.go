package center

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// instant scans a time from a native column or from SQLite's text. NULL is the zero time.
type instant time.Time

// Scan implements sql.Scanner.
func (i *instant) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*i = instant{}
	case time.Time:
		*i = instant(v.UTC())
	case string:
		t, err := time.ParseInLocation(sqliteLayout, v, time.UTC)
		if err != nil {
			return fmt.Errorf("read a time: %w", err)
		}
		*i = instant(t)
	default:
		return fmt.Errorf("read a time: %T is none", src)
	}
	return nil
}

// text scans a string. NULL is empty.
type text string

// Scan implements sql.Scanner.
func (t *text) Scan(src any) error {
	var s sql.NullString
	err := s.Scan(src)
	*t = text(s.String)
	return err
}

// list scans a JSON list of strings. NULL is an empty one.
type list []string

// Scan implements sql.Scanner.
func (l *list) Scan(src any) error {
	var t text
	if err := t.Scan(src); err != nil || t == "" {
		*l = nil
		return err
	}
	return json.Unmarshal([]byte(t), l)
}

// Value implements driver.Valuer: an empty list is NULL.
func (l list) Value() (driver.Value, error) {
	if len(l) == 0 {
		return nil, nil
	}
	return ids(l)
}

// texts scans a JSON object of strings. NULL is none.
type texts map[string]string

// Scan implements sql.Scanner.
func (m *texts) Scan(src any) error {
	var t text
	if err := t.Scan(src); err != nil || t == "" {
		*m = nil
		return err
	}
	return json.Unmarshal([]byte(t), m)
}

// Value implements driver.Valuer.
func (m texts) Value() (driver.Value, error) {
	doc, err := json.Marshal(m)
	return string(doc), err
}

// null turns an empty string into NULL.
func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func noRows(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// each calls scan for each row and closes them.
func each(rows *sql.Rows, err error, scan func(*sql.Rows) error) error {
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

// affected returns how many rows a statement matched.
func affected(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// clean makes a text fit for every database: no NUL, no broken UTF-8, and not too long for a column.
func clean(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	if runes := []rune(s); len(runes) > maxText {
		s = string(runes[:maxText]) + "..."
	}
	return s
}

// maxText bounds what others wrote, such as a dealer's error, in characters.
const maxText = 2_000
