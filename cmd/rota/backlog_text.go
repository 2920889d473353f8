package main

import (
	"strings"

	"github.com/dutyrota/rota/ops"
)

// backlogOld is the age in seconds from which a count is shown with its age. An owner counts about every 10 s, or less
// often if a count takes long.
const backlogOld = 300

// queueBacklogText returns what a queue has left, such as "1200 DRAINING 40s".
func queueBacklogText(q ops.QueueRecord) string {
	trend := ""
	if q.BacklogTrend != nil && *q.BacklogTrend != ops.BacklogEmpty {
		trend = *q.BacklogTrend
	}
	return backlogText(q.BacklogItems, "", trend, q.BacklogAge, q.BacklogETA())
}

// taskBacklogText returns what all queues of a task type have left, such as "1200+" if not all of them were counted.
func taskBacklogText(t ops.TaskRecord) string {
	more := ""
	if t.BacklogPartial() {
		more = "+"
	}
	return backlogText(t.BacklogItems, more, "", t.BacklogAge, t.BacklogETA())
}

// backlogText returns the number of items, their trend, and how long they need at their present rate, or how old the
// figure is if it is old.
func backlogText(items *int64, more, trend string, age, eta *float64) string {
	if items == nil {
		return "-"
	}
	words := []string{number(*items) + more}
	if trend != "" {
		words = append(words, trend)
	}
	switch {
	case age != nil && *age > backlogOld:
		words = append(words, "("+ageText(age)+" ago)")
	case eta != nil && *items > 0:
		words = append(words, ageText(eta))
	}
	return strings.Join(words, " ")
}
