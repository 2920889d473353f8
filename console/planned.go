package console

import (
	"slices"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/ops"
)

// planned is what a change of servers would move in a task type.
type planned struct {
	TaskType string
	Moved    int // queues that go to another server
	Moves    []plannedMove
	Shares   []plannedShare
}

// plannedMove is the queues that go from one server to another.
type plannedMove struct {
	From, To string // uuids; empty: nobody
	Queues   []string
	Reason   string
}

// Shown returns the first of the queues.
func (m plannedMove) Shown() string { return human.First(m.Queues, 20) }

// plannedShare is how many queues a server owns before and after.
type plannedShare struct {
	ops.Share
	most int
}

// Before and After are the shares in percent of the greatest one.
func (s plannedShare) Before() float64 { return 100 * float64(s.Queues) / float64(max(1, s.most)) }

// After is as Before.
func (s plannedShare) After() float64 { return 100 * float64(s.Next) / float64(max(1, s.most)) }

// Moved counts over all task types.
func (c *change) Moved() (n int) {
	for _, p := range c.Plans {
		n += p.Moved
	}
	return n
}

// waitingQueues returns how many queues have no live owner.
func waitingQueues(p ops.Preview) (n int) {
	for _, s := range p.Shares {
		if s.State == ops.StateOverdue {
			n += s.Queues
		}
	}
	return n
}

// plannedOf groups the moves of a preview by servers.
func plannedOf(taskType string, preview ops.Preview) planned {
	p := planned{TaskType: taskType, Moved: preview.Moved()}
	for _, m := range preview.Moves {
		from, to := valueOf(m.CurServer), valueOf(m.NextServer)
		at := slices.IndexFunc(p.Moves,
			func(g plannedMove) bool { return g.From == from && g.To == to && g.Reason == m.Reason })
		if at < 0 {
			at = len(p.Moves)
			p.Moves = append(p.Moves, plannedMove{From: from, To: to, Reason: m.Reason})
		}
		p.Moves[at].Queues = append(p.Moves[at].Queues, m.QueueID)
	}
	most := 0
	for _, s := range preview.Shares {
		most = max(most, s.Queues, s.Next)
	}
	for _, s := range preview.Shares {
		if s.Queues != s.Next {
			p.Shares = append(p.Shares, plannedShare{s, most})
		}
	}
	return p
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
