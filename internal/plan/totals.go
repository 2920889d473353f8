package plan

import (
	"cmp"
	"maps"
	"slices"
)

// Task is a task type as BalanceTotals takes it: the input of Plan.
type Task struct {
	Name    string
	Queues  []Queue
	Servers []Server // each with its Process
	Limits  Limits
	// Fixed says that the shares of the task type stay as they are. They count all the same.
	Fixed bool
}

// BalanceTotals evens the numbers of queues that the processes have of all task types (P15). Each task type divides its
// queues among its servers within one queue, so that some shares are rounded up. BalanceTotals chooses which: it
// returns, for each task type whose choice changes, the uuids of all servers that are to be rounded up. The caller sets
// RoundedUp of these, and of no other server of the task type, before the next Plan.
//
// The result has the smallest sum of the squared totals, each divided by the weight of its process, and BalanceTotals
// changes nothing that does not make it smaller. If all processes serve all task types with equal weights, the totals
// differ by one queue at most, and as few queues as possible move.
func BalanceTotals(tasks []Task) map[string][]string {
	tasks = slices.SortedFunc(slices.Values(tasks), func(a, b Task) int { return cmp.Compare(a.Name, b.Name) })
	number := map[string]int{} // of the processes, in order of their ids
	for _, task := range tasks {
		for _, s := range task.Servers {
			number[s.Process] = 0
		}
	}
	delete(number, "")
	for i, process := range slices.Sorted(maps.Keys(number)) {
		number[process] = i
	}
	n := len(number)
	l := &balancing{
		has: slices.Repeat([]amount{{weight: 1}}, n), open: make([][]*openServer, n),
		seen: make([]int, n), last: make([]step, n),
	}
	open := make([]*openTask, len(tasks))
	for i, task := range tasks {
		open[i] = l.add(task, number)
	}
	for n > 0 && l.improve() {
		continue
	}
	result := map[string][]string{}
	for i, task := range open {
		if !task.changed {
			continue
		}
		uuids := []string{}
		for _, s := range task.open {
			if s.up {
				uuids = append(uuids, s.uuid)
			}
		}
		result[tasks[i].Name] = uuids
	}
	return result
}

// balancing is one computation of BalanceTotals.
type balancing struct {
	has  []amount        // of the processes
	open [][]*openServer // of the processes

	search int    // the number of the present search
	seen   []int  // of the processes: the last search that reached it
	last   []step // of the processes: the last step to it in that search
}

// openTask is a task type with the servers whose shares may be rounded up or down.
type openTask struct {
	open    []*openServer
	changed bool
}

type openServer struct {
	uuid    string
	process int
	up      bool
	task    *openTask
	zone    *openZone
}

// openZone is how many open servers of a zone are rounded up, and how many may be (P14).
type openZone struct {
	up, least, most int
	searched        int // the last search that has tried the steps from the servers that are rounded up
}

// step is a move of one queue from one open server of a task type to another.
type step struct{ from, to *openServer }

// add adds a task type: what its servers get by the plan, and which of them may be rounded up or down.
func (l *balancing) add(task Task, number map[string]int) *openTask {
	p := newPlanning(task.Queues, task.Servers, task.Limits)
	p.assignOwnerless()
	planned := p.destinations()
	for i, row := range p.rows {
		if planned[i] == none {
			planned[i] = row.owner
		}
		if s := planned[i]; s != none && p.servers[s].Process != "" {
			l.has[number[p.servers[s].Process]].queues++
		}
	}
	o := &openTask{}
	if task.Fixed || task.Limits.choose() || task.Limits.Loads != nil || p.hung || len(p.weights) == 0 {
		return o
	}
	var r *rounding
	if p.restricted {
		r = swappable(p, planned)
	} else {
		r = divide(p.roster, p.holders())
	}
	zones, parts := make([]openZone, 1+slices.Max(p.zones)), make([]int, 1+slices.Max(p.zones))
	for _, at := range r.open {
		s, zone := p.servers[at], p.zones[at]
		if s.Process == "" {
			continue
		}
		process := number[s.Process]
		l.has[process].weight = max(l.has[process].weight, p.weights[at])
		server := &openServer{s.UUID, process, r.up[at], o, &zones[zone]}
		o.open, l.open[process] = append(o.open, server), append(l.open[process], server)
		parts[zone] += r.parts[at]
		if server.up {
			zones[zone].up++
		}
	}
	for i := range zones {
		z := &zones[i]
		if z.least, z.most = z.up, z.up; !p.restricted {
			z.least, z.most = parts[i]/r.whole, (parts[i]+r.whole-1)/r.whole
		}
	}
	return o
}

// swappable returns the servers that may swap their numbers of rows although some rows are restricted. Suppose that A
// has three rows and B two, of the same weight. If any server may get one of A's rows, A can give it to B, and both are
// as even as before. A counts as rounded up then, and B as rounded down. swappable looks only at the servers of the
// weight that most of them have.
func swappable(p *planning, planned []int) *rounding {
	n := len(p.weights)
	r := &rounding{up: make([]bool, n), parts: make([]int, n)}
	total, free := make([]int, len(p.servers)), make([]bool, len(p.servers))
	for i, s := range planned {
		if s != none {
			total[s]++
			free[s] = free[s] || len(p.groupOf[i].servers) == n
		}
	}
	servers := map[int]int{} // by weight
	for _, w := range p.weights {
		servers[w]++
	}
	common := slices.MaxFunc(p.weights, func(v, w int) int { return cmp.Or(servers[v]-servers[w], v-w) })
	least := len(p.rows)
	for s, w := range p.weights {
		if w == common {
			least = min(least, total[s])
		}
	}
	for s, w := range p.weights {
		r.up[s] = total[s] == least+1 && free[s] && within(least, p.limits.QueuesPerServer)
		if w == common && (r.up[s] || total[s] == least) {
			r.open = append(r.open, s)
		}
	}
	return r
}

// improves reports whether the sum of the squares becomes smaller if one process gives a queue and another one takes
// it.
func (l *balancing) improves(from, to int) bool {
	return l.has[from].gives().compare(l.has[to].takes()) > 0
}

// compareTakers puts the process first that should rather get a queue.
func (l *balancing) compareTakers(a, b int) int { return l.has[a].takes().compare(l.has[b].takes()) }

// improve moves one queue from a process with a large total to one with a small total, perhaps by way of others.
// Suppose that P serves only task type S, R serves only T, and Q serves both: P gives Q a queue of S, and Q gives R one
// of T. improve reports whether it could, and notes the task types.
func (l *balancing) improve() bool {
	givers := make([]int, len(l.has))
	for i := range givers {
		givers[i] = i
	}
	lowest := slices.MinFunc(givers, l.compareTakers)
	slices.SortStableFunc(givers, func(a, b int) int { return l.has[b].gives().compare(l.has[a].gives()) })
	for _, from := range givers {
		if !l.improves(from, lowest) {
			return false
		}
		if l.improveFrom(from, lowest) {
			return true
		}
	}
	return false
}

// improveFrom moves a queue away from one process, as improve does. No process has a smaller total than lowest.
func (l *balancing) improveFrom(from, lowest int) bool {
	reached := slices.DeleteFunc(l.reach(from, lowest), func(to int) bool { return !l.improves(from, to) })
	if len(reached) == 0 {
		return false
	}
	var path []step
	for at := slices.MinFunc(reached, l.compareTakers); at != from; at = l.last[at].from.process { // of equals the nearest
		path = append(path, l.last[at])
	}
	for i, s := range path { // from the end on: each process takes before it gives
		if !s.may() { // two steps of one task type can be too many for a zone
			for _, done := range path[:i] {
				l.move(step{done.to, done.from})
			}
			return false
		}
		l.move(s)
	}
	for _, s := range path {
		s.from.task.changed = true
	}
	return true
}

// reach returns the processes that a queue can reach from a process, the nearest first, and notes the last step to
// each. It ends with a process that has the smallest total, if it finds one. It tries the steps of a task type from
// each zone once, as they lead to the same servers.
func (l *balancing) reach(from, lowest int) (reached []int) {
	l.search++
	l.seen[from] = l.search
	for at := []int{from}; len(at) > 0; at = at[1:] {
		for _, giver := range l.open[at[0]] {
			if !giver.up || giver.zone.searched == l.search {
				continue
			}
			giver.zone.searched = l.search
			for _, taker := range giver.task.open {
				step := step{giver, taker}
				if l.seen[taker.process] == l.search || !step.may() {
					continue
				}
				l.seen[taker.process], l.last[taker.process] = l.search, step
				reached, at = append(reached, taker.process), append(at, taker.process)
				if l.compareTakers(taker.process, lowest) <= 0 {
					return reached
				}
			}
		}
	}
	return reached
}

// may reports whether the step leaves each zone its part of the servers that are rounded up (P14).
func (s step) may() bool {
	gives, takes := s.from.zone, s.to.zone
	return s.from.up && !s.to.up && (gives == takes || gives.up > gives.least && takes.up < takes.most)
}

func (l *balancing) move(s step) {
	s.from.up, s.to.up = false, true
	s.from.zone.up--
	s.to.zone.up++
	l.has[s.from.process].queues--
	l.has[s.to.process].queues++
}

// TotalsBalanced reports whether BalanceTotals has nothing to do, whichever servers may have which queues: no queue
// that goes from one process to another makes the sum smaller. The maps have the totals and the weights of the
// processes.
func TotalsBalanced(totals, weights map[string]int) bool {
	if len(totals) == 0 {
		return true
	}
	var gives, takes []fraction
	for process, n := range totals {
		has := amount{n, weights[process]}
		gives, takes = append(gives, has.gives()), append(takes, has.takes())
	}
	return slices.MaxFunc(gives, fraction.compare).compare(slices.MinFunc(takes, fraction.compare)) <= 0
}
