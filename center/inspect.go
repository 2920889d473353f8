package center

import (
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/plan"
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

// sortQueues sorts naturally, queue 2 before queue 10.
func sortQueues(queues []QueueRecord) {
	slices.SortStableFunc(queues, func(a, b QueueRecord) int {
		if c := strings.Compare(a.TaskType, b.TaskType); c != 0 {
			return c
		}
		return plan.CompareIDs(a.QueueID, b.QueueID)
	})
}
