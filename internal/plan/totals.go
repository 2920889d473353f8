package plan

import (
	"cmp"
	"iter"
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
	totals, weights []int // of the processes
	tasks           []openTask
	at              [][]place // of the processes: their open servers

	search int    // the number of the present search
	seen   []int  // of the processes: the last search that reached it
	last   []step // of the processes: the last step to it in that search
}

// openTask is a task type with the servers whose shares may be rounded up or down. In each zone at least so many are
// rounded up as zoneLeast says, and one more at most if zoneOpen says so.
type openTask struct {
	open      []openServer
	zoneLeast map[int]int
	zoneOpen  map[int]bool
	zoneUp    map[int]int
	searched  map[int]int // of the zones: the last search that has tried the steps from the servers that are rounded up
}

type openServer struct {
	uuid    string
	process int
	zone    int
	up      bool
}

// place is an open server: its task type, and its number there.
type place struct{ task, server int }

func newBalancing(tasks []Task) *balancing {
	var names []string
	for _, task := range tasks {
		for _, s := range task.Servers {
			if s.Process != "" {
				names = append(names, s.Process)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	n := len(names)
	l := &balancing{
		totals: make([]int, n), weights: make([]int, n), tasks: make([]openTask, len(tasks)),
		at: make([][]place, n), seen: make([]int, n), last: make([]step, n),
	}
	number := make(map[string]int, n)
	for i, name := range names {
		number[name] = i
		l.weights[i] = 1
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
		if planned[i] != none && p.servers[planned[i]].Process != "" {
			l.totals[number[p.servers[planned[i]].Process]]++
		}
	}
	if task.Fixed || task.Limits.choose() || task.Limits.Loads != nil || p.hung || len(p.weights) == 0 {
		return
	}
	o := openTask{zoneLeast: map[int]int{}, zoneOpen: map[int]bool{}, zoneUp: map[int]int{}, searched: map[int]int{}}
	open := func(at int, up bool) (zone int, counts bool) {
		s := p.servers[at]
		if s.Process == "" {
			return 0, false
		}
		if p.zones != nil {
			zone = p.zones[at]
		}
		process := number[s.Process]
		l.weights[process] = max(l.weights[process], p.weights[at])
		l.at[process] = append(l.at[process], place{t, len(o.open)})
		o.open = append(o.open, openServer{s.UUID, process, zone, up})
		if up {
			o.zoneUp[zone]++
		}
		return zone, true
	}
	if p.restricted {
		for at, up := range p.swappable(planned) {
			if zone, counts := open(at, up); counts && up {
				o.zoneLeast[zone]++
			}
		}
	} else {
		r := p.divide(len(p.rows), p.bounds(make([]int, len(p.weights))), p.weights, count(holders(p.roster), len(p.weights)))
		parts := map[int]int{}
		for _, at := range r.open {
			if zone, counts := open(at, r.up[at]); counts {
				parts[zone] += r.parts[at]
			}
		}
		for zone, part := range parts {
			o.zoneLeast[zone], o.zoneOpen[zone] = part/r.whole, part%r.whole > 0
		}
	}
	l.tasks[t] = o
}

// swappable returns the servers whose numbers of rows may be exchanged, by a move of a row that any server may get,
// although some rows are restricted: those that have one more and such a row, and those that have one less. It looks at
// the servers of the weight that most of them have.
func (p *planning) swappable(planned []int) iter.Seq2[int, bool] {
	total, free := make([]int, len(p.weights)), make([]bool, len(p.weights))
	for i, s := range planned {
		if s != none && s < len(p.weights) {
			total[s]++
			free[s] = free[s] || p.barred[i] == nil
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
	return func(yield func(int, bool) bool) {
		for s, w := range p.weights {
			up := total[s] == least+1 && free[s] && within(least, p.limits.QueuesPerServer)
			if w == common && (up || total[s] == least) && !yield(s, up) {
				return
			}
		}
	}
}

// gives and takes return how much the square of a process's total changes if the process gives a queue or takes one.
// With the totals 5 and 2, the first square falls from 25 to 16, by 9, and the second one rises from 4 to 9, by 5: the
// sum becomes smaller by 4. Callers divide by the weights of the processes.
func (l *balancing) gives(process int) int { return 2*l.totals[process] - 1 }
func (l *balancing) takes(process int) int { return 2*l.totals[process] + 1 }

// improves reports whether the sum of the squares, each divided by the weight, becomes smaller if one process gives a
// queue and another one takes it.
func (l *balancing) improves(from, to int) bool {
	return l.gives(from)*l.weights[to] > l.takes(to)*l.weights[from]
}

// improve moves one queue from a process with a large total to one with a small total, perhaps by way of others.
// Suppose that P serves only task type S, R serves only T, and Q serves both: P gives Q a queue of S, and Q gives R one
// of T. improve reports whether it could, and notes the task types.
func (l *balancing) improve(changed map[int]bool) bool {
	byTotal := make([]int, len(l.totals))
	lowest := 0
	for i := range byTotal {
		byTotal[i] = i
		if l.takes(i)*l.weights[lowest] < l.takes(lowest)*l.weights[i] {
			lowest = i
		}
	}
	slices.SortStableFunc(byTotal, func(a, b int) int {
		return cmp.Compare(l.gives(b)*l.weights[a], l.gives(a)*l.weights[b])
	})
	for _, from := range byTotal {
		if !l.improves(from, lowest) {
			return false
		}
		if l.improveFrom(from, lowest, changed) {
			return true
		}
	}
	return false
}

// step is a move of one queue of a task type from the open server of one process to that of another.
type step struct {
	task     int
	from, to int // open servers of the task type
}

// improveFrom moves a queue away from one process, as improve does. No process has a smaller total than lowest.
func (l *balancing) improveFrom(from, lowest int, changed map[int]bool) bool {
	best := -1
	for _, to := range l.reach(from, lowest) { // the nearest first
		if l.improves(from, to) && (best < 0 || l.takes(to)*l.weights[best] < l.takes(best)*l.weights[to]) {
			best = to
		}
	}
	if best < 0 {
		return false
	}
	var path []step
	for at := best; at != from; at = l.tasks[path[len(path)-1].task].open[path[len(path)-1].from].process {
		path = append(path, l.last[at])
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
			if !giver.up || task.searched[giver.zone] == l.search {
				continue
			}
			task.searched[giver.zone] = l.search
			for to, s := range task.open {
				step := step{place.task, place.server, to}
				if l.seen[s.process] == l.search || !l.may(step) {
					continue
				}
				l.seen[s.process], l.last[s.process] = l.search, step
				reached, at = append(reached, s.process), append(at, s.process)
				if l.takes(s.process)*l.weights[lowest] <= l.takes(lowest)*l.weights[s.process] {
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
	if !from.up || to.up {
		return false
	}
	most := t.zoneLeast[to.zone]
	if t.zoneOpen[to.zone] {
		most++
	}
	return from.zone == to.zone || t.zoneUp[from.zone] > t.zoneLeast[from.zone] && t.zoneUp[to.zone] < most
}

func (l *balancing) move(s step) {
	t := l.tasks[s.task]
	from, to := &t.open[s.from], &t.open[s.to]
	from.up, to.up = false, true
	t.zoneUp[from.zone]--
	t.zoneUp[to.zone]++
	l.totals[from.process]--
	l.totals[to.process]++
}

// TotalsBalanced reports whether BalanceTotals has nothing to do, whichever servers may have which queues: no queue
// that goes from one process to another makes the sum smaller. The maps have the totals and the weights of the
// processes.
func TotalsBalanced(totals, weights map[string]int) bool {
	l := &balancing{}
	highest, lowest := 0, 0
	for i, process := range slices.Sorted(maps.Keys(totals)) {
		l.totals, l.weights = append(l.totals, totals[process]), append(l.weights, max(1, weights[process]))
		if l.gives(i)*l.weights[highest] > l.gives(highest)*l.weights[i] {
			highest = i
		}
		if l.takes(i)*l.weights[lowest] < l.takes(lowest)*l.weights[i] {
			lowest = i
		}
	}
	return len(totals) == 0 || !l.improves(highest, lowest)
}
