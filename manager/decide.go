package manager

import (
	"slices"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/internal/roster"
)

// verb says what to do with a queue.
type verb int

const (
	grant   verb = iota // start to work it
	drain               // stop selecting, and let what is in flight end (H1)
	resume              // work on: the request was withdrawn before a release was sent
	revoke              // the server lost the queue: cancel what is in flight
	forget              // the server does not own it, and nothing is in flight: drop it
	release             // it is drained: hand it over to its requester (H2)
	retake              // a release was sent without effect, and no server requests the queue: take it back (H3)
	replan              // it is drained because its request could not be written: now it can (L5)
	giveUp              // it is drained because it is to be changed: give it up (N1, N2, N3)
)

func (v verb) String() string {
	return [...]string{"grant", "drain", "resume", "revoke", "forget", "release", "retake", "replan", "give up"}[v]
}

// action is one step towards what the rows say.
type action struct {
	verb verb
	id   string
	row  roster.ViewQueue // for grant, release, retake, giveUp; for revoke, its epoch
}

// facts are the input of decide.
type facts struct {
	uuid      string
	rows      []roster.ViewQueue  // as they were last read, ordered by id
	holdings  []engine.QueueState // the queues that the processor has
	retired   map[string]int64    // epochs under which a release was sent
	blocked   map[string]bool     // queues that must move while the server's own transactions hold their rows (L5)
	closed    map[string]bool     // queues that must not be worked now
	halted    bool                // the server owns queues and does not work them
	handsOver handOverStage       // how far the server is that leaves or is paused
	inRuns    bool                // mode RUN: queues are worked for runs, not because they are owned
}

// handOverStage says how far a server is that hands all its queues over (H4).
type handOverStage int

const (
	noHandOver    handOverStage = iota // it hands over what is requested
	notAnnounced                       // the roster does not know it yet: requesters appear soon
	awaitsNews                         // it works a requested queue until the requester knows of its request
	waitsNoLonger                      // it drains all queues
)

// decide compares the rows with the queues that the processor has, and returns the steps that bring the processor in
// line with the rows. It is pure, and it never waits: the reconciler calls it again after every heartbeat, drain and
// step.
func decide(f facts) []action {
	holdings := make(map[string]engine.QueueState, len(f.holdings))
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
			actions = append(actions, lose(h)...) // the server lost the queue and owns it again, under another epoch
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
	case row.Changing:
		return []action{{giveUp, row.ID, row}}
	case row.Requester != "":
		return []action{{release, row.ID, row}} // nothing of it is in flight, so it is drained
	case f.handsOver != noHandOver, f.halted, f.blocked[row.ID]:
		return nil // Leave hands it over, or it waits for the end of the pause or for a plan
	case retired:
		return []action{{retake, row.ID, row}}
	case f.closed[row.ID], f.inRuns:
		return nil
	}
	return []action{{grant, row.ID, row}}
}

// keep decides about an own queue that the processor has under the right epoch.
func (f facts) keep(row roster.ViewQueue, h engine.QueueState) []action {
	// Without a requester that knows of its request, the queue would be idle for a heartbeat.
	requested := row.Requester != "" && row.RequesterInformed
	handedOver := f.handsOver == waitsNoLonger || f.handsOver == awaitsNews && row.Requester == ""
	mustStop := requested || handedOver || row.Changing || f.halted || f.closed[row.ID] || f.blocked[row.ID]
	switch {
	case mustStop && !h.Draining:
		return []action{{drain, row.ID, row}}
	case row.Changing && h.Drained:
		return []action{{giveUp, row.ID, row}}
	case row.Requester != "" && h.Drained:
		return []action{{release, row.ID, row}}
	case f.blocked[row.ID] && h.Drained:
		return []action{{replan, row.ID, row}}
	case !mustStop && h.Draining:
		return []action{{resume, row.ID, row}}
	}
	return nil
}

// stopping returns the steps that stop work. They are right even if the rows have changed since they were read.
func stopping(actions []action) []action {
	return slices.DeleteFunc(actions, func(a action) bool { return a.verb != drain && a.verb != revoke })
}

// lose decides about a queue that the processor has and the server does not own under that epoch.
func lose(h engine.QueueState) []action {
	id := h.Queue.ID
	if h.Drained {
		return []action{{verb: forget, id: id}}
	}
	return []action{{revoke, id, roster.ViewQueue{ID: id, Epoch: h.Queue.Epoch}}}
}
