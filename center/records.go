package center

import (
	"fmt"
	"time"
)

// What operators look at are records: rows with the names of their columns as JSON tags. A NULL is nil where the
// field is a pointer, else the zero value. A duration is read from milliseconds. Ages are seconds by the database's clock. Nothing is decided by them,
// and they are read without locks.

// seconds is how long ago t was, in seconds with three digits, as the view tells it.
func seconds(now, t time.Time) float64 {
	return float64(now.Sub(t).Milliseconds()) / 1000
}

// ageOf is how long ago t was, if it was at all.
func ageOf(now time.Time, t *time.Time) *float64 {
	if t == nil {
		return nil
	}
	age := seconds(now, *t)
	return &age
}

// latest selects the last rows, in the order in which they came.
func latest(from, time, key string, limit int) string {
	return fmt.Sprintf(`SELECT {columns} FROM (SELECT * FROM %s ORDER BY %s DESC, %s DESC LIMIT %d) x ORDER BY %s, %s`, from, time, key, limit, time, key)
}
