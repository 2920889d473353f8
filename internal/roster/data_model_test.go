package roster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// This file has a model of F11: one item, one data database, two servers that are slow, frozen or cut off at any point,
// plans that take queues from them, other numbers of queues, splits, merges, and a roster that loses history, whether
// that is noticed or not. TestDataModel goes through all states, and finds no second effect. With each rule broken it
// finds one.

const (
	modelServers   = 2
	modelQueues    = 2
	modelDivisions = 2
	modelEpochs    = 2  // plans stop there
	modelChanges   = 2  // how often the items are divided in another way
	modelHighest   = 15 // the model stops there
	modelJump      = 10 // a loss of history that is noticed raises the epochs by so much (H8)
)

// modelItems are the items of a queue: of a queue with the total 1 all items, and of one with the total 2 half of them.
type modelItems struct{ division, total int }

// has reports whether a queue has the item. Which of two queues has it depends on the division.
func (m modelItems) has(q int) bool {
	return m.total == 1 || m.total == 2 && q == m.division%2
}

// modelRow is the owner of a queue in the roster, or in the data database.
type modelRow struct {
	epoch  int
	server int        // 0: none
	items  modelItems // zero in the data database: other queues have its items
}

// modelRoster is what a standby of the roster has, too.
type modelRoster struct {
	rows [modelQueues]modelRow // a row without items is not there
	high int                   // no queue ever had a higher epoch
}

// modelServer is what a server believes and does about one queue.
type modelServer struct {
	view   modelRow // as it was granted; without a server: it does not own the queue
	raised bool     // it has raised the view's epoch
	page   int      // the epoch under which it has selected the item; 0: it has not
	open   bool     // its fenced transaction is open, and holds the row of the queue
}

type modelState struct {
	roster    modelRoster
	standby   modelRoster // what is left after a loss
	saved     bool
	lost      bool // the roster has lost history once
	divisions int  // as many have begun, also in the lost history
	changes   int
	alarm     bool // the data database was ahead of a roster that had lost nothing
	data      [modelQueues]modelRow
	servers   [modelServers][modelQueues]modelServer
	effects   int
}

// modelRules are the rules of F11, of which a test may break one.
type modelRules struct {
	raiseFirst, raiseWaits, fenceCompares, itemsMove, laterItemsReject, divisionsDiffer, takenEpochsEnd bool
}

var modelAll = modelRules{true, true, true, true, true, true, true}

// modelAbove returns an epoch that no lost history has used.
func modelAbove(epoch int) int { return epoch/modelJump*modelJump + modelJump }

// held reports whether a transaction holds the row of a queue in the data database.
func (s *modelState) held(q int) bool {
	for i := range s.servers {
		if s.servers[i][q].open {
			return true
		}
	}
	return false
}

// selected reports whether a server has the item.
func (s *modelState) selected() bool {
	for i := range s.servers {
		for q := range s.servers[i] {
			if s.servers[i][q].page > 0 {
				return true
			}
		}
	}
	return false
}

// itemIn returns the queue of the item.
func (r modelRoster) itemIn() int {
	return slices.IndexFunc([]int{0, 1}, func(q int) bool { return r.rows[q].items.has(q) })
}

// give writes the row of a queue.
func (r *modelRoster) give(q int, row modelRow) {
	r.rows[q] = row
	r.high = max(r.high, row.epoch)
}

// next returns the states that one step leads to, with the names of the steps.
func (r modelRules) next(s modelState) (steps []string, states []modelState) {
	add := func(name string, s modelState) { steps, states = append(steps, name), append(states, s) }
	if s.effects > 0 && !s.selected() || s.roster.high > modelHighest {
		return nil, nil
	}
	q := s.roster.itemIn() // the owner of the other queue does not matter
	row := s.roster.rows[q]
	for server := 1; server <= modelServers && s.roster.high%modelJump < modelEpochs; server++ {
		if n := s; row.server != server { // an expired owner does not know that it is
			n.roster.give(q, modelRow{row.epoch + 1, server, row.items})
			add(fmt.Sprintf("plan: queue %d to %d under %d", q, server, n.roster.rows[q].epoch), n)
		}
	}
	if s.changes < modelChanges && s.roster.high%modelJump < modelEpochs {
		s.divide(add)
	}
	if n := s; !s.saved {
		n.saved, n.standby = true, s.roster
		add("the standby lags from now on", n)
	}
	if n := s; s.saved && !s.lost && s.roster != s.standby {
		n.lost, n.roster = true, s.standby
		add("the standby is promoted", n)
	}
	for i := range modelServers {
		for q := range modelQueues {
			r.work(s, i, q, func(name string, n modelState) { add(fmt.Sprintf("server %d, queue %d: %s", i+1, q, name), n) })
		}
	}
	return steps, states
}

// divide adds the other ways to divide the items.
func (s modelState) divide(add func(string, modelState)) {
	now, epoch := s.roster.rows[0].items, s.roster.high+1
	s.changes++
	n := s
	if now.total == 1 {
		half := modelItems{now.division, 2}
		n.roster.give(0, modelRow{s.roster.rows[0].epoch + 1, s.roster.rows[0].server, half})
		n.roster.give(1, modelRow{epoch, 0, half})
		add("split", n)
	} else {
		n.roster.rows[1] = modelRow{}
		n.roster.give(0, modelRow{epoch, 0, modelItems{now.division, 1}})
		add("merge", n)
	}
	for total := 1; total <= modelQueues && s.divisions < modelDivisions; total++ {
		n := s
		n.divisions++
		n.roster.rows = [modelQueues]modelRow{}
		for q := range total {
			n.roster.give(q, modelRow{epoch, s.roster.rows[q].server, modelItems{n.divisions, total}})
		}
		add(fmt.Sprintf("another number of queues: %d", total), n)
	}
}

// work adds the steps of a server for a queue.
func (r modelRules) work(s modelState, i, q int, add func(string, modelState)) {
	me := s.servers[i][q]
	if row := s.roster.rows[q]; !me.open && row.server == i+1 && row != me.view { // what was selected before is dropped
		n := s
		n.servers[i][q] = modelServer{view: row}
		add("granted", n)
	}
	owns := me.view.server > 0
	if owns && !me.raised && (me.page == 0 || !r.raiseFirst) {
		if n, ok := r.raise(s, i, q); ok {
			add("raise", n)
		}
	}
	if owns && me.page == 0 && (me.raised || !r.raiseFirst) && s.effects == 0 && me.view.items.has(q) {
		n := s
		n.servers[i][q].page = me.view.epoch
		add("select", n)
	}
	if owns && me.raised && !me.open { // another batch of the queue was fenced, and the server raises again
		n := s
		n.servers[i][q].raised = false
		if n, ok := r.raise(n, i, q); ok && n.servers[i][q].raised && n != s {
			add("raise again", n)
		}
	}
	switch {
	case me.page > 0 && !me.open && me.raised:
		n := s
		if row := s.data[q]; row.epoch == me.page && row.server == i+1 || !r.fenceCompares {
			n.servers[i][q].open = true
			add("fence", n)
		} else {
			n.servers[i][q] = modelServer{}
			add("is fenced", n)
		}
	case me.open:
		n := s
		n.servers[i][q].open, n.servers[i][q].page = false, 0
		add("rollback", n)
		n.effects++
		add("commit", n)
	}
}

// mayShare reports whether two queues of the data database may have an item in common.
func (r modelRules) mayShare(q int, items modelItems, other int, its modelItems) bool {
	switch {
	case its.total == 0:
		return false
	case q == other:
		return items != its
	case r.divisionsDiffer && items.division != its.division:
		return true
	}
	return items.total == 1 || its.total == 1
}

// raise is the transaction of Raise. It reports false while it waits.
func (r modelRules) raise(s modelState, i, q int) (modelState, bool) {
	me := &s.servers[i][q]
	row := s.data[q]
	if row == me.view {
		me.raised = true
		return s, true
	}
	again := !r.takenEpochsEnd && row.epoch == me.view.epoch && row.items.total == 0
	if row.epoch >= me.view.epoch && row.epoch > 0 && !again {
		return s.ahead(i, q, row), true
	}
	for other, its := range s.data {
		if !r.mayShare(q, me.view.items, other, its.items) {
			continue
		}
		if its.epoch >= me.view.epoch && r.laterItemsReject {
			return s.ahead(i, q, its), true
		}
		if s.held(other) && r.raiseWaits {
			return s, false
		}
		if r.itemsMove {
			s.data[other] = modelRow{epoch: its.epoch}
		}
	}
	if s.held(q) && r.raiseWaits {
		return s, false
	}
	s.data[q] = me.view
	me.raised = true
	return s, true
}

// ahead is what follows if the data database has the items under a later epoch: the roster is asked, and if it says that
// the queue is the server's, it has lost history, and its epochs rise (H8).
func (s modelState) ahead(i, q int, row modelRow) modelState {
	if s.roster.rows[q] == s.servers[i][q].view {
		s.alarm = s.alarm || !s.lost
		epoch := modelAbove(max(row.epoch, s.roster.high))
		for other := range s.roster.rows {
			if s.roster.rows[other].items.total > 0 {
				s.roster.rows[other].epoch = epoch
			}
		}
		s.roster.high = epoch
	}
	s.servers[i][q] = modelServer{}
	return s
}

// explore goes through all states, and returns the steps to a second effect or to a false alarm, or none.
func (r modelRules) explore() (states int, trace []string) {
	type from struct {
		state modelState
		step  string
	}
	begin := modelState{}
	for q := range modelQueues {
		begin.roster.give(q, modelRow{1, 1, modelItems{1, modelQueues}})
	}
	begin.divisions = 1
	seen := map[modelState]from{begin: {}}
	queue := []modelState{begin}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s.effects > 1 || s.alarm {
			for at := s; at != begin; at = seen[at].state {
				trace = append(trace, seen[at].step)
			}
			slices.Reverse(trace)
			return len(seen), trace
		}
		steps, states := r.next(s)
		for n, state := range states {
			if _, there := seen[state]; !there {
				seen[state] = from{s, steps[n]}
				queue = append(queue, state)
			}
		}
	}
	return len(seen), nil
}

// F11: an item takes effect once, whatever servers, plans and rosters do, and no loss of history is reported that was
// none; and not if a rule is broken.
func TestDataModel(t *testing.T) {
	t.Parallel()
	states, trace := modelAll.explore()
	if trace != nil {
		t.Errorf("two effects, or a false alarm:\n%s", strings.Join(trace, "\n"))
	}
	t.Logf("%d states", states)
	for what, broken := range map[string]func(*modelRules){
		"the owner selects before it raises":          func(r *modelRules) { r.raiseFirst = false },
		"the raise does not wait":                     func(r *modelRules) { r.raiseWaits = false },
		"the fence does not compare":                  func(r *modelRules) { r.fenceCompares = false },
		"the raise leaves the items in other rows":    func(r *modelRules) { r.itemsMove = false },
		"later rows with the items reject no raise":   func(r *modelRules) { r.laterItemsReject = false },
		"two divisions are compared by their totals":  func(r *modelRules) { r.divisionsDiffer = false },
		"an epoch whose items were taken rises again": func(r *modelRules) { r.takenEpochsEnd = false },
	} {
		t.Run(what, func(t *testing.T) {
			r := modelAll
			broken(&r)
			if _, trace := r.explore(); trace == nil {
				t.Error("no item took effect twice, and there was no false alarm")
			} else if testing.Verbose() {
				t.Log("\n\t" + strings.Join(trace, "\n\t"))
			}
		})
	}
}
