package manager

import (
	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

// verb is what is to be done with a queue.
type verb int

const (
	grant   verb = iota // start to work it
	drain               // stop selecting and let what is in hand end (H1)
	resume              // go on: the request was withdrawn before a release was sent
	revoke              // ownership is lost: cancel what is in hand
	forget              // nothing is in hand, and it is not ours: let it go
	release             // drained: hand it to who asks for it (H2)
	retake              // a release was sent and has not happened, and nobody asks any more (H3)
	replan              // drained because it shall move and the plan could not be written: now it can (L5)
	remove              // drained because it shall be no more: give it up (N2)
)

func (v verb) String() string {
	return [...]string{"grant", "drain", "resume", "revoke", "forget", "release", "retake", "replan", "remove"}[v]
}

// action is one step towards what the rows say.
type action struct {
	verb verb
	id   string
	row  center.ViewQueue // for grant, release, retake, remove
}

// facts are all that a decision looks at.
type facts struct {
	uuid    string
	rows    []center.ViewQueue // as read last, ordered by id
	held    []processor.Holding
	spent   map[string]int64 // epochs under which a release was sent
	blocked map[string]bool  // queues that shall move while our own transactions hold their rows (L5)
	halted  bool             // paused, or everybody drains: queues are kept, not worked
	giving  bool             // leaving, or this server is paused: everything goes to others
	late    bool             // giving, and no requester is waited for any more
	closed  map[string]bool  // queues that may not be worked now
	inRuns  bool             // mode RUN: queues are worked for runs, not because they are owned
}

// decide compares what the rows say with what the processor does, and returns the steps that lead
// from one to the other. It is pure; steps that wait for something, a drain, say, come when it
// is there: decide is asked again after every pulse, every drain and every step.
func decide(f facts) []action {
	held := make(map[string]processor.Holding, len(f.held))
	for _, h := range f.held {
		held[h.Queue.ID] = h
	}
	var actions []action
	own := make(map[string]bool, len(f.rows))
	for _, row := range f.rows {
		if row.Cur != f.uuid {
			continue // one that we wait for
		}
		own[row.ID] = true
		h, ok := held[row.ID]
		switch {
		case !ok:
			actions = append(actions, f.begin(row)...)
		case h.Queue.Epoch != row.Epoch:
			actions = append(actions, lose(h)...) // it was ours, went away and came back
		default:
			actions = append(actions, f.keep(row, h)...)
		}
	}
	for _, h := range f.held {
		if !own[h.Queue.ID] {
			actions = append(actions, lose(h)...)
		}
	}
	return actions
}

// begin: a queue of ours that the processor does not have.
func (f facts) begin(row center.ViewQueue) []action {
	spent := f.spent[row.ID] == row.Epoch
	switch {
	case row.Removing:
		return []action{{remove, row.ID, row}}
	case row.Req != "":
		return []action{{release, row.ID, row}} // nothing of it is in hand, so that it is drained
	case f.giving, f.halted, f.blocked[row.ID]:
		return nil // Leave hands it over; or it waits
	case spent:
		return []action{{retake, row.ID, row}}
	case f.closed[row.ID], f.inRuns:
		return nil
	}
	return []action{{grant, row.ID, row}}
}

// keep: a queue of ours that the processor has, under the right epoch.
func (f facts) keep(row center.ViewQueue, h processor.Holding) []action {
	// A requester that has not learned yet that it is one would let the queue lie for a heartbeat.
	asked := row.Req != "" && row.Known
	given := f.giving && (row.Req == "" || f.late)
	wanted := asked || given || row.Removing || f.halted || f.closed[row.ID] || f.blocked[row.ID]
	switch {
	case wanted && !h.Draining:
		return []action{{drain, row.ID, row}}
	case row.Removing && h.Drained:
		return []action{{remove, row.ID, row}}
	case row.Req != "" && h.Drained:
		return []action{{release, row.ID, row}}
	case f.blocked[row.ID] && h.Drained:
		return []action{{replan, row.ID, row}}
	case !wanted && h.Draining:
		return []action{{resume, row.ID, row}}
	}
	return nil
}

// lose: a queue that the processor has and we do not own, not under that epoch.
func lose(h processor.Holding) []action {
	id := h.Queue.ID
	if h.Drained {
		return []action{{verb: forget, id: id}}
	}
	return []action{{verb: revoke, id: id}}
}
