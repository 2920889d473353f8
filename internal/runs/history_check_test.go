package runs_test

import (
	"errors"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/runs"
)

// committed records the commit of a sweep, and checks that its server owned the queue under its epoch.
func (w *runWorld) committed(s runs.Sweep, err error) {
	if errors.Is(err, center.ErrFenced) || errors.Is(err, center.ErrRunOver) {
		return
	}
	w.must(err)
	queue, key := s.TaskType+"/"+s.QueueID, s.RunID+"/"+s.QueueID
	if w.owners[queue].name != s.Server || w.epochs[queue] != s.Epoch {
		w.Fatalf("%s committed to queue %s under epoch %d, but %s owns it under epoch %d", s.Server, queue, s.Epoch, w.owners[queue].name, w.epochs[queue])
	}
	if s.Epoch < w.commits[key] {
		w.Fatalf("epoch %d committed to queue %s after epoch %d", s.Epoch, key, w.commits[key])
	}
	w.commits[key] = s.Epoch
}

// check checks the invariants after each step.
func (w *runWorld) check() {
	all := map[string]center.Run{}
	slots, running := map[string]bool{}, map[string]bool{}
	for _, task := range w.tasks() {
		runs, err := w.c.Runs().List(w.Context(), center.RunFilter{TaskType: task}, 10_000)
		w.must(err)
		for _, r := range runs {
			all[r.ID] = r.Run
			slot := r.TaskType + r.ScheduledAt.String()
			if r.Trigger != "" && slots[slot] {
				w.Fatalf("two runs of %s", slot)
			}
			slots[slot] = slots[slot] || r.Trigger != ""
			if r.State == center.RunRunning {
				if running[task] || r.DeadlineAt.IsZero() {
					w.Fatalf("two runs of %s are open, or one has no deadline: %+v", task, r)
				}
				running[task] = true
			}
		}
	}
	for _, r := range all {
		if r.State == w.states[r.ID] {
			continue
		}
		if r.State == center.RunRunning {
			w.mayBegin(r, all)
		}
		if r.Ended() {
			w.isOver(r)
		}
		w.states[r.ID] = r.State
	}
}

func (w *runWorld) mayBegin(r center.Run, all map[string]center.Run) {
	_, deps, err := w.c.Engine().Runs.Graph(w.Context(), r.ID)
	w.must(err)
	for _, d := range deps {
		up := all[d.Upstream]
		if d.Run == r.ID && up.State != center.RunSuccess && (d.Rule == center.RuleSuccess || !up.Ended()) {
			w.Fatalf("%s has begun after %s %s", r.TaskType, up.TaskType, up.State)
		}
	}
}

func (w *runWorld) isOver(r center.Run) {
	queues, err := w.c.Engine().Runs.Queues(w.Context(), r.ID)
	w.must(err)
	for _, q := range queues {
		open := q.State == center.RunQueuePending || q.State == center.RunQueueRunning
		if open || q.State != center.RunQueueDone && r.State == center.RunSuccess {
			w.Fatalf("run %s is %s, queue %s %s", r.ID, r.State, q.QueueID, q.State)
		}
	}
}
