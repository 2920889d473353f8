package manager

import (
	"fmt"
	"strconv"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// call is a statement or transaction under way: it is sent, then applied, and then its reply is under way. Its sender
// may give it up at any time. Then it is open whether it is applied, and when.
type call struct {
	kind    callKind
	proc    int
	session int
	uuid    string
	sent    time.Time // by the sender's clock
	applied bool

	replan              bool          // assign: because queues are blocked
	within              time.Duration // assign
	watched             time.Duration
	inherited           bool
	seen                time.Time
	handover            []roster.Handover
	readNumber, readSum int64  // heartbeat: of the view
	mustRead            bool   // release: the view was to be read again before
	reread              bool   // release: the view was read again meanwhile
	queue               string // retake, remove
	epoch               int64
	hung                []string       // register: the hung queues; clear: the queues that no longer hang
	judgeDead           time.Duration  // that register and a heartbeat write
	token               int            // of a heartbeat; the row has the one before
	stale               bool           // a heartbeat: the lease has expired since it was sent
	memory              *roster.Memory // history: what the process remembers
	totals              []int          // view: the totals that the mutant has read before; replaced, never changed

	done     bool // the reply
	blocked  []string
	released []string
	given    string // the owner of the queue after a change
	at       time.Time
	since    time.Time // register's reply, heartbeat's argument
	reply    *roster.HeartbeatReply
	view     roster.View
	floor    int64 // of register
	check    roster.HistoryCheck
}

type callKind int

const (
	callRegister callKind = iota
	callHeartbeat
	callAssign
	callAudit
	callView
	callRetake
	callRelease
	callRemove
	callAnnounce
	callLeave
	callClear
	callHistory
)

func (k callKind) String() string {
	return [...]string{"register", "heartbeat", "assign", "audit", "view", "retake", "release", "remove", "announce", "leave", "clear", "history"}[k]
}

func (c *call) String() string {
	if c == nil {
		return "-"
	}
	s := c.kind.String()
	for _, h := range c.handover {
		s += fmt.Sprintf(" %s/%d>%s", h.QueueID, h.Epoch, h.Requester)
	}
	if c.applied {
		s += "!"
	}
	return s
}

// apply is the moment at which the database commits the call.
func (w *world) apply(c *call) {
	c.applied = true
	except := ""
	if c.kind == callRelease {
		except = c.uuid
	}
	w.numbered(except, func() { w.commit(c) })
}

func (w *world) commit(c *call) {
	switch c.kind {
	case callRegister:
		w.register(c)
	case callHeartbeat:
		w.heartbeat(c)
	case callAssign:
		w.expire(c)
		w.assign(c.uuid, false, c.replan)
		c.blocked = w.db.skipped
	case callAudit:
		w.audit(c)
	case callView:
		w.read(c)
	case callRetake:
		w.retake(c)
	case callRelease:
		w.release(c)
	case callRemove:
		w.finishChange(c)
	case callAnnounce:
		w.announce(c)
	case callLeave:
		w.leave(c)
	case callClear:
		w.clearHung(c)
	case callHistory:
		w.checkHistory(c)
	}
}

// applicable reports whether the database can apply the call. No lock prevents it: rows that a fenced transaction holds
// are skipped.
func (w *world) applicable(c *call) bool {
	return !c.applied && !w.outage
}

// reachable reports whether a connection of a process works: the heartbeater's, or that of the server's own goroutine.
func (w *world) reachable(p *process, heartbeater bool) bool {
	if heartbeater {
		return !w.outage && !p.noHeartbeat
	}
	return !w.outage && !p.noRoster
}

// send starts a call of the server's own goroutine.
func (w *world) send(p *process, c call) {
	c.proc, c.session, c.uuid, c.sent = p.index, p.sessions, p.uuid, w.local(p)
	if c.kind == callView && w.without.totals {
		c.totals = w.totals()
	}
	p.request = &c
}

// sendHeartbeat starts a heartbeat.
func (w *world) sendHeartbeat(p *process) {
	c := call{kind: callHeartbeat, proc: p.index, session: p.sessions, uuid: p.uuid, sent: w.local(p), since: p.watch.since, token: p.token + 1, judgeDead: w.announceLease(p, strconv.Itoa(p.token+1)), readNumber: p.view.Version, readSum: p.view.QueueSum(p.uuid)}
	p.heartbeat, p.tried = &c, c.sent
}

// announceLease is announce of registration.
func (w *world) announceLease(p *process, token string) time.Duration {
	if p.next.token != token || w.without.sameBeat {
		p.next = announcement{token, modelIntervals(p.wanted), max(p.wanted, p.judgeDead)}
		if w.without.leaseFirst {
			p.next.judgeDead = p.wanted
		}
	}
	return p.next.judgeDead
}

// abandon makes the sender give up. The call may still arrive.
func (w *world) abandon(at **call) {
	c := **at
	*at = nil
	if !c.applied && c.kind != callView {
		w.late = append(w.late, c)
	}
}

// deliver brings the heartbeater a reply, or the news that the row is gone.
func (w *world) deliver(p *process) {
	c := p.heartbeat
	p.heartbeat = nil
	switch {
	case c.session != p.sessions:
	case !c.done:
		p.registered, p.gone = false, true
	default:
		p.start, p.reply, p.token, p.watched, p.replyStale = c.sent, c.reply, c.token, 0, c.stale && !w.without.sentAfter
		p.heard(c.reply.Now, c.reply.EpochFloor)
		p.watch.observe(c.reply.Now, w.local(p))
		p.judgeDead = p.next.intervals.judgeDead
		p.watch.intervals = p.next.intervals
		if p.watch.mayExpire() {
			p.watched = p.watch.watched()
		} else if w.without.watch {
			p.watched = modelLonger
		}
	}
}

// reply tells the server's own goroutine the outcome of its call. With err the outcome is unknown.
func (w *world) reply(p *process, err bool) {
	c := *p.request
	if err {
		w.abandon(&p.request)
	}
	p.request = nil
	switch c.kind {
	case callRegister:
		w.joined(p, c, err)
	case callView:
		w.viewed(p, c, err)
	case callLeave:
		w.left(p, err)
	}
}

// jobReply tells the server's own goroutine the outcome of its job. With err the outcome is unknown.
func (w *world) jobReply(p *process, err bool) {
	c := *p.job
	if err {
		w.abandon(&p.job)
	}
	p.job = nil
	w.jobEnded(p, c, err)
}
