package manager

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// This file has the loss of history that the database had acknowledged (H7, H8). The database falls back to a state
// that it had before, and the processes keep what they remember. What a memory proves is the real code, and so is what
// stays of it. An operator acknowledges each loss at once.

// modelRaise is by how much the epochs rise. It differs between the two branches of the history, in place of a random
// raise.
func (w *world) modelRaise() int64 {
	if w.restored {
		return 2000
	}
	return 1000
}

// copied returns a copy that no step changes.
func (d database) copied() database {
	d.servers, d.rows = slices.Clone(d.servers), slices.Clone(d.rows)
	return d
}

// backUp keeps the present state of the database, to which it may fall back later.
func (w *world) backUp() {
	backup := w.db.copied()
	w.backup = &backup
}

// mayLose makes a scene that has begun one in which the database may fall back to the present state.
func (w *world) mayLose() {
	w.loses = true
	for i := range w.procs {
		if p := &w.procs[i]; p.state != away {
			p.memory = roster.NewMemory()
			p.see(w)
		}
	}
	w.backUp()
}

// restore makes the database fall back to the backup. Open transactions end with their connections, and what was given
// up does not arrive any more. From now on only the fence is promised, until the epochs have risen.
func (w *world) restore() {
	for i := range w.procs {
		p := &w.procs[i]
		for n, e := range slices.Backward(p.calls) {
			if e.locked {
				w.finish(p, n)
			}
		}
	}
	step, rows := w.db.step, w.db.rows
	w.db, w.late = w.backup.copied(), nil
	w.db.step, w.restored, w.unnoticed = step, true, true
	for i := range w.db.rows {
		q := &w.db.rows[i]
		q.top, q.edited = max(q.top, rows[i].top), math.MaxInt64
	}
	if w.db.halted {
		w.db.haltedAt = w.now
	}
	for i := range w.procs {
		w.procs[i].noteLoss(w)
	}
}

// noteLoss notes what the process knows and the database has lost. It shares no code with the memory.
func (p *process) noteLoss(w *world) {
	if p.registered && w.remains(p.uuid) < p.token {
		p.lost = "heartbeats of " + p.uuid
	}
	for _, h := range p.queues {
		if q := w.db.row(h.id); !q.gone && q.epoch < h.epoch {
			p.lost = fmt.Sprintf("epoch %d of queue %s", h.epoch, h.id)
		}
	}
}

// remains returns the token that the tables have of a session, or -1.
func (w *world) remains(uuid string) int {
	if s := w.db.server(uuid); s != nil {
		return s.token
	}
	if token, there := w.db.past[uuid]; there {
		return token
	}
	return -1
}

// toHistory notes that a server has left or was expired. Its row is deleted in the same transaction.
func (d *database) toHistory(s serverRow) {
	d.past = maps.Clone(d.past)
	if d.past == nil {
		d.past = map[string]int{}
	}
	d.past[s.uuid] = s.token
}

// historyRows are what the tables have of all that a process may remember.
func (w *world) historyRows() roster.Rows {
	r := roster.Rows{Queues: map[string]roster.Ownership{}, Sessions: map[string]roster.Remains{}}
	for _, q := range w.db.rows {
		if !q.gone {
			r.Queues[q.id] = roster.Ownership{Owner: q.cur, Epoch: q.epoch}
		}
	}
	for uuid, token := range w.db.past {
		r.Sessions[uuid] = roster.Remains{Token: strconv.Itoa(token)}
	}
	for _, s := range w.db.servers {
		r.Sessions[s.uuid] = roster.Remains{Token: strconv.Itoa(s.token), Heartbeat: s.heartbeat, Registered: true}
	}
	return r
}

// checkHistory is CheckHistory, and what the job does with the former sessions that it finds.
func (w *world) checkHistory(c *call) {
	rows := w.historyRows()
	proofs := c.memory.Contradictions(rows, "")
	c.check = roster.HistoryCheck{Lost: len(proofs) > 0, Rows: rows.Queues}
	for _, p := range proofs {
		if p.Epoch > w.db.floor && !c.check.Raised {
			high := max(w.db.floor, c.memory.High())
			for _, q := range w.db.rows {
				high = max(high, q.epoch)
			}
			w.db.floor, c.check.Raised = high+w.modelRaise(), true
		}
	}
	for _, p := range proofs {
		if s := w.db.server(p.UUID); s != nil {
			w.db.toHistory(*s)
			w.db.servers = slices.DeleteFunc(w.db.servers, func(s serverRow) bool { return s.uuid == p.UUID })
			w.db.membership++
		}
	}
}

// raiseEpochs is that of internal/roster.
func (w *world) raiseEpochs() (held []string) {
	if by := w.db.floor - w.db.adopted; by > 0 {
		w.db.adopted, w.unnoticed = w.db.floor, w.unnoticed && w.db.floor == w.backup.floor
		w.db.plan, w.db.membership = w.db.plan+by, w.db.membership+by
		for i := range w.db.rows {
			q := &w.db.rows[i]
			if q.edited = w.db.adopted; q.gone {
				q.epoch = max(q.epoch, w.db.adopted)
			}
		}
	}
	raised := false
	for i := range w.db.rows {
		q := &w.db.rows[i]
		switch {
		case q.gone || q.epoch > w.db.adopted || w.db.adopted == 0 || w.without.raise:
		case w.locked(q.id):
			held = append(held, q.id)
		default:
			w.own(q, q.cur, w.db.adopted+1, "raised")
			w.stamp(q)
			raised = true
		}
	}
	if raised || len(held) > 0 {
		w.db.plan++
	}
	return held
}

// inLost reports whether a lost history may have used the epoch. Nothing is promised of it until the epochs have risen.
func (w *world) inLost(epoch int64) bool {
	return w.unnoticed || w.db.adopted > 0 && epoch <= w.db.adopted
}

// low reports whether a plan is to raise the epoch of a queue before it moves.
func (w *world) low(epoch int64) bool {
	return w.db.adopted > 0 && epoch <= w.db.adopted
}

// see is that of the historian.
func (p *process) see(w *world) {
	if !w.loses {
		return
	}
	if p.memory.Doubts(p.view, p.uuid) {
		p.agenda.add(longAgo, checkHistory)
	}
	p.remember(func(m *roster.Memory) { m.Note(p.view, p.uuid) })
}

// followHistory is follow of the historian.
func (p *process) followHistory(w *world, reply *roster.HeartbeatReply) {
	if w.loses && (reply.MembershipVersion < p.membership || reply.PlanVersion < p.plan) {
		p.agenda.add(longAgo, checkHistory)
	}
	p.membership, p.plan = reply.MembershipVersion, reply.PlanVersion
}

// heard notes what the database has acknowledged of a session.
func (p *process) heard(at time.Time, floor int64) { p.heardAt, p.floor = at, max(p.floor, floor) }

// remember changes a copy of the memory, because other states share it.
func (p *process) remember(change func(*roster.Memory)) {
	if p.memory == nil {
		return
	}
	m := p.memory.Snapshot()
	change(&m)
	p.memory = &m
}

// endSession remembers the heartbeats of a session whose row is gone.
func (p *process) endSession() {
	b := roster.Beats{UUID: p.uuid}
	for token := range p.token + 1 {
		b.Add(strconv.Itoa(token), p.heardAt, p.floor)
	}
	p.remember(func(m *roster.Memory) { m.EndSession(b) })
}

// historyChecked is what the session does with the result of CheckHistory.
func (w *world) historyChecked(p *process, c call, err bool) (more bool) {
	if err {
		p.agenda.add(longAgo, checkHistory)
		return false
	}
	p.remember(func(m *roster.Memory) { m.Settle(*c.memory, c.check) })
	if c.check.Lost {
		p.agenda.add(longAgo, rebalance)
		p.asked = &call{kind: callAssign}
	}
	return c.check.Lost
}

// missed says which loss a process has not noticed.
func (w *world) missed() string {
	for i := range w.procs {
		if p := &w.procs[i]; w.unnoticed && p.lost != "" {
			return fmt.Sprintf("%s remembers %s, which is lost, and the epochs have not risen", p.name, p.lost)
		}
	}
	return ""
}
