package manager

import (
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/processor"
)

// verb is what is to be done with a queue.
type verb int

const (
	grant   verb = iota // start to work it
	drain               // stop to select and let what is in flight end (H1)
	resume              // work on: the request was withdrawn before a release was sent
	revoke              // the server lost the queue: cancel what is in flight
	forget              // nothing is in flight, and the queue is not the server's: drop it
	release             // drained: hand it over to its requester (H2)
	retake              // a release was sent and did not happen, and no server requests the queue any more: take it back (H3)
	replan              // drained because its request could not be written: now it can (L5)
	remove              // drained because it is to be removed: give it up (N2)
)

func (v verb) String() string {
	return [...]string{"grant", "drain", "resume", "revoke", "forget", "release", "retake", "replan", "remove"}[v]
}

// action is one step towards what the rows say.
type action struct {
	verb verb
	id   string
	row  roster.ViewQueue // for grant, release, retake, remove
}

// facts are all that a decision depends on.
type facts struct {
	uuid        string
	rows        []roster.ViewQueue     // as they were last read, ordered by id
	holdings    []processor.QueueState // the queues that the processor has
	retired     map[string]int64       // epochs under which a release was sent
	blocked     map[string]bool        // queues that shall move while our own transactions hold their rows (L5)
	closed      map[string]bool        // queues that must not be worked now
	halted      bool                   // queues are owned, but not worked
	handingOver bool                   // the server leaves, or is paused: all queues go to other servers
	overdue     bool                   // the same, and requesters are not waited for any more
	inRuns      bool                   // mode RUN: queues are worked for runs, not because they are owned
}

// decide compares the rows with the queues that the processor has, and returns the steps from one to the other. It is
// pure. It does not wait: decide is asked again after every heartbeat, every drain and every step.
func decide(f facts) []action {
	holdings := make(map[string]processor.QueueState, len(f.holdings))
	for _, h := range f.holdings {
		holdings[h.Queue.ID] = h
	}
	var actions []action
	own := make(map[string]bool, len(f.rows))
	for _, row := range f.rows {
		if row.Owner != f.uuid {
			continue // the server waits for it
		}
		own[row.ID] = true
		h, ok := holdings[row.ID]
		switch {
		case !ok:
			actions = append(actions, f.begin(row)...)
		case h.Queue.Epoch != row.Epoch:
			actions = append(actions, lose(h)...) // it was the server's, went away and came back
		default:
			actions = append(actions, f.keep(row, h)...)
		}
	}
	for _, h := range f.holdings {
		if !own[h.Queue.ID] {
			actions = append(actions, lose(h)...)
		}
	}
	return actions
}

// begin decides about an own queue that the processor does not have.
func (f facts) begin(row roster.ViewQueue) []action {
	retired := f.retired[row.ID] == row.Epoch
	switch {
	case row.Removing:
		return []action{{remove, row.ID, row}}
	case row.Requester != "":
		return []action{{release, row.ID, row}} // nothing of it is in flight, so it is drained
	case f.handingOver, f.halted, f.blocked[row.ID]:
		return nil // Leave hands it over, or it waits
	case retired:
		return []action{{retake, row.ID, row}}
	case f.closed[row.ID], f.inRuns:
		return nil
	}
	return []action{{grant, row.ID, row}}
}

// keep decides about an own queue that the processor has under the right epoch.
func (f facts) keep(row roster.ViewQueue, h processor.QueueState) []action {
	// A requester that does not know yet that it is one would leave the queue idle for a heartbeat.
	requested := row.Requester != "" && row.RequesterInformed
	handedOver := f.handingOver && (row.Requester == "" || f.overdue)
	mustStop := requested || handedOver || row.Removing || f.halted || f.closed[row.ID] || f.blocked[row.ID]
	switch {
	case mustStop && !h.Draining:
		return []action{{drain, row.ID, row}}
	case row.Removing && h.Drained:
		return []action{{remove, row.ID, row}}
	case row.Requester != "" && h.Drained:
		return []action{{release, row.ID, row}}
	case f.blocked[row.ID] && h.Drained:
		return []action{{replan, row.ID, row}}
	case !mustStop && h.Draining:
		return []action{{resume, row.ID, row}}
	}
	return nil
}

// lose decides about a queue that the processor has and the server does not own under that epoch.
func lose(h processor.QueueState) []action {
	id := h.Queue.ID
	if h.Drained {
		return []action{{verb: forget, id: id}}
	}
	return []action{{verb: revoke, id: id}}
}
