package ops

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/condition"
)

// backlog reports queues in which work piles up. A task type that is paused is not expected to get less.
func (d queueCheck) backlog(r rosterRows) {
	if r.task.Paused {
		return
	}
	d.oldBacklog(r)
	if list := queuesWithTrend(r, BacklogStuck); len(list) > 0 {
		d.add(condition.BacklogStuck, "the oldest item stays the oldest, and the backlog does not become less: %s", firstFive(list))
	}
	if list := queuesWithTrend(r, BacklogGrowing); len(list) > 0 {
		d.add(condition.BacklogGrowing, "more items come than are executed: %s", firstFive(list))
	}
}

// oldBacklog reports queues that an autoscaler cannot rely on: their owners have counted them, and do not any more, or not
// often enough.
func (d queueCheck) oldBacklog(r rosterRows) {
	var old []string
	for _, q := range r.queues {
		if q.BacklogAge != nil && *q.BacklogAge > FreshBacklog.Seconds() && q.Status == "HELD" {
			old = append(old, fmt.Sprintf("%s (%s)", q.QueueID, time.Duration(*q.BacklogAge*float64(time.Second)).Round(time.Second)))
		}
	}
	if len(old) == 0 {
		return
	}
	d.add(condition.BacklogOld, "counts are older than %s, so /scale goes by the other queues, or answers 503 if they are fewer than half: %s", FreshBacklog, firstFive(old))
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
