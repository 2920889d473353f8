package manager

import (
	"flag"
	"hash/maphash"
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
)

var modelDeeper = flag.Int("model.deeper", 0, "how many steps deeper than by default all interleavings of the model are explored")

// convergeEach: one state in so many must converge.
const convergeEach = 500

// node is a state and the path to it.
type node struct {
	*world
	from *node
	step step
}

// explore visits once each state that can be reached in so many steps. It returns the number of states, and the path to
// the first that is wrong.
func explore(start *world, depth int) (states int, wrong *node) {
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{}
	layer := []*node{{world: start}}
	var key []byte
	var steps []step
	for range depth {
		var next []*node
		for _, n := range layer {
			steps = n.possible(steps[:0])
			for _, s := range steps {
				c := &node{n.clone(), n, s}
				c.take(s)
				key = c.key(key[:0])
				hash := maphash.Bytes(seed, key)
				if _, ok := seen[hash]; ok {
					continue
				}
				seen[hash] = struct{}{}
				if c.wrong == "" && len(seen)%convergeEach == 0 {
					end := c.clone()
					end.converge()
					c.wrong = end.wrong
				}
				if c.wrong != "" {
					return len(seen), c
				}
				next = append(next, c)
			}
			n.world = nil // only the path is needed any more
		}
		layer = next
	}
	return len(seen), nil
}

// path returns the steps to a node.
func (n *node) path() (steps []step) {
	for ; n.from != nil; n = n.from {
		steps = append([]step{n.step}, steps...)
	}
	return steps
}

// menus are the kinds of faults of each exploration. With all kinds at once an exploration would not get deep.
var menus = []struct {
	name   string
	faults int
	depth  int
	kinds  []stepKind

	witness, retimed, returns, placed, rolled bool
}{
	{"no faults", 0, 9, nil, false, false, false, false, false},
	{"network", 2, 6, []stepKind{stepFail, stepHeartbeatFail, stepCutHeartbeat, stepCutRoster}, false, false, false, false, false},
	{"processes", 2, 6, []stepKind{stepCrash, stepPause, stepQuit}, false, false, false, false, false},
	{"processes with a witness", 2, 6, []stepKind{stepCrash, stepPause, stepFail}, true, false, false, false, false},
	{"lost replies and processes", 2, 6, []stepKind{stepFail, stepPause, stepCrash}, false, false, false, false, false},
	{"queues removed", 2, 6, []stepKind{stepDrop, stepFail}, false, false, false, false, false},
	{"calls that hang", 2, 6, []stepKind{stepHang, stepCutHeartbeat}, false, false, false, false, false},
	{"judge_dead_interval", 3, 6, []stepKind{stepSettings, stepHeartbeatFail}, false, true, false, false, false},
	{"restarts", 3, 6, []stepKind{stepQuit, stepCrash, stepHalt}, false, false, true, false, false},
	{"placement", 3, 6, []stepKind{stepPin, stepRoundUp, stepQuit}, false, false, false, true, false},
	{"loads", 3, 6, []stepKind{stepLoad, stepQuit, stepFail}, false, false, false, true, false},
	{"planner versions", 3, 6, []stepKind{stepUpgrade, stepCrash, stepQuit}, false, false, false, false, true},
	{"splits", 2, 5, []stepKind{stepResize, stepJobFail, stepCrash}, false, false, false, false, false},
	{"database", 1, 6, []stepKind{stepOutage, stepClock, stepEdit}, false, false, false, false, false},
	{"lost history", 2, 6, []stepKind{stepRestore, stepPause, stepCrash}, false, false, false, false, false},
	{"all", 3, 4, nil, false, false, false, false, false},
}

func TestModelExhaustively(t *testing.T) {
	racetest.Skip(t)
	for _, m := range menus {
		for _, b := range beginnings {
			t.Run(m.name+" "+b.name, func(t *testing.T) {
				t.Parallel()
				start, w, depth := time.Now(), b.world(), m.depth+*modelDeeper
				if testing.Short() {
					depth--
				}
				w.scene.faults, w.menu, w.witness, w.retimed, w.placed, w.rolled = m.faults, m.kinds, m.witness, m.retimed, m.placed, m.rolled
				if m.returns {
					w.returns = modelJudgeDead
				}
				if slices.Contains(m.kinds, stepRestore) {
					w.mayLose()
				}
				if slices.Contains(m.kinds, stepResize) {
					w.mayResize()
				}
				states, wrong := explore(w.clone(), depth)
				if wrong != nil {
					k := &walk{scene: *w.scene, start: w, steps: wrong.path()}
					t.Fatalf("%v", k.replay(k.steps, func(step, *world) {}))
				}
				t.Logf("%d states to depth %d in %v", states, depth, time.Since(start))
			})
		}
	}
}

// beginnings are the states at which the exhaustive exploration starts: two servers and two queues.
var beginnings = []struct {
	name  string
	world func() *world
}{
	{"at rest", func() *world {
		w := pair()
		w.join(&w.procs[1])
		w.rest(8)
		return w
	}},
	{"as the second joins", func() *world {
		w := pair()
		w.join(&w.procs[1])
		w.drive(&w.procs[1])
		return w
	}},
	{"as both leave", func() *world {
		w := pair()
		w.join(&w.procs[1])
		w.rest(8)
		w.quit(&w.procs[0])
		w.quit(&w.procs[1])
		return w
	}},
}

// pair returns a server that owns both queues, and one that has not joined. A tick is two heartbeats, so that a lease
// expires and a server is dead after a few ticks.
func pair() *world {
	w := newWorld(&scene{tick: 2 * modelHeartbeat, faults: 3}, 2, 2)
	w.join(&w.procs[0])
	w.rest(4)
	return w
}

func (w *world) rest(rounds int) {
	for range rounds {
		w.round()
	}
	w.faults = 0
}

// A state that is explored must not change another one: they shared the map of retired epochs once.
func TestModelStatesAreIndependent(t *testing.T) {
	w := pair()
	w.clone().procs[0].retire("0", 1)
	if len(w.procs[0].retired) > 0 {
		t.Error("an epoch that is retired in one state is retired in the state that it was cloned from")
	}
}
