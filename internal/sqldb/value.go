package sqldb

import (
	"database/sql"
	"strconv"
	"time"
)

// The bounds of the values in the tables. CHECK constraints refuse values beyond them. A table may have lost its
// constraints, and MySQL before 8.0.16 ignores them: a value beyond a bound then counts as the bound, so that one bad
// row stops no server except its own.
const (
	// MaxDuration is the longest duration. Times that far from now fit into every database.
	MaxDuration = 10 * 365 * 24 * time.Hour
	// MaxEpoch is the highest epoch. The sum of the epochs of all queues of a task type fits into an int64.
	MaxEpoch = 1_000_000_000_000
)

// The first and the last time of a column. PostgreSQL has earlier and later ones, and infinity.
var (
	minTime = time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC)
	maxTime = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
)

// ClampMillis returns a number of milliseconds as a duration, at most MaxDuration in either direction.
func ClampMillis(ms int64) time.Duration {
	most := MaxDuration.Milliseconds()
	return time.Duration(max(-most, min(ms, most))) * time.Millisecond
}

// ClampTime returns a time within the bounds of a column.
func ClampTime(t time.Time) time.Time {
	switch {
	case t.Before(minTime):
		return minTime
	case t.After(maxTime):
		return maxTime
	}
	return t
}

// parseTime reads SQLite's text of a time, with or without a fraction of a second, and PostgreSQL's infinity. Any other
// text counts as the earliest time.
func parseTime(text string) time.Time {
	if text == "infinity" {
		return maxTime
	}
	t, err := time.ParseInLocation(time.DateTime, text, time.UTC) // accepts a fraction, too
	if err != nil {
		return minTime
	}
	return t
}

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

// Millis is a duration that is stored as whole milliseconds. A duration beyond MaxDuration counts as MaxDuration, and
// so does what is no number: a server is not expired because its interval cannot be read (S13).
type Millis time.Duration

// Scan implements sql.Scanner.
func (m *Millis) Scan(src any) error {
	var n sql.NullInt64
	if n.Scan(src) != nil {
		n.Int64 = MaxDuration.Milliseconds()
	}
	*m = Millis(ClampMillis(n.Int64))
	return nil
}
