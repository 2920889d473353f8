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
	l := newBalancing(tasks)
	changed := map[int]bool{}
	for l.improve(changed) {
	}
	result := map[string][]string{}
	for t := range changed {
		uuids := []string{}
		for _, s := range l.tasks[t].open {
			if s.up {
				uuids = append(uuids, s.uuid)
			}
		}
		result[tasks[t].Name] = uuids
	}
	return result
}

// balancing is one computation of BalanceTotals.
type balancing struct {
	has   []amount // of the processes
	tasks []openTask
	at    [][]place // of the processes: their open servers

	search int    // the number of the present search
	seen   []int  // of the processes: the last search that reached it
	last   []step // of the processes: the last step to it in that search
}

// openTask is a task type with the servers whose shares may be rounded up or down.
type openTask struct {
	open  []openServer
	zones []openZone
}

type openServer struct {
	uuid    string
	process int
	zone    int
	up      bool
}

// openZone is how many open servers of a zone are rounded up, and how many may be (P14).
type openZone struct {
	up, least, most int
	searched        int // the last search that has tried the steps from the servers that are rounded up
}

// place is an open server: its task type, and its number there.
type place struct{ task, server int }

// step is a move of one queue of a task type from one open server to another.
type step struct{ task, from, to int }

func newBalancing(tasks []Task) *balancing {
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
		has: slices.Repeat([]amount{{weight: 1}}, n), tasks: make([]openTask, len(tasks)),
		at: make([][]place, n), seen: make([]int, n), last: make([]step, n),
	}
	for t, task := range tasks {
		l.add(t, task, number)
	}
	return l
}

// add adds a task type: what its servers get by the plan, and which of them may be rounded up or down.
func (l *balancing) add(t int, task Task, number map[string]int) {
	p := newPlanning(task.Queues, task.Servers, task.Limits)
	p.assignOwnerless()
	planned := p.settled()
	for i, row := range p.rows {
		if planned[i] == none {
			planned[i] = row.owner
		}
		if s := planned[i]; s != none && p.servers[s].Process != "" {
			l.has[number[p.servers[s].Process]].queues++
		}
	}
	if task.Fixed || task.Limits.choose() || task.Limits.Loads != nil || p.hung || len(p.weights) == 0 {
		return
	}
	r := p.swappable(planned)
	if !p.restricted {
		r = p.divide(len(p.rows), p.weights, count(p.holders(), len(p.weights)))
	}
	o := openTask{zones: make([]openZone, 1+slices.Max(p.zones))}
	parts := make([]int, len(o.zones))
	for _, at := range r.open {
		s, zone := p.servers[at], p.zones[at]
		if s.Process == "" {
			continue
		}
		process := number[s.Process]
		l.has[process].weight = max(l.has[process].weight, p.weights[at])
		l.at[process] = append(l.at[process], place{t, len(o.open)})
		o.open = append(o.open, openServer{s.UUID, process, zone, r.up[at]})
		parts[zone] += r.parts[at]
		if r.up[at] {
			o.zones[zone].up++
		}
	}
	for zone, part := range parts {
		z := &o.zones[zone]
		if z.least, z.most = z.up, z.up; !p.restricted && len(o.open) > 0 {
			z.least, z.most = part/r.whole, (part+r.whole-1)/r.whole
		}
	}
	l.tasks[t] = o
}

// swappable returns the servers whose numbers of rows may be exchanged, by a move of a row that any server may get,
// although some rows are restricted: those that have one more and such a row, and those that have one less. It looks at
// the servers of the weight that most of them have.
func (p *planning) swappable(planned []int) *rounding {
	n := len(p.weights)
	r := &rounding{up: make([]bool, n), parts: make([]int, n)}
	total, free := count(planned, len(p.servers)), make([]bool, n)
	for i, s := range planned {
		if s != none && s < n {
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

// improve moves one queue from a process with a large total to one with a small total, perhaps by way of others.
// Suppose that P serves only task type S, R serves only T, and Q serves both: P gives Q a queue of S, and Q gives R one
// of T. improve reports whether it could, and notes the task types.
func (l *balancing) improve(changed map[int]bool) bool {
	if len(l.has) == 0 {
		return false
	}
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
		if l.improveFrom(from, lowest, changed) {
			return true
		}
	}
	return false
}

// compareTakers puts the process first that should rather get a queue.
func (l *balancing) compareTakers(a, b int) int { return l.has[a].takes().compare(l.has[b].takes()) }

// improveFrom moves a queue away from one process, as improve does. No process has a smaller total than lowest.
func (l *balancing) improveFrom(from, lowest int, changed map[int]bool) bool {
	reached := slices.DeleteFunc(l.reach(from, lowest), func(to int) bool { return !l.improves(from, to) })
	if len(reached) == 0 {
		return false
	}
	var path []step
	for at := slices.MinFunc(reached, l.compareTakers); at != from; { // of equals the nearest
		s := l.last[at]
		path = append(path, s)
		at = l.tasks[s.task].open[s.from].process
	}
	for i, s := range path { // from the end on: each process takes before it gives
		if !l.may(s) { // two steps of one task type can be too many for a zone
			for _, done := range path[:i] {
				l.move(step{done.task, done.to, done.from})
			}
			return false
		}
		l.move(s)
	}
	for _, s := range path {
		changed[s.task] = true
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
		for _, place := range l.at[at[0]] {
			task := l.tasks[place.task]
			giver := task.open[place.server]
			zone := &task.zones[giver.zone]
			if !giver.up || zone.searched == l.search {
				continue
			}
			zone.searched = l.search
			for to, s := range task.open {
				step := step{place.task, place.server, to}
				if l.seen[s.process] == l.search || !l.may(step) {
					continue
				}
				l.seen[s.process], l.last[s.process] = l.search, step
				reached, at = append(reached, s.process), append(at, s.process)
				if l.compareTakers(s.process, lowest) <= 0 {
					return reached
				}
			}
		}
	}
	return reached
}

// may reports whether the step leaves each zone its part of the servers that are rounded up (P14).
func (l *balancing) may(s step) bool {
	t := l.tasks[s.task]
	from, to := t.open[s.from], t.open[s.to]
	gives, takes := t.zones[from.zone], t.zones[to.zone]
	return from.up && !to.up && (from.zone == to.zone || gives.up > gives.least && takes.up < takes.most)
}

func (l *balancing) move(s step) {
	t := l.tasks[s.task]
	from, to := &t.open[s.from], &t.open[s.to]
	from.up, to.up = false, true
	t.zones[from.zone].up--
	t.zones[to.zone].up++
	l.has[from.process].queues--
	l.has[to.process].queues++
}

// TotalsBalanced reports whether BalanceTotals has nothing to do, whichever servers may have which queues: no queue
// that goes from one process to another makes the sum smaller. The maps have the totals and the weights of the
// processes.
func TotalsBalanced(totals, weights map[string]int) bool {
	var gives, takes []fraction
	for process, n := range totals {
		has := amount{n, weights[process]}
		gives, takes = append(gives, has.gives()), append(takes, has.takes())
	}
	slices.SortFunc(gives, fraction.compare)
	slices.SortFunc(takes, fraction.compare)
	return len(totals) == 0 || gives[len(gives)-1].compare(takes[0]) <= 0
}
