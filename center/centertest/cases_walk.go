package centertest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plan/plantest"
	"github.com/dutyrota/rota/internal/roster"
)

// testWalk takes random steps that servers take, and the same steps in a roster in memory. After each step both must have
// the same owners, requesters and epochs. The roster in memory refuses a plan that takes a queue from a live owner (P5).
func testWalk(t *testing.T, c *center.Center) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newFixture(t, c, center.Settings{Queues: 5})
			w := &walk{fixture: r, rnd: rand.New(rand.NewPCG(seed, 1))}
			w.want.Queues = plantest.Numbered(0, 5)
			for i := range w.want.Queues {
				w.want.Queues[i].Epoch = r.epoch(fmt.Sprint(i))
			}
			for range 60 {
				w.step()
				w.check()
			}
			w.handOverAll()
		})
	}
}

// walk is a random history of one task type.
type walk struct {
	*fixture
	rnd  *rand.Rand
	want plantest.Roster // with short names
	next int             // the number of the next server

	views map[string]roster.View // as last read, by the names of the servers
}

// step lets a server join, or lets one leave, expire, drain, clear its hung queues or hand over.
func (w *walk) step() {
	servers := w.want.Servers
	if len(servers) == 0 || w.rnd.IntN(6) == 0 && len(servers) < 4 {
		var hung []string
		if w.rnd.IntN(3) == 0 {
			hung = []string{fmt.Sprint(w.rnd.IntN(5)), "none"}
		}
		w.start(fmt.Sprint("S", w.next), hung...)
		w.next++
		return
	}
	at := w.rnd.IntN(len(servers))
	name := servers[at].UUID
	switch w.rnd.IntN(7) {
	case 0:
		w.must(w.c.Roster().Server(w.task, w.uuid(name)).Leave(w.Context(), nil, roster.Reservation{}))
		w.want.Remove(name)
		w.must(w.want.Rebalance())
	case 1:
		if len(servers) > 1 {
			w.makeSilent(name)
			w.want.Remove(name)
			w.rebalanceExpiring(w.want.Servers[0].UUID)
			w.must(w.want.Rebalance())
		}
	case 2:
		w.must(w.c.Roster().Server(w.task, w.uuid(name)).Drain(w.Context(), roster.Reservation{}))
		w.rebalance(name)
		w.want.Drain(name)
		w.must(w.want.Rebalance())
	case 3:
		w.clearHung(name, servers[at].HungQueues...)
		w.rebalance(name)
		servers[at].HungQueues = nil
		w.must(w.want.Rebalance())
	default:
		w.releaseAll(name)
	}
}

// start lets a server join, with hung queues.
func (w *walk) start(name string, hung ...string) {
	w.joinHung(name, hung...)
	w.want.Join(name)
	w.want.Servers[len(w.want.Servers)-1].HungQueues = hung
	w.must(w.want.Rebalance())
}

// releaseAll hands over every queue that is requested from a server.
func (w *walk) releaseAll(name string) {
	w.want.ReleaseAll(name)
	v := w.view(name)
	var queues []roster.Handover
	for _, q := range v.Queues {
		if q.Owner == w.uuid(name) && q.Requester != "" {
			queues = append(queues, roster.Handover{QueueID: q.ID, Epoch: q.Epoch, Requester: q.Requester})
		}
	}
	if len(queues) == 0 {
		return
	}
	want := v.Without(w.release(name, queues...))
	want.PlanVersion++   // the release is the only change since
	w.views[name] = want // its own number does not rise
	if diff := cmp.Diff(want, w.view(name), cmpopts.EquateEmpty()); diff != "" {
		w.Fatalf("the view after a release (-computed +read):\n%s", diff)
	}
}

// view reads the view of a server. A poll must read the same number, and another view than before has another number
// (S2).
func (w *walk) view(name string) roster.View {
	w.Helper()
	v, err := w.c.Roster().Server(w.task, w.uuid(name)).View(w.Context())
	w.must(err)
	version, err := w.c.Roster().Server(w.task, w.uuid(name)).QueueVersion(w.Context())
	w.must(err)
	if version != v.Version {
		w.Fatalf("the poll of %s reads the number %d, want that of its view: %+v", name, version, v)
	}
	before, seen := w.views[name]
	if w.views == nil {
		w.views = map[string]roster.View{}
	}
	w.views[name] = v
	news := before.QueueSum(w.uuid(name)) != v.QueueSum(w.uuid(name)) || before.QueueTotal != v.QueueTotal ||
		!maps.Equal(before.Changes, v.Changes)
	if seen && news && before.Version == v.Version {
		w.Fatalf("the number of %s stays %d although its view changes:\n%+v\n%+v", name, v.Version, before, v)
	}
	return v
}

// check compares the rows of the database with the roster in memory.
func (w *walk) check() {
	w.Helper()
	w.wantOwners(w.want.Rows()...)
	for _, q := range w.want.Queues {
		if epoch := w.epoch(q.ID); epoch != q.Epoch {
			w.Fatalf("queue %s, owned by %q, has epoch %d, want %d", q.ID, q.Owner, epoch, q.Epoch)
		}
	}
	for _, s := range w.want.Servers {
		w.view(s.UUID)
	}
}

// handOverAll lets all owners hand over what is requested. Then every queue has an owner and none is requested.
func (w *walk) handOverAll() {
	w.Helper()
	w.start("last")
	for _, s := range w.want.Servers {
		w.releaseAll(s.UUID)
	}
	w.check()
	if n := w.readInt("SELECT COUNT(*) FROM schedule_queue WHERE task_type = '%s' AND (cur_server IS NULL OR req_server IS NOT NULL)", w.task); n > 0 {
		w.Fatalf("%d queues have no owner or are requested, want 0: %v", n, w.owners())
	}
}
