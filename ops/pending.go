package ops

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/sqldb"
)

// Pending is what the servers of a task type have still to do after a change of servers, queues or settings.
type Pending struct {
	TaskType string `json:"task_type"`
	OwnSign  string `json:"own_sign"`

	Queues   int64 `json:"queue_total"`
	Moves    int   `json:"moves"`    // queues that go to another server
	Resizes  int   `json:"resizes"`  // queues that are to be split or merged
	Removals int   `json:"removals"` // queues that are to be deleted
	// RequestedTotal is the number of queues that the task type gets when all its servers have drained; nil: it keeps
	// its number, or its queues are split or merged one by one.
	RequestedTotal *int64 `json:"requested_total"`
	Reserved       int    `json:"reserved"` // queues that wait for their worker, which restarts
	Unowned        int    `json:"unowned"`  // queues that no server may own now
	// WaitsFor says why not: the rules that no server meets, in words.
	WaitsFor []string `json:"waits_for"`
}

// Left counts what is still to be done. It is 0 if nothing is.
func (p Pending) Left() int {
	left := p.Moves + p.Resizes + p.Removals + p.Reserved + p.Unowned
	if p.RequestedTotal != nil {
		left++
	}
	return left
}

// String says what is left to do.
func (p Pending) String() string {
	var parts []string
	add := func(n int, rest string) {
		if n > 0 {
			parts = append(parts, human.Count(n, "queue", "queues")+" to "+rest)
		}
	}
	add(p.Resizes, "split or merge")
	add(p.Moves, "move")
	add(p.Removals, "remove")
	if p.RequestedTotal != nil {
		parts = append(parts, fmt.Sprintf("%d queues instead of %d when all workers have drained",
			*p.RequestedTotal, p.Queues))
	}
	if p.Reserved > 0 {
		parts = append(parts, human.Count(p.Reserved, "queue", "queues")+" reserved for a restarting worker")
	}
	if p.Unowned > 0 {
		parts = append(parts, human.Count(p.Unowned, "queue", "queues")+" without an owner: "+
			strings.Join(p.WaitsFor, "; "))
	}
	if len(parts) == 0 {
		return "nothing is left to do"
	}
	return "left to do: " + strings.Join(parts, ", ")
}

// Pending returns what the servers of a task type have still to do: the moves of Plan, the requested splits, merges and
// removals, and the queues that have no owner. Moves that only even the load do not count before they are requested,
// because new ones may always come. It returns ErrUnknownTask for a task type that does not exist. It sends the
// statements of Plan and writes nothing.
func (q *Queues) Pending(ctx context.Context, taskType string) (Pending, error) {
	in, err := q.readPlanInput(ctx, taskType, false)
	if err != nil {
		return Pending{}, sqldb.Wrap(err, "read what is left to do for %s$%s", taskType, q.c.ownSign)
	}
	p := Pending{
		TaskType: taskType, OwnSign: q.c.ownSign, Queues: in.task.QueueTotal, RequestedTotal: in.task.RequestedTotal,
		Resizes: len(in.task.Resizing), Removals: len(in.task.Removing),
	}
	preview := in.plan()
	p.Moves, p.Unowned = preview.Moved()-preview.LoadMoves(), len(preview.Waiting)
	p.WaitsFor = append([]string{}, slices.Compact(slices.Sorted(maps.Values(preview.Waiting)))...) // [] in JSON
	moves := map[string]bool{}
	for _, m := range preview.Moves {
		moves[m.QueueID] = true
	}
	for _, queue := range in.queues {
		if _, waits := preview.Waiting[queue.ID]; queue.Owner == "" && !waits && !moves[queue.ID] && !queue.Removing {
			p.Reserved++
		}
	}
	return p, nil
}
