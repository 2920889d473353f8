package ops

import (
	"fmt"
	"time"
)

// Records are rows for operators, with the names of the columns as JSON tags. A NULL is nil if the field is a pointer,
// otherwise the zero value. A duration is read from milliseconds. Ages are seconds by the database's clock. Records are
// read without locks: the protocol does not depend on them.

// seconds returns how long ago t was, in seconds with three digits, as the view shows it.
func seconds(now, t time.Time) float64 {
	return float64(now.Sub(t).Milliseconds()) / 1000
}

// ageOf returns how long ago t was; nil if t is nil.
func ageOf(now time.Time, t *time.Time) *float64 {
	if t == nil {
		return nil
	}
	age := seconds(now, *t)
	return &age
}

// latest returns a query for the last limit rows, the latest last.
func latest(from, time, key string, limit int) string {
	return fmt.Sprintf(`SELECT {columns} FROM (SELECT * FROM %s ORDER BY %s DESC, %s DESC LIMIT %d) x ORDER BY %s, %s`, from, time, key, limit, time, key)
}
