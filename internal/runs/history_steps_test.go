package runs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/runs"
)

// setBack makes the trigger due at a slot that has fired already, perhaps before the trigger was deleted and made again.
func (w *runWorld) setBack() {
	w.exec(`UPDATE schedule_trigger SET next_fire_at = COALESCE((SELECT MAX(scheduled_at) FROM schedule_run WHERE trigger_name = 't'), next_fire_at)`)
}

// move gives a queue to another server. It prefers queues that are being swept.
func (w *runWorld) move() {
	task, queue := w.task(), rapid.SampledFrom([]string{"0", "1"}).Draw(w.T, "queue")
	if busy := w.sweeps(); len(busy) > 0 {
		s := rapid.SampledFrom(busy).Draw(w.T, "sweep")
		task, queue = s.TaskType, s.QueueID
	}
	w.give(task, queue, w.server())
}

func (w *runWorld) submit() {
	var after []string
	if up := w.run(center.RunReady, center.RunRunning, center.RunFailed, center.RunSuccess); up != "" && rapid.Bool().Draw(w.T, "after") {
		after = append(after, up)
	}
	_, _, err := w.c.Engine().Runs.Submit(w.Context(), w.task(), fmt.Sprint(rapid.IntRange(1, 5).Draw(w.T, "key")), "", after...)
	w.must(err)
}

// claim claims the queues that the server believes to own and does not sweep.
func (w *runWorld) claim() {
	task, s := w.task(), w.server()
	var held []center.QueueEpoch
	for _, q := range []string{"0", "1"} {
		if _, busy := s.sweeps[task+"/"+q]; !busy && s.held[task+"/"+q] > 0 {
			held = append(held, center.QueueEpoch{ID: q, Epoch: s.held[task+"/"+q]})
		}
	}
	sweeps, err := w.c.Engine().Sweeps.Claim(w.Context(), task, s.name, held, rapid.IntRange(1, 2).Draw(w.T, "limit"))
	w.must(err)
	for _, sweep := range sweeps {
		s.sweeps[task+"/"+sweep.QueueID] = sweep
		w.committed(sweep, nil)
	}
}

// sweeps returns the sweeps that the servers believe to own.
func (w *runWorld) sweeps() (list []runs.Sweep) {
	for _, s := range w.servers {
		for _, id := range slices.Sorted(maps.Keys(s.sweeps)) {
			list = append(list, s.sweeps[id])
		}
	}
	return list
}

// zombies returns the sweeps of the servers before their crashes.
func (w *runWorld) zombies() (list []runs.Sweep) {
	for _, s := range w.servers {
		list = append(list, s.zombies...)
	}
	return list
}

// write ends or saves one of the sweeps.
func (w *runWorld) write(sweeps []runs.Sweep) {
	if len(sweeps) == 0 {
		return
	}
	sweep := sweeps[rapid.IntRange(0, len(sweeps)-1).Draw(w.T, "sweep")]
	var err error
	ended := true
	switch what := rapid.SampledFrom([]string{"save", "finish", "finish and die", "fail", "suspend"}).Draw(w.T, "what"); what {
	case "save":
		err, ended = w.c.Engine().Sweeps.Save(w.Context(), sweep, runs.Progress{ItemsDone: sweep.ItemsDone + 1}), false
	case "finish":
		err = w.c.Engine().Sweeps.Finish(w.Context(), sweep, runs.Progress{})
	case "finish and die":
		err = w.c.Engine().Sweeps.FinishQueueOnly(w.Context(), sweep)
	case "fail":
		_, err = w.c.Engine().Sweeps.Fail(w.Context(), sweep, runs.Progress{}, "no", rapid.Bool().Draw(w.T, "final"))
	case "suspend":
		err = w.c.Engine().Sweeps.Suspend(w.Context(), sweep, runs.Progress{})
	}
	w.committed(sweep, err)
	for _, s := range w.servers {
		if id := sweep.TaskType + "/" + sweep.QueueID; (ended || err != nil) && s.sweeps[id] == sweep {
			delete(s.sweeps, id)
		}
	}
}

// crash makes zombies of all sweeps. They may still write: perhaps the process was only stopped for a while.
func (s *runServer) crash() {
	for _, sweep := range s.sweeps {
		s.zombies = append(s.zombies, sweep)
	}
	slices.SortFunc(s.zombies, func(a, b runs.Sweep) int {
		return slices.Compare([]byte(a.RunID+a.QueueID), []byte(b.RunID+b.QueueID))
	})
	s.sweeps = map[string]runs.Sweep{}
}

// onRun calls do with a run that is in one of the states; without states, with any run.
func (w *runWorld) onRun(do func(ctx context.Context, id string) error, states ...string) {
	if len(states) == 0 {
		states = slices.Sorted(maps.Values(w.states))
	}
	if id := w.run(states...); id != "" {
		w.must(do(w.Context(), id))
	}
}

func (w *runWorld) rerun(ctx context.Context, id string) error {
	may := slices.Contains([]string{center.RunFailed, center.RunCancelled, center.RunDependentFailed}, w.states[id])
	err := w.c.Engine().Runs.Rerun(ctx, id, "test")
	if !may && !errors.Is(err, center.ErrRunState) {
		w.Fatalf("rerun although it is %s: %v", w.states[id], err)
	}
	if !may {
		return nil
	}
	return err
}

// cancel cancels a run. The process may die once the request is committed.
func (w *runWorld) cancel(ctx context.Context, id string) error {
	if rapid.Bool().Draw(w.T, "dies") {
		_, err := w.c.DB().ExecContext(ctx, `UPDATE schedule_run SET cancel_requested = TRUE WHERE run_id = ?`, id)
		return err
	}
	return w.c.Engine().Runs.Cancel(ctx, id, "test")
}
