package manager

import (
	"context"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// historian notices that the database has lost history that it had acknowledged (H7). All sessions of a server share
// its memory, because a loss mostly ends the session.
type historian struct {
	*base
	memory *roster.Memory

	reads            int       // of the view, up to the last one that was compared
	checkedAt        time.Time // when the last check began
	membership, plan int64     // the highest versions of the replies
}

func historyPart(b *base, memory *roster.Memory) part {
	h := &historian{base: b, memory: memory}
	if !memory.Empty() {
		b.agenda.add(time.Now(), checkHistory) // the last session may have ended because history was lost
	}
	return part{
		follow: h.follow, update: func(context.Context) { h.see(h.view) }, yielded: memory.Released,
		ahead: func(a roster.AheadError) {
			memory.Saw(a.Queue.ID, a.Found)
			h.checkSoon()
		},
		jobs: map[duty]func() *job{checkHistory: h.check},
	}
}

// see compares the rows that the server has read with the memory, and remembers them.
func (h *historian) see(v *ownView) {
	if h.reads == v.reads {
		return
	}
	h.reads = v.reads
	if h.memory.Doubts(v.View, h.uuid) {
		h.checkSoon()
	}
	h.memory.Note(v.View, h.uuid)
}

// follow compares the versions of a heartbeat's reply, which only rise.
func (h *historian) follow(p heartbeatReply) {
	if p.MembershipVersion < h.membership || p.History.PlanVersion < h.plan {
		h.checkSoon()
	}
	h.membership, h.plan = p.MembershipVersion, p.History.PlanVersion
}

// checkSoon makes a check due, once per heartbeat at most.
func (h *historian) checkSoon() {
	at := time.Now()
	if next := h.checkedAt.Add(h.settings.HeartbeatInterval); next.After(at) {
		at = next
	}
	h.agenda.add(at, checkHistory)
}

// check returns the job that compares the memory with the rows, or nil if there is nothing to compare. If history was
// lost, the job raises the epochs, unless another server has done so, and takes the former sessions of this server out
// of the roster, whose rows no process renews.
func (h *historian) check() *job {
	if h.memory.Empty() {
		return nil
	}
	h.checkedAt = time.Now()
	known := h.memory.Snapshot()
	var found roster.HistoryCheck
	var loss roster.Loss
	var open bool
	return &job{
		name: "check the history",
		call: func(ctx context.Context) (err error) {
			found, err = h.ownPlanner().CheckHistory(ctx, known)
			if err != nil || !found.Lost {
				return err
			}
			if found.Raised { // the other servers find the lock row busy with each other's sessions
				if _, err := h.ownPlanner().Rebalance(ctx, roster.RebalanceOptions{}); err != nil {
					return err
				}
			}
			loss, open, err = h.roster.Roster().Loss(ctx)
			return err
		},
		then: func(ctx context.Context, err error) (more bool) {
			if err != nil {
				h.agenda.add(time.Now().Add(h.settings.HeartbeatInterval), checkHistory)
				return false
			}
			h.memory.Settle(known, found)
			if found.Waiting {
				h.agenda.add(time.Now().Add(roster.AuditInterval), checkHistory)
			}
			if !found.Lost {
				return false
			}
			h.log.LogAttrs(ctx, slog.LevelError, "the database has lost history that it had acknowledged; "+
				ops.New(h.roster).CommandLines(outcomeOf(found)))
			if open {
				h.alerter.report(roster.LossCondition(loss))
			}
			h.agenda.add(time.Now(), rebalance)
			return true
		},
	}
}

// outcomeOf says what a check has done about a loss.
func outcomeOf(found roster.HistoryCheck) string {
	switch {
	case found.Raised:
		return "the epochs of all queues rise"
	case found.Waiting:
		return "the epochs rise when an operator has acknowledged the last loss: rota doctor ack"
	}
	return "another worker has found it, too"
}
