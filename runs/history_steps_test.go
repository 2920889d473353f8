package runs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// drawTask draws a task type, the first ones more often: runs of the others follow from theirs.
func (m *runModel) drawTask() string {
	return rapid.SampledFrom([]string{"a", "a", "a", "b", "b", "c", "d"}).Draw(m.T, "task")
}

func (m *runModel) drawServer() *modelServer { return rapid.SampledFrom(m.servers).Draw(m.T, "server") }

// drawRun draws a run in one of the states. It returns "" if there is none.
func (m *runModel) drawRun(states ...string) string {
	var ids []string
	for id, state := range m.states {
		if slices.Contains(states, state) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(m.T, "run")
}

// rewindTrigger makes the trigger due at a slot that it, or a deleted trigger of its name, has fired already.
func (m *runModel) rewindTrigger() {
	m.exec(`UPDATE schedule_trigger SET next_fire_at = COALESCE((SELECT MAX(scheduled_at) FROM schedule_run
		WHERE trigger_name = 't'), next_fire_at)`)
}

// startBackfill starts a backfill of the slots of the last hour, if there are any.
func (m *runModel) startBackfill() {
	now, err := m.c.Engine().Scheduler.Tick(m.Context(), "c")
	m.must(err)
	from := now.Now.Add(-time.Duration(rapid.IntRange(1, 60).Draw(m.T, "minutes")) * time.Minute)
	_, err = m.c.Engine().Backfills.Start(m.Context(), runs.BackfillRange{
		TaskType: "a", Trigger: "t", From: from, Parallel: rapid.IntRange(1, 3).Draw(m.T, "parallel"),
		RerunFailed: rapid.Bool().Draw(m.T, "rerun failed"), NoDependants: rapid.Bool().Draw(m.T, "no dependants"),
		NewestFirst: rapid.Bool().Draw(m.T, "newest first"),
	}, "test")
	if !errors.Is(err, runs.ErrBackfillRange) {
		m.must(err)
	}
}

// changeBackfill pauses, resumes or cancels the newest backfill.
func (m *runModel) changeBackfill() {
	list, err := ops.New(m.c).Backfills().List(m.Context(), runs.BackfillFilter{State: runs.BackfillRunning}, 1)
	m.must(err)
	if len(list) > 0 {
		b := m.c.Engine().Backfills
		pausing := func(paused bool) func(context.Context, string, string) error {
			return func(ctx context.Context, id, actor string) error { return b.SetPaused(ctx, id, paused, actor) }
		}
		changes := []func(context.Context, string, string) error{pausing(true), pausing(false), b.Cancel}
		change := rapid.SampledFrom(changes).Draw(m.T, "change")
		m.must(change(m.Context(), list[0].ID, "test"))
	}
}

// moveQueue gives a queue to another server, preferably one with a sweep.
func (m *runModel) moveQueue() {
	task, queue := m.drawTask(), rapid.SampledFrom([]string{"0", "1"}).Draw(m.T, "queue")
	if busy := m.sweeps(); len(busy) > 0 {
		s := rapid.SampledFrom(busy).Draw(m.T, "sweep")
		task, queue = s.TaskType, s.QueueID
	}
	m.assign(task, queue, m.drawServer())
}

func (m *runModel) submit() {
	var after []string
	if up := m.drawRun(runs.Ready, runs.Running, runs.Failed, runs.Success); up != "" &&
		rapid.Bool().Draw(m.T, "after") {
		after = append(after, up)
	}
	_, _, err := m.c.Engine().Runs.Submit(m.Context(), m.drawTask(),
		runs.Submission{Key: fmt.Sprint(rapid.IntRange(1, 5).Draw(m.T, "key")), After: after})
	m.must(err)
}

// claim claims for one server the queues that it believes to own and does not sweep.
func (m *runModel) claim() {
	task, s := m.drawTask(), m.drawServer()
	var queues []center.QueueEpoch
	for _, q := range []string{"0", "1"} {
		if _, busy := s.sweeps[task+"/"+q]; !busy && s.owned[task+"/"+q] > 0 {
			queues = append(queues, center.QueueEpoch{ID: q, Epoch: s.owned[task+"/"+q]})
		}
	}
	sweeps, err := m.c.Engine().Sweeps.Claim(m.Context(), task, s.name, queues, rapid.IntRange(1, 2).Draw(m.T, "limit"))
	m.must(err)
	for _, sweep := range sweeps {
		s.sweeps[task+"/"+sweep.QueueID] = sweep
		m.checkCommit(sweep, nil)
	}
}

// sweeps returns the sweeps that servers believe to be theirs.
func (m *runModel) sweeps() (list []runs.Sweep) {
	for _, s := range m.servers {
		for _, id := range slices.Sorted(maps.Keys(s.sweeps)) {
			list = append(list, s.sweeps[id])
		}
	}
	return list
}

// staleSweeps returns the sweeps of processes that crashed.
func (m *runModel) staleSweeps() (list []runs.Sweep) {
	for _, s := range m.servers {
		list = append(list, s.stale...)
	}
	return list
}

// writeOne saves or ends one of the sweeps.
func (m *runModel) writeOne(sweeps []runs.Sweep) {
	if len(sweeps) == 0 {
		return
	}
	sweep := sweeps[rapid.IntRange(0, len(sweeps)-1).Draw(m.T, "sweep")]
	var err error
	ended := true
	steps := []string{"save", "finish", "finish and crash", "fail", "suspend"}
	switch what := rapid.SampledFrom(steps).Draw(m.T, "what"); what {
	case "save":
		err, ended = m.c.Engine().Sweeps.Save(m.Context(), sweep, runs.Progress{ItemsDone: sweep.ItemsDone + 1}), false
	case "finish":
		err = m.c.Engine().Sweeps.Finish(m.Context(), sweep, runs.Progress{})
	case "finish and crash":
		err = m.c.Engine().Sweeps.FinishOnly(m.Context(), sweep)
	case "fail":
		_, err = m.c.Engine().Sweeps.Fail(m.Context(), sweep, runs.Progress{}, "no", rapid.Bool().Draw(m.T, "final"))
	case "suspend":
		err = m.c.Engine().Sweeps.Suspend(m.Context(), sweep, runs.Progress{})
	}
	m.checkCommit(sweep, err)
	for _, s := range m.servers {
		if id := sweep.TaskType + "/" + sweep.QueueID; (ended || err != nil) && reflect.DeepEqual(s.sweeps[id], sweep) {
			delete(s.sweeps, id)
		}
	}
}

// crash forgets the sweeps and does not end them. Their process may only have been stopped, and write again.
func (s *modelServer) crash() {
	for _, sweep := range s.sweeps {
		s.stale = append(s.stale, sweep)
	}
	slices.SortFunc(s.stale, func(a, b runs.Sweep) int {
		return slices.Compare([]byte(a.RunID+a.QueueID), []byte(b.RunID+b.QueueID))
	})
	s.sweeps = map[string]runs.Sweep{}
}

// changeRun calls do with the id of a run in one of the states, or of any run.
func (m *runModel) changeRun(do func(ctx context.Context, id string) error, states ...string) {
	if len(states) == 0 {
		states = slices.Sorted(maps.Values(m.states))
	}
	if id := m.drawRun(states...); id != "" {
		m.must(do(m.Context(), id))
	}
}

// rerun reruns a run, which the engine must refuse unless the run failed or was cancelled or skipped.
func (m *runModel) rerun(ctx context.Context, id string) error {
	allowed := slices.Contains([]string{
		runs.Failed, runs.Cancelled, runs.DependentFailed, runs.Skipped,
	}, m.states[id])
	err := m.c.Engine().Runs.Rerun(ctx, id, "test")
	if !allowed && !errors.Is(err, runs.ErrRunState) {
		m.Fatalf("rerun a run that is %s: got %v, want %v", m.states[id], err, runs.ErrRunState)
	}
	if !allowed {
		return nil
	}
	return err
}

// cancel cancels a run, or crashes after it has requested the cancellation.
func (m *runModel) cancel(ctx context.Context, id string) error {
	if rapid.Bool().Draw(m.T, "crashes") {
		_, err := m.c.DB().ExecContext(ctx, `UPDATE schedule_run SET cancel_requested = TRUE WHERE run_id = ?`, id)
		return err
	}
	return m.c.Engine().Runs.Cancel(ctx, id, "test")
}
