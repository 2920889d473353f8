package sqldb

import (
	"database/sql"
	"strconv"
)

// Flag scans a boolean. MySQL and SQLite keep any number in such a column, and return numbers for conditions. As in a
// condition of SQL, each number except 0 is true. NULL is false. A text that is no boolean is true: what cannot be read
// is paused, and is not started (S13).
type Flag bool

// Scan implements sql.Scanner.
func (f *Flag) Scan(src any) error {
	var text Text
	if err := text.Scan(src); err != nil {
		return err
	}
	if n, err := strconv.ParseFloat(string(text), 64); err == nil {
		*f = n != 0
		return nil
	}
	var b sql.NullBool
	err := b.Scan(src)
	*f = Flag(err != nil || b.Bool)
	return nil
}
