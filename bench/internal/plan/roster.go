package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/plan/plantest"
)

// roster simulates the servers of a task type in virtual time. They send heartbeats, plan, read their queues and hand over
// at the times at which worker processes would. One server at a time holds the lock row. The duration of a plan is real.
//
// It has 22 methods, one for each event in the life of a server and a few steps that these share. All change the same rows
// in the same virtual time.
type roster struct {
	o      Options
	chance *rand.Rand
	clock

	rows      plantest.Roster
	requested map[string]time.Duration // since when a queue is requested
	servers   map[string]*server       // also expired servers
	watched   []*server                // the registered servers by uuid: each watches the servers behind it
	silent    int                      // the number of dead servers that are still registered

	locked              bool          // a server holds the lock row
	until               time.Duration // when that server frees the lock row
	membership, planned int

	requests, unknown int             // queues that are requested, and queues whose new owners have not read them yet
	moves             int             // changes of owner
	fewest            int             // the moves that the expiries made necessary, one after the other
	plans             []time.Duration // how long each plan took
}

// server is a server of the roster.
type server struct {
	uuid        string
	heartbeatAt time.Duration // its last heartbeat
	dead        bool
	queued      bool     // it waits for the lock row, to plan
	polling     bool     // it reads its queues again soon
	requested   []string // its queues that other servers wait for
	waits       int      // queues that it waits for
	found       int      // queues that it owns and has not read yet
}

const (
	idleInterval   = 100 * time.Millisecond // a process that has joined sends its first heartbeat within this time
	pollInterval   = 100 * time.Millisecond // how often a worker that waits for a queue reads its queues
	watchedServers = 32                     // how many servers each server watches
	deadHeartbeats = 5                      // after how many intervals of silence a server is dead
)

// newRoster returns a balanced roster. Its servers send heartbeats at random moments of the interval.
func newRoster(o Options) *roster {
	r := &roster{o: o, chance: rand.New(rand.NewPCG(o.Seed, 0)), servers: map[string]*server{}, requested: map[string]time.Duration{}}
	r.rows.Queues = plantest.Numbered(0, o.Queues)
	for range o.Servers {
		s := r.register()
		r.after(r.upTo(o.Heartbeat), func() { r.heartbeat(s) })
	}
	r.rebalance()
	r.settle()
	return r
}

func (r *roster) upTo(d time.Duration) time.Duration { return time.Duration(r.chance.Int64N(int64(d))) }

func (r *roster) register() *server {
	number := len(r.servers)
	s := &server{uuid: fmt.Sprintf("host%03d:%d:%08x", number%251, 1000+number, number), heartbeatAt: r.now}
	r.rows.Join(s.uuid)
	r.servers[s.uuid] = s
	at, _ := slices.BinarySearchFunc(r.watched, s.uuid, byUUID)
	r.watched = slices.Insert(r.watched, at, s)
	r.membership++
	return s
}

func byUUID(s *server, uuid string) int { return cmp.Compare(s.uuid, uuid) }

// join starts a server: it registers, plans, reads its queues, and soon sends a heartbeat.
func (r *roster) join() {
	s := r.register()
	r.plan(s)
	r.after(r.upTo(idleInterval), func() { r.heartbeat(s) })
}

// die makes a server stop sending heartbeats.
func (r *roster) die(s *server) {
	s.dead = true
	r.silent++
	r.unknown -= s.found
}

// heartbeat is a heartbeat, and what the server does on its reply.
func (r *roster) heartbeat(s *server) {
	if s.dead {
		return
	}
	s.heartbeatAt = r.now
	if r.membership != r.planned || r.seesDead(s) {
		r.plan(s)
	}
	r.refresh(s)
	r.after(r.o.Heartbeat, func() { r.heartbeat(s) })
}

// seesDead reports whether the server watches a dead server.
func (r *roster) seesDead(s *server) bool {
	if r.silent == 0 {
		return false
	}
	at, _ := slices.BinarySearchFunc(r.watched, s.uuid, byUUID)
	for i := range min(watchedServers, len(r.watched)-1) {
		if r.isDead(r.watched[(at+1+i)%len(r.watched)]) {
			return true
		}
	}
	return false
}

func (r *roster) isDead(s *server) bool { return r.now-s.heartbeatAt > deadHeartbeats*r.o.Heartbeat }

// underLock calls do when the lock row is free. The waiting servers get it in the order in which they asked.
func (r *roster) underLock(do func()) {
	if r.locked {
		r.after(r.until-r.now, func() { r.underLock(do) })
		return
	}
	do()
}

// plan makes a server plan as soon as it has the lock row, unless another server has done so by then.
func (r *roster) plan(s *server) {
	if s.queued {
		return
	}
	s.queued = true
	r.underLock(func() {
		s.queued = false
		r.expire()
		if r.membership != r.planned {
			r.rebalance()
		}
		r.after(r.until-r.now, func() { r.refresh(s) })
	})
}

// expire deletes the dead servers.
func (r *roster) expire() {
	if r.silent == 0 {
		return
	}
	before := len(r.watched)
	r.watched = slices.DeleteFunc(r.watched, func(s *server) bool {
		expired := s.dead && r.isDead(s)
		if expired {
			r.rows.Remove(s.uuid)
		}
		return expired
	})
	if gone := before - len(r.watched); gone > 0 {
		r.silent -= gone
		r.membership++
		r.fewest += r.fewestSince(r.rows.Owned())
	}
}

// fewestSince returns how few changes of owner balance the queues, if the servers own so many now.
func (r *roster) fewestSince(owned map[string]int) int {
	now := make([]string, len(r.watched))
	for i, s := range r.watched {
		now[i] = s.uuid
	}
	return int(stage.FewestMoves(owned, now))
}

// rebalance plans. The other servers see its changes when the transaction has ended.
func (r *roster) rebalance() {
	changes, took := r.timePlan()
	r.locked, r.until, r.planned = true, r.now+took, r.membership
	r.after(took, func() {
		r.locked = false
		for _, c := range changes {
			r.write(c)
		}
	})
}

// timePlan computes a plan, and notes how long that took.
func (r *roster) timePlan() (changes []plan.Change, took time.Duration) {
	took = report.Time(func() { changes = r.rows.Plan() })
	r.plans = append(r.plans, took)
	if r.o.instant {
		took = 0
	}
	return changes, took
}

// write applies a change to a queue.
func (r *roster) write(c plan.Change) {
	was := *r.rows.Queue(c.QueueID)
	if err := r.rows.Apply([]plan.Change{c}); err != nil {
		panic(err) // the simulation breaks a rule of the planner
	}
	if was.Requester != "" {
		r.endRequest(was.Requester)
	}
	if c.ChangesOwner() {
		r.moved(c.Owner)
	}
	if c.Requester != "" {
		r.requested[c.QueueID] = r.now
		r.requests++
		r.servers[c.Requester].waits++
		owner := r.servers[c.Owner]
		owner.requested = append(owner.requested, c.QueueID)
	}
}

// endRequest ends a request: the queue has been handed over, or the request is withdrawn.
func (r *roster) endRequest(requester string) {
	r.requests--
	r.servers[requester].waits--
}

// moved counts a queue that a server has got and has to read.
func (r *roster) moved(uuid string) {
	r.moves++
	if s := r.servers[uuid]; s != nil && !s.dead {
		s.found++
		r.unknown++
	}
}

// refresh makes a server read its queues. It finds the queues that it has got. It hands over the requested queues whose
// requester has read the request, and has said so with a heartbeat. While it waits for something it looks again soon.
func (r *roster) refresh(s *server) {
	if s.dead {
		return
	}
	r.unknown -= s.found
	s.found = 0
	var later []string
	for _, id := range s.requested {
		q := *r.rows.Queue(id)
		switch {
		case q.Owner != s.uuid || q.Requester == "": // withdrawn
		case r.servers[q.Requester].heartbeatAt <= r.requested[id]:
			later = append(later, id)
		default:
			r.underLock(func() { r.release(s, id, q.Epoch) })
		}
	}
	s.requested = later
	if (s.waits > 0 || len(later) > 0) && !s.polling {
		s.polling = true
		r.after(pollInterval, func() { s.polling = false; r.refresh(s) })
	}
}

// release hands a queue over, unless the request was withdrawn meanwhile.
func (r *roster) release(s *server, id string, epoch int64) {
	to := r.rows.Queue(id).Requester
	if r.rows.Release(id, s.uuid, epoch) {
		r.endRequest(to)
		r.moved(to)
	}
}

// settle lets time pass until no server has anything left to do.
func (r *roster) settle() {
	for r.requests > 0 || r.unknown > 0 || r.membership != r.planned || r.locked || r.silent > 0 {
		r.next()
	}
}
