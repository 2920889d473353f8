package centertest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dutyrota/rota/center"
)

// testWalk takes random steps through what servers do, and looks after each at what must always
// hold: an epoch only rises, and rises with every change of owner; the living are not robbed.
func testWalk(t *testing.T, c *center.Center) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newRoster(t, c, center.Settings{Queues: 5})
			w := &walk{roster: r, rnd: rand.New(rand.NewPCG(seed, 1))}
			for range 60 {
				w.step()
				w.check()
			}
			w.settle()
		})
	}
}

type walk struct {
	*roster
	rnd    *rand.Rand
	live   []string
	next   int
	last   []row
	robber string // who may take from the living: an owner that gives
}

type row struct {
	owner string
	epoch int64
}

func (w *walk) step() {
	w.robber = ""
	if len(w.live) == 0 || w.rnd.IntN(6) == 0 && len(w.live) < 4 {
		name := fmt.Sprint("S", w.next)
		w.next++
		w.join(name)
		w.live = append(w.live, name)
		return
	}
	i := w.rnd.IntN(len(w.live))
	name := w.live[i]
	switch w.rnd.IntN(6) {
	case 0:
		w.robber = name
		w.must(w.c.Leave(w.Context(), w.task, w.uuid(name), nil))
		w.live = append(w.live[:i], w.live[i+1:]...)
	case 1:
		if len(w.live) > 1 {
			w.robber = name
			w.silence(name)
			w.live = append(w.live[:i], w.live[i+1:]...)
			w.expire(w.live[0])
		}
	case 2:
		w.must(w.c.Drain(w.Context(), w.task, w.uuid(name)))
		w.assign(name)
	default:
		w.robber = name
		w.releaseAll(name)
	}
}

// releaseAll hands over everything that is requested from a server.
func (w *walk) releaseAll(name string) {
	v := w.view(name)
	var queues []center.Handover
	for _, q := range v.Queues {
		if q.Cur == w.uuid(name) && q.Req != "" {
			queues = append(queues, center.Handover{QueueID: q.ID, Epoch: q.Epoch, To: q.Req})
		}
	}
	if len(queues) == 0 {
		return
	}
	want := v.Without(w.release(name, queues...))
	want.PlanVersion++ // by the release, and by nobody else in a walk
	if diff := cmp.Diff(want, w.view(name), cmpopts.EquateEmpty()); diff != "" {
		w.Fatalf("a release changes more than the view knows (-known +read):\n%s", diff)
	}
}

// view reads the view of a server, and what a poll reads, which must be the same.
func (w *walk) view(name string) center.View {
	w.Helper()
	v, err := w.c.View(w.Context(), w.task, w.uuid(name))
	w.must(err)
	awaits, err := w.c.Awaits(w.Context(), w.uuid(name))
	w.must(err)
	if awaits != v.Awaits(w.uuid(name)) {
		w.Fatalf("a poll reads %+v, the view %+v", awaits, v)
	}
	return v
}

func (w *walk) check() {
	w.Helper()
	var now []row
	for i, owner := range w.column("SELECT cur_server FROM schedule_queue WHERE task_type = '%s' ORDER BY queue_index", w.task) {
		now = append(now, row{owner, w.epoch(fmt.Sprint(i))})
	}
	for _, name := range w.live {
		w.view(name)
	}
	for i, was := range w.last {
		is := now[i]
		if is.epoch < was.epoch || is.owner != was.owner && is.epoch == was.epoch {
			w.Fatalf("queue %d went from %+v to %+v", i, was, is)
		}
		if is.owner != was.owner && was.owner != "-" && was.owner != w.robber {
			w.Fatalf("queue %d was taken from %s, which lives: %+v", i, was.owner, is)
		}
	}
	w.last = now
}

// settle lets everybody do what was asked of them, and expects balance.
func (w *walk) settle() {
	w.Helper()
	w.join("last")
	w.live = append(w.live, "last")
	for _, name := range w.live {
		w.releaseAll(name)
	}
	if n := w.one("SELECT COUNT(*) FROM schedule_queue WHERE task_type = '%s' AND (cur_server IS NULL OR req_server IS NOT NULL)", w.task); n > 0 {
		w.Fatalf("%d queues are unsettled: %v", n, w.owners())
	}
}
