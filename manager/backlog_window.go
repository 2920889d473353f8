package manager

import (
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// backlogWindow holds the last counts of a queue under one epoch. Its verdict needs no thresholds, as that of LinkedIn's
// Burrow: it only compares each count with the one before. Burrow compares the offsets of a consumer. A queue has none,
// so the oldest item takes their place.
type backlogWindow struct {
	epoch  int64
	counts []backlogCount // at least one
	due    time.Time      // when to count again
}

// backlogCounts is the number of counts of a window.
const backlogCounts = 10

type backlogCount struct {
	at time.Time
	processor.Backlog
	worked processor.Work
}

func (w *backlogWindow) add(c backlogCount) {
	if len(w.counts) == backlogCounts {
		w.counts = append(w.counts[:0], w.counts[1:]...)
	}
	w.counts = append(w.counts, c)
}

func (w *backlogWindow) last() backlogCount { return w.counts[len(w.counts)-1] }

// rate returns by how many items per second the backlog has grown since the first count, or nil after one count.
func (w *backlogWindow) rate() *float64 {
	first, last := w.counts[0], w.last()
	took := last.at.Sub(first.at).Seconds()
	if len(w.counts) < 2 || took <= 0 {
		return nil
	}
	rate := float64(last.Items-first.Items) / took
	return &rate
}

// demand returns how many executors the queue needs to keep up with what arrives: the part of the time in which its calls were
// in flight, and more in proportion if its backlog grows. It is nil after one count.
func (w *backlogWindow) demand() *float64 {
	first, last := w.counts[0], w.last()
	took := last.at.Sub(first.at).Seconds()
	if len(w.counts) < 2 || took <= 0 {
		return nil
	}
	demand := max(0, (last.worked.Time-first.worked.Time).Seconds()/took) // less if the queue was granted once more meanwhile
	if done, more := last.worked.Items-first.worked.Items, last.Items-first.Items; done > 0 && more > 0 {
		demand *= float64(done+more) / float64(done)
	}
	return &demand
}

// trend returns what the counts say together: nothing after fewer than three, unless the queue is empty.
func (w *backlogWindow) trend() string {
	first, last := w.counts[0], w.last()
	switch {
	case last.Items == 0:
		return center.BacklogEmpty
	case len(w.counts) < 3:
		return ""
	case w.fell():
		if last.Items < first.Items {
			return center.BacklogDraining
		}
		return center.BacklogSteady
	case !last.Oldest.IsZero() && last.Oldest.Equal(first.Oldest):
		return center.BacklogStuck
	case last.Items > first.Items:
		return center.BacklogGrowing
	}
	return center.BacklogSteady
}

// fell reports whether a count was less than the one before.
func (w *backlogWindow) fell() bool {
	for i, c := range w.counts[1:] {
		if c.Items < w.counts[i].Items {
			return true
		}
	}
	return false
}
