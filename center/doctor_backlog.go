package center

import (
	"fmt"
	"time"
)

// backlog reports queues in which work piles up. A task type that is paused is not expected to get less.
func (d queueCheck) backlog(r rosterRows) {
	if r.task.Paused {
		return
	}
	if list := queuesWithTrend(r, BacklogStuck); len(list) > 0 {
		d.problem("backlog", "find out why Select does not return the oldest item, or why it fails: rota item list "+d.task,
			"the oldest item stays the oldest, and the backlog does not become less: %s", firstFive(list))
	}
	if list := queuesWithTrend(r, BacklogGrowing); len(list) > 0 {
		d.note("backlog", "more workers, threads or queues execute more at a time; rota queue list "+d.task+" shows the rates",
			"more items come than are executed: %s", firstFive(list))
	}
}

// queuesWithTrend returns the queues whose owner has seen a trend, with what they have left. The counts of a queue that
// no live server owns are too old to tell.
func queuesWithTrend(r rosterRows, trend string) (list []string) {
	for _, q := range r.queues {
		if q.BacklogTrend == nil || *q.BacklogTrend != trend || q.BacklogItems == nil || q.Status != "HELD" {
			continue
		}
		text := fmt.Sprintf("%s (%d left", q.QueueID, *q.BacklogItems)
		if q.BacklogOldest != nil {
			text += fmt.Sprintf(", the oldest %s old", time.Duration(*q.BacklogOldest*float64(time.Second)).Round(time.Second))
		}
		list = append(list, text+")")
	}
	return list
}
