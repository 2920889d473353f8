package processor

import (
	"context"
	"errors"
	"time"
)

// Backlogger is an optional capability of a TaskDealer: it tells how much work a queue has left. Without it, Rota does
// not know.
type Backlogger interface {
	// Backlog counts the items that selects of s.Queue would return, now or later, were s.Limit not there. s is a
	// Selection without a limit. An estimate will do. The owner of the queue calls it from one goroutine, beside selects
	// and batches, in mode CONTINUOUS. The calls of a task type, of all its workers together, take 1 % of the time: if
	// one worker owns all queues, the call after one of 50 ms begins 5 s later. Where that would leave a queue uncounted for
	// more than about 30 s, they take more, up to a tenth of the time of each worker. The first call for a queue that is new
	// to a worker waits for no other. ctx expires after 10 s, and is cancelled when the process stops. After ErrNoBacklog the
	// process does not call it again.
	Backlog(ctx context.Context, s Selection) (Backlog, error)
}

// Backlog is the work that a queue has left.
type Backlog struct {
	Items  int64
	Oldest time.Time // when the oldest of them became due, by the database's clock; zero if there is none or it is unknown
}

// ErrNoBacklog is what Backlog returns if the dealer knows no backlog after all, for instance because it wraps a dealer
// that is no Backlogger.
var ErrNoBacklog = errors.New("the dealer counts no backlog")

// Selections returns a Selection without a limit for each queue that is held and not draining, by the index of the
// queue. Queues with a Run are left out.
func (p *Processor) Selections() []Selection {
	p.scheduler.mu.Lock()
	total, parameter := map[string]int{}, p.scheduler.settings.Parameter
	for id, g := range p.scheduler.grants {
		total[id] = g.total
	}
	p.scheduler.mu.Unlock()
	var list []Selection
	for _, q := range p.Queues() {
		if n, ok := total[q.Queue.ID]; ok && !q.Draining && q.Queue.Run == nil {
			list = append(list, Selection{TaskType: p.env.TaskType, OwnSign: p.env.OwnSign, Parameter: parameter, Queue: q.Queue, Total: n})
		}
	}
	return list
}
