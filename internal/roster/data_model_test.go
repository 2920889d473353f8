package roster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// This file has a model of F11: one item, one data database, two servers that are slow, frozen or cut off at any point,
// plans that take queues from them, another number of queues, and a roster that loses history. TestDataModel goes
// through all states, and finds no second effect. With each rule broken it finds one.

const (
	modelServers = 2
	modelQueues  = 2
	modelEpochs  = 3  // plans stop there
	modelJump    = 10 // a loss of history raises the epochs by so much (H8)
)

// modelRow is the owner of a queue in the roster, or in the data database.
type modelRow struct {
	epoch  int
	server int // 0: none
}

// modelServer is what a server believes and does about one queue.
type modelServer struct {
	view   int  // the epoch under which it believes that it owns the queue; 0: it does not
	floor  int  // as it read it with the view
	raised bool // it has raised the view's epoch
	page   int  // the epoch under which it has selected the item; 0: it has not
	open   bool // its fenced transaction is open, and holds the row of the queue
}

type modelState struct {
	roster  [modelQueues]modelRow
	floor   int  // partition_floor
	second  bool // the second number of queues: the item belongs to queue 1, and before to queue 0
	lost    bool // the roster has lost history once
	data    [modelQueues]modelRow
	minimum int // the floor of the data database
	servers [modelServers][modelQueues]modelServer
	effects int
}

// modelRules are the rules of F11, of which a test may break one.
type modelRules struct {
	raiseFirst, raiseWaits, fenceCompares, floorRises bool
}

var modelAll = modelRules{true, true, true, true}

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
func (s *modelState) itemIn() int {
	if s.second {
		return 1
	}
	return 0
}

// next returns the states that one step leads to, with the names of the steps.
func (r modelRules) next(s modelState) (steps []string, states []modelState) {
	add := func(name string, s modelState) { steps, states = append(steps, name), append(states, s) }
	if s.effects > 0 && !s.selected() {
		return nil, nil
	}
	q := s.itemIn() // the owner of the other queue does not matter
	for server := 1; server <= modelServers && s.roster[q].epoch%modelJump < modelEpochs; server++ {
		if n := s; s.roster[q].server != server { // an expired owner does not know that it is
			n.roster[q] = modelRow{s.roster[q].epoch + 1, server}
			add(fmt.Sprintf("plan: queue %d to %d under %d", q, server, n.roster[q].epoch), n)
		}
	}
	if !s.second && s.roster[0].epoch%modelJump < modelEpochs {
		n := s
		n.second, n.floor = true, modelAbove(max(s.roster[0].epoch, s.roster[1].epoch))
		for q := range n.roster {
			n.roster[q] = modelRow{n.floor, 0}
		}
		add("another number of queues", n)
	}
	if !s.lost && !s.second && s.roster[0].epoch > 1 {
		n := s
		n.lost, n.roster[0] = true, modelRow{s.roster[0].epoch - 1, 0}
		add("the roster loses its last plan", n)
	}
	for i := range modelServers {
		for q := range modelQueues {
			r.work(s, i, q, func(name string, n modelState) { add(fmt.Sprintf("server %d, queue %d: %s", i+1, q, name), n) })
		}
	}
	return steps, states
}

// work adds the steps of a server for a queue.
func (r modelRules) work(s modelState, i, q int, add func(string, modelState)) {
	me := s.servers[i][q]
	if row := s.roster[q]; !me.open && row.server == i+1 && row.epoch != me.view { // what was selected before is dropped
		n := s
		n.servers[i][q] = modelServer{view: row.epoch, floor: s.floor}
		add("granted", n)
	}
	if me.view > 0 && !me.raised && (me.page == 0 || !r.raiseFirst) {
		if n, ok := r.raise(s, i, q); ok {
			add("raise", n)
		}
	}
	if me.view > 0 && me.page == 0 && (me.raised || !r.raiseFirst) && s.effects == 0 && q == s.itemOf(me) {
		n := s
		n.servers[i][q].page = me.view
		add("select", n)
	}
	switch {
	case me.page > 0 && !me.open && me.raised:
		n := s
		if s.data[q] == (modelRow{me.page, i + 1}) || !r.fenceCompares {
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

// itemOf returns the queue in which a server looks for the item: that of the number of queues which it knows.
func (s *modelState) itemOf(me modelServer) int {
	if s.second && me.floor == s.floor {
		return 1
	}
	return 0
}

// raise is the transaction of Raise. It reports false while it waits.
func (r modelRules) raise(s modelState, i, q int) (modelState, bool) {
	me := &s.servers[i][q]
	if r.floorRises {
		if me.view < s.minimum {
			return s.ahead(i, q, s.minimum), true
		}
		if me.floor > s.minimum {
			for other := range s.data {
				if s.data[other].epoch >= me.floor {
					continue
				}
				if s.held(other) && r.raiseWaits {
					return s, false
				}
				s.data[other] = modelRow{me.floor, 0}
			}
			s.minimum = me.floor
		}
	}
	row, mine := s.data[q], modelRow{me.view, i + 1}
	switch {
	case row == mine:
	case row.epoch < me.view, row.epoch == me.view && row.server == 0:
		if s.held(q) && r.raiseWaits {
			return s, false
		}
		s.data[q] = mine
	default:
		return s.ahead(i, q, row.epoch), true
	}
	me.raised = true
	return s, true
}

// ahead is what follows if the data database has a later owner: the roster is asked, and if it says that the queue is the
// server's, it has lost history, and its epochs rise (H8).
func (s modelState) ahead(i, q, epoch int) modelState {
	if s.roster[q] == (modelRow{s.servers[i][q].view, i + 1}) {
		for other := range s.roster {
			s.roster[other].epoch = modelAbove(max(epoch, s.roster[other].epoch))
		}
	}
	s.servers[i][q] = modelServer{}
	return s
}

// explore goes through all states, and returns the steps to a second effect, or none.
func (r modelRules) explore() (states int, trace []string) {
	type from struct {
		state modelState
		step  string
	}
	begin := modelState{}
	for q := range begin.roster {
		begin.roster[q].epoch = 1
	}
	seen := map[modelState]from{begin: {}}
	queue := []modelState{begin}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if s.effects > 1 {
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

// F11: an item takes effect once, whatever servers, plans and rosters do; and not if a rule is broken.
func TestDataModel(t *testing.T) {
	t.Parallel()
	states, trace := modelAll.explore()
	if trace != nil {
		t.Errorf("two effects:\n%s", strings.Join(trace, "\n"))
	}
	t.Logf("%d states", states)
	for what, broken := range map[string]func(*modelRules){
		"the owner selects before it raises":            func(r *modelRules) { r.raiseFirst = false },
		"the raise does not wait":                       func(r *modelRules) { r.raiseWaits = false },
		"the fence does not compare":                    func(r *modelRules) { r.fenceCompares = false },
		"another number of queues does not raise floor": func(r *modelRules) { r.floorRises = false },
	} {
		r := modelAll
		broken(&r)
		if _, trace := r.explore(); trace == nil {
			t.Errorf("%s, and no item took effect twice", what)
		} else if testing.Verbose() {
			t.Logf("%s:\n\t%s", what, strings.Join(trace, "\n\t"))
		}
	}
}
