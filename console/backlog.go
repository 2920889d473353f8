package console

import (
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// backlog is how much work a queue or a task type has left, as it was last counted.
type backlog struct {
	Left    string     // empty: nobody counts
	Trend   mark       // without a text: nothing that a reader should know
	ETA     string     // until nothing is left; empty: it does not become less
	Oldest  *time.Time // of the items
	Counted *time.Time
}

// backlogOfTask returns the backlog of all queues together.
func backlogOfTask(t ops.TaskRecord, read time.Time) backlog {
	b := newBacklog(t.BacklogItems, t.BacklogOldest, t.BacklogAge, t.BacklogETA(), read)
	if t.BacklogPartial() {
		b.Left += "+" // queues that nobody has counted are not empty
	}
	return b
}

// backlogOfQueue returns the backlog of a queue.
func backlogOfQueue(q ops.QueueRecord, read time.Time) backlog {
	b := newBacklog(q.BacklogItems, q.BacklogOldest, q.BacklogAge, q.BacklogETA(), read)
	if q.BacklogTrend != nil && b.Left != "" {
		b.Trend = trendMark(*q.BacklogTrend)
	}
	return b
}

func newBacklog(items *int64, oldest, counted, eta *float64, read time.Time) backlog {
	if items == nil {
		return backlog{}
	}
	b := backlog{Left: "0", Oldest: secondsBefore(read, oldest), Counted: secondsBefore(read, counted)}
	if *items != 0 {
		b.Left = number(*items)
	}
	if eta != nil {
		b.ETA = human.Age(*eta)
	}
	return b
}

// trendMark returns the mark of a trend: only work that piles up has a colour.
func trendMark(trend string) mark {
	text := strings.ToLower(trend)
	switch trend {
	case ops.BacklogStuck:
		return mark{"bad", text}
	case ops.BacklogGrowing:
		return mark{"warn", text}
	case ops.BacklogEmpty:
		return mark{}
	}
	return mark{"ok", text}
}

// secondsBefore returns the moment that was some seconds before a read. The database tells the age: the moment is
// rounded, so that it does not change with each read.
func secondsBefore(read time.Time, seconds *float64) *time.Time {
	if seconds == nil {
		return nil
	}
	at := read.Add(-time.Duration(*seconds * float64(time.Second))).Round(10 * time.Second)
	return &at
}
