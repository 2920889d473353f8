package roster

import (
	"slices"

	"github.com/dutyrota/rota/internal/plan"
)

// events returns the rows of schedule_event for the changes.
func (p rebalancing) events(changes []plan.Change) []Event {
	var events []Event
	for _, c := range changes {
		e := Event{queue: c.QueueID, from: c.OldOwner, to: c.Owner, epoch: c.OldEpoch + 1, Actor: p.actor}
		switch {
		case !c.ChangesOwner() && c.Requester == "":
			continue // the change withdraws a request
		case !c.ChangesOwner():
			e.Kind, e.to, e.epoch, e.Reason = EventRequested, c.Requester, c.OldEpoch, c.Reason
		case c.OldOwner == p.leaving && p.leaving != "" && slices.Contains(p.forced, c.QueueID):
			e.Kind, e.Reason = EventForced, p.reason
		case c.OldOwner == p.leaving && p.leaving != "" && c.Owner != "":
			e.Kind, e.Reason = EventReleased, "the owner left"
		case c.Owner == "":
			e.Kind, e.Reason = EventUnassigned, c.Reason
		case c.OldOwner == "":
			e.Kind = EventGranted
		default:
			e.Kind = EventTakenOver
		}
		events = append(events, e)
		if c.ChangesOwner() && c.Requester != "" {
			events = append(events, Event{Kind: EventRequested, queue: c.QueueID, from: c.Owner, to: c.Requester, epoch: c.OldEpoch + 1, Actor: p.actor, Reason: c.Reason})
		}
	}
	return events
}
