package manager

import (
	"fmt"
	"time"

	"github.com/dutyrota/rota/center"
)

// call is a statement or transaction under way: sent, applied, and then its reply is under way. Its
// sender may give it up at any time; whether it is applied is then open, and when.
type call struct {
	kind    callKind
	proc    int
	life    int
	uuid    string
	sent    time.Time // by the sender's clock
	applied bool

	within   time.Duration // assign
	patience time.Duration
	seen     time.Time
	handover []center.Handover
	stale    bool   // release: the view was to be read again before
	queue    string // retake, remove
	epoch    int64
	token    int // of a beat; the one before is the row's

	done     bool // the reply
	blocked  []string
	released []string
	at       time.Time
	since    time.Time // register's reply, beat's argument
	pulse    *center.Pulse
	view     center.View
}

type callKind int

const (
	callRegister callKind = iota
	callBeat
	callAssign
	callAudit
	callView
	callRetake
	callRelease
	callRemove
	callAnnounce
	callLeave
)

func (k callKind) String() string {
	return [...]string{"register", "beat", "assign", "audit", "view", "retake", "release", "remove", "announce", "leave"}[k]
}

func (c *call) String() string {
	if c == nil {
		return "-"
	}
	s := c.kind.String()
	for _, h := range c.handover {
		s += fmt.Sprintf(" %s/%d>%s", h.QueueID, h.Epoch, h.To)
	}
	if c.applied {
		s += "!"
	}
	return s
}

// apply is the moment at which the database commits the call.
func (w *world) apply(c *call) {
	c.applied = true
	switch c.kind {
	case callRegister:
		w.register(c)
	case callBeat:
		w.beat(c)
	case callAssign:
		w.expire(c)
		c.blocked = w.assign(c.uuid, false)
	case callAudit:
		w.audit(c)
	case callView:
		w.read(c)
	case callRetake:
		w.retake(c)
	case callRelease:
		w.release(c)
	case callRemove:
		w.finishRemoval(c)
	case callAnnounce:
		w.announce(c)
	case callLeave:
		w.leave(c)
	}
}

// applicable reports that the database can apply the call. No lock keeps it from that: rows that a fenced
// transaction holds are passed over.
func (w *world) applicable(c *call) bool {
	return !c.applied && !w.outage
}

// reachable reports that the heart's or the store's connection of a process works.
func (w *world) reachable(p *process, heart bool) bool {
	if heart {
		return !w.outage && !p.noHeart
	}
	return !w.outage && !p.noStore
}

// send starts a call of the server's own goroutine.
func (w *world) send(p *process, c call) {
	c.proc, c.life, c.uuid, c.sent = p.index, p.lives, p.uuid, w.local(p)
	p.store = &c
}

// sendBeat starts a heartbeat.
func (w *world) sendBeat(p *process) {
	c := call{kind: callBeat, proc: p.index, life: p.lives, uuid: p.uuid, sent: w.local(p), since: p.watch.since, token: p.token + 1}
	p.heart, p.tried = &c, c.sent
}

// abandon lets the sender give up; the call may still arrive.
func (w *world) abandon(at **call) {
	c := **at
	*at = nil
	if !c.applied && c.kind != callView {
		w.late = append(w.late, c)
	}
}

// deliver is the heart's: a pulse, or the news that the row is gone.
func (w *world) deliver(p *process) {
	c := p.heart
	p.heart = nil
	switch {
	case c.life != p.lives:
	case !c.done:
		p.beating, p.gone = false, true
	default:
		p.start, p.pulse, p.token, p.watched = c.sent, c.pulse, c.token, 0
		if p.watch.observe(c.pulse.Now, w.local(p)); p.watch.mayExpire() || w.without.watch {
			p.watched = max(p.watch.watched(), modelJudgeDead)
		}
	}
}

// reply tells the server's own goroutine how its call went. err: it does not know.
func (w *world) reply(p *process, err bool) {
	c := *p.store
	if err {
		w.abandon(&p.store)
	}
	p.store = nil
	switch c.kind {
	case callRegister:
		w.registered(p, c, err)
	case callAnnounce:
		w.announced(p, err)
	case callLeave:
		w.left(p, err)
	default:
		w.refreshed(p, c, err)
	}
}
