package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/dutyrota/rota/bench/internal/report"
	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/internal/plan"
)

// roster is one in memory, in which time is made up: servers beat, plan, look and hand over when worker processes
// would, and only one of them has the lock row at a time. What is real is how long a plan takes.
type roster struct {
	o      Options
	chance *rand.Rand
	clock

	queues  []queue
	servers map[string]*server
	ring    []*server // in the order of their uuids: each watches those behind it
	silent  int       // dead servers that are still registered

	locked              bool          // somebody has the lock row,
	until               time.Duration // for so long
	membership, planned int

	requests, unknown int             // queues that are asked for, and those whose new owners do not know yet
	moves             int             // changes of owner
	fewest            int             // that the burials made necessary, one after the other
	plans             []time.Duration // how long each planning took
}

// queue is a queue and since when it is asked for.
type queue struct {
	plan.Queue
	asked time.Duration
}

// server is a server of the roster.
type server struct {
	plan.Server
	beaten  time.Duration // its last beat
	dead    bool
	queued  bool  // it waits for the lock row, to plan
	polling bool  // it will look soon
	asked   []int // its queues that others wait for
	waits   int   // queues that it waits for
	found   int   // queues that became its own and of which it does not know yet
}

const (
	idleInterval = 100 * time.Millisecond // how soon a process beats that has joined, at the latest
	pollInterval = 200 * time.Millisecond // how often a server looks that waits
	watched      = 32                     // how many servers each one watches
	deadBeats    = 5                      // after how many intervals of silence a server is dead
)

// newRoster is a balanced roster whose servers beat at random moments of the interval.
func newRoster(o Options) *roster {
	r := &roster{o: o, chance: rand.New(rand.NewPCG(o.Seed, 0)), servers: map[string]*server{}}
	for i := range o.Queues {
		r.queues = append(r.queues, queue{Queue: plan.Queue{ID: fmt.Sprint(i), Epoch: 1}})
	}
	for range o.Servers {
		s := r.register()
		r.after(r.upTo(o.Heartbeat), func() { r.beat(s) })
	}
	r.assign()
	r.settle()
	return r
}

func (r *roster) upTo(d time.Duration) time.Duration { return time.Duration(r.chance.Int64N(int64(d))) }

func (r *roster) register() *server {
	number := len(r.servers)
	s := &server{beaten: r.now}
	s.Server = plan.Server{
		UUID:         fmt.Sprintf("host%03d:%d:%08x", number%251, 1000+number, number),
		RegisterTime: time.Unix(0, int64(number)), Eligible: true,
	}
	r.servers[s.UUID] = s
	at, _ := slices.BinarySearchFunc(r.ring, s.UUID, byUUID)
	r.ring = slices.Insert(r.ring, at, s)
	r.membership++
	return s
}

func byUUID(s *server, uuid string) int {
	if s.UUID < uuid {
		return -1
	}
	if s.UUID > uuid {
		return 1
	}
	return 0
}

// join is a server that starts: it registers, plans and looks, and soon it beats.
func (r *roster) join() {
	s := r.register()
	r.plan(s)
	r.after(r.upTo(idleInterval), func() { r.beat(s) })
}

// die is a server that beats no more.
func (r *roster) die(s *server) {
	s.dead = true
	r.silent++
	r.unknown -= s.found
}

// beat is a heartbeat, and what comes of the pulse.
func (r *roster) beat(s *server) {
	if s.dead {
		return
	}
	s.beaten = r.now
	if r.membership != r.planned || r.seesDead(s) {
		r.plan(s)
	}
	r.look(s)
	r.after(r.o.Heartbeat, func() { r.beat(s) })
}

// seesDead reports that a server that this one watches is dead.
func (r *roster) seesDead(s *server) bool {
	if r.silent == 0 {
		return false
	}
	at, _ := slices.BinarySearchFunc(r.ring, s.UUID, byUUID)
	for i := range min(watched, len(r.ring)-1) {
		if r.isDead(r.ring[(at+1+i)%len(r.ring)]) {
			return true
		}
	}
	return false
}

func (r *roster) isDead(s *server) bool { return r.now-s.beaten > deadBeats*r.o.Heartbeat }

// underLock does something when the lock row is free.
func (r *roster) underLock(do func()) {
	if r.locked { // what was planned to happen first at a moment does
		r.after(r.until-r.now, func() { r.underLock(do) })
		return
	}
	do()
}

// plan makes a server plan as soon as it has the lock row, if nobody has done so by then.
func (r *roster) plan(s *server) {
	if s.queued {
		return
	}
	s.queued = true
	r.underLock(func() {
		s.queued = false
		r.bury()
		if r.membership != r.planned {
			r.assign()
		}
		r.after(r.until-r.now, func() { r.look(s) })
	})
}

// bury deletes the dead.
func (r *roster) bury() {
	if r.silent == 0 {
		return
	}
	before := len(r.ring)
	r.ring = slices.DeleteFunc(r.ring, func(s *server) bool { return s.dead && r.isDead(s) })
	if gone := before - len(r.ring); gone > 0 {
		r.silent -= gone
		r.membership++
		r.fewest += r.fewestSince(r.held())
	}
}

// fewestSince is how many changes of owner it takes from such holdings until all have their shares.
func (r *roster) fewestSince(held map[string]int) int {
	now := make([]string, len(r.ring))
	for i, s := range r.ring {
		now[i] = s.UUID
	}
	return int(stage.FewestMoves(held, now))
}

// assign plans. What it writes is seen when the transaction has ended.
func (r *roster) assign() {
	changes, took := r.deal()
	r.locked, r.until, r.planned = true, r.now+took, r.membership
	r.after(took, func() {
		r.locked = false
		for _, c := range changes {
			r.write(c)
		}
	})
}

// deal asks the planner, and notes how long it took.
func (r *roster) deal() ([]plan.Change, time.Duration) {
	queues := make([]plan.Queue, len(r.queues))
	for i, q := range r.queues {
		queues[i] = q.Queue
	}
	servers := make([]plan.Server, len(r.ring))
	for i, s := range r.ring {
		servers[i] = s.Server
	}
	var changes []plan.Change
	took := report.Time(func() { changes = plan.Plan(queues, servers, 0) })
	r.plans = append(r.plans, took)
	if r.o.instant {
		took = 0
	}
	return changes, took
}

// write applies a change to a queue, whose id is its place.
func (r *roster) write(c plan.Change) {
	i, _ := strconv.Atoi(c.QueueID) // ids are numbers here
	q := &r.queues[i]
	if q.Requester != "" {
		r.requests--
		r.servers[q.Requester].waits--
	}
	if c.ChangesOwner() {
		r.own(q, c.Owner)
	}
	if q.Requester = c.Requester; q.Requester != "" {
		q.asked = r.now
		r.requests++
		r.servers[q.Requester].waits++
		owner := r.servers[q.Owner]
		owner.asked = append(owner.asked, i)
	}
}

// own gives a queue to a server, which has to learn of it.
func (r *roster) own(q *queue, uuid string) {
	q.Owner, q.Epoch = uuid, q.Epoch+1
	r.moves++
	if s := r.servers[uuid]; s != nil && !s.dead {
		s.found++
		r.unknown++
	}
}

// look is when a server reads its queues: it takes up those that it has got, and hands over those that are asked for
// by servers that know it. While it waits for something it looks again soon.
func (r *roster) look(s *server) {
	if s.dead {
		return
	}
	r.unknown -= s.found
	s.found = 0
	var later []int
	for _, i := range s.asked {
		q := r.queues[i]
		switch {
		case q.Owner != s.UUID || q.Requester == "": // withdrawn
		case r.servers[q.Requester].beaten <= q.asked:
			later = append(later, i)
		default:
			r.underLock(func() { r.release(s, i, q.Epoch) })
		}
	}
	s.asked = later
	if (s.waits > 0 || len(later) > 0) && !s.polling {
		s.polling = true
		r.after(pollInterval, func() { s.polling = false; r.look(s) })
	}
}

// release hands a queue over, if it is still to be.
func (r *roster) release(s *server, i int, epoch int64) {
	q := &r.queues[i]
	if q.Owner != s.UUID || q.Epoch != epoch || q.Requester == "" {
		return
	}
	to := q.Requester
	q.Requester = ""
	r.requests--
	r.servers[to].waits--
	r.own(q, to)
}

// settle lets time pass until nothing is left to do.
func (r *roster) settle() {
	for r.requests > 0 || r.unknown > 0 || r.membership != r.planned || r.locked || r.silent > 0 {
		r.next()
	}
}
