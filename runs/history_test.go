package runs_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// In random histories of firing, opening, claiming, finishing, rerunning and crashing, a slot has at most one run,
// every run ends, a queue of a run commits under rising epochs, and no dependant begins before its upstreams have
// ended.
func TestRunsThroughRandomHistories(t *testing.T) {
	t.Parallel()
	racetest.Skip(t) // one goroutine runs at a time
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			c, err := center.Open(rt.Context(), sqlite.URL("sqlite::memory:"), center.Options{})
			if err != nil {
				rt.Fatal(err)
			}
			defer c.Close()
			newRunModel(rt, c).run()
		})
	})
}

// runModel drives one database in memory, in fake time, and knows what must hold in it. Several servers take turns at
// everything that can happen to runs. Each step is one transaction of the engine, or a few. Between two steps a server
// may crash and leave its sweeps unfinished. It has a method for each kind of step and for each check; all share what
// it knows.
type runModel struct {
	*rapid.T
	c       *center.Center
	servers []*modelServer
	owners  map[string]*modelServer // of queues, "b/1"
	epochs  map[string]int64
	states  map[string]string // of runs, after the previous step
	commits map[string]int64  // the epoch of the last commit to a queue of a run
}

// modelServer is what one server believes. It learns late that it has lost a queue.
type modelServer struct {
	name   string
	owned  map[string]int64      // the epochs of the queues that it believes to own, by "b/1"
	sweeps map[string]runs.Sweep // by "b/1"
	stale  []runs.Sweep          // of its processes that crashed, or were stopped and still write
}

// runTimeout is longer than all sweeps take: if servers sweep, no run times out.
const runTimeout = 1000 * time.Hour

var runTasks = map[string][]runs.After{
	"a": nil,
	"b": {{Upstream: "a"}},
	"c": {{Upstream: "a", Rule: runs.RuleFinished}},
	"d": {{Upstream: "b"}, {Upstream: "c"}},
	"e": nil,
	"f": {{Upstream: "b"}, {Upstream: "e"}},
}

func newRunModel(t *rapid.T, c *center.Center) *runModel {
	m := &runModel{
		T: t, c: c, owners: map[string]*modelServer{}, epochs: map[string]int64{}, states: map[string]string{},
		commits: map[string]int64{},
		servers: []*modelServer{newModelServer("A"), newModelServer("B"), newModelServer("C")},
	}
	for _, task := range m.tasks() {
		settings := center.Settings{
			Mode: center.ModeRun, Queues: 2, QueueRetry: time.Minute, RunTimeout: runTimeout,
			MaxRecoveries: 3,
		}
		_, err := ops.New(c).Tasks().Define(m.Context(), task, settings)
		m.must(err)
		m.must(centertest.RunAfter(m.Context(), c, task, runTasks[task]...))
		for _, q := range []string{"0", "1"} {
			m.assign(task, q, m.servers[0])
		}
	}
	m.defineTrigger()
	_, err := c.Engine().Triggers.Define(m.Context(), runs.Trigger{
		Name: "u", Target: "e", Kind: runs.TriggerEvery, Expression: "10m",
		StartAt: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), Overlap: runs.OverlapWait,
	})
	m.must(err)
	return m
}

func newModelServer(name string) *modelServer {
	return &modelServer{name: name, owned: map[string]int64{}, sweeps: map[string]runs.Sweep{}}
}

func (m *runModel) defineTrigger() {
	_, err := m.c.Engine().Triggers.Define(m.Context(), runs.Trigger{
		Name: "t", Target: "a", Kind: runs.TriggerEvery, Expression: "10m",
		StartAt: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		Misfire: rapid.SampledFrom([]string{runs.MisfireOne, runs.MisfireSkip, runs.MisfireAll}).Draw(m.T, "misfire"),
		Overlap: rapid.SampledFrom([]string{runs.OverlapSkip, runs.OverlapWait}).Draw(m.T, "overlap"), CatchupMax: 3,
	})
	m.must(err)
}

func (m *runModel) tasks() []string { return []string{"a", "b", "c", "d", "e", "f"} }

func (m *runModel) must(err error) {
	if err != nil {
		m.Fatal(err)
	}
}

func (m *runModel) exec(query string, args ...any) {
	_, err := m.c.DB().ExecContext(m.Context(), query, args...)
	m.must(err)
}

// assign makes a server the owner of a queue, under a new epoch.
func (m *runModel) assign(task, queue string, to *modelServer) {
	id := task + "/" + queue
	m.epochs[id]++
	m.owners[id] = to
	to.owned[id] = m.epochs[id]
	m.exec(`UPDATE schedule_queue SET cur_server = ?, epoch = ? WHERE task_type = ? AND queue_id = ?`, to.name,
		m.epochs[id], task, queue)
}

// run takes random steps and then ends all runs. Steps that others depend on have a higher weight.
func (m *runModel) run() {
	steps := []struct {
		weight int
		do     func()
	}{
		{3, func() { time.Sleep(time.Duration(rapid.IntRange(1, 900).Draw(m.T, "seconds")) * time.Second) }},
		{6, func() { m.must(errorOf(m.c.Engine().Scheduler.Tick(m.Context(), m.drawTask()))) }},
		{1, func() { m.must(m.c.Engine().Scheduler.FireDue(m.Context(), "a")) }},
		{1, func() { m.must(m.c.Engine().Scheduler.FireDue(m.Context(), "e")) }},
		{2, func() { m.must(m.c.Engine().Scheduler.OpenNext(m.Context(), m.drawTask())) }},
		{2, m.submit},
		{6, m.claim},
		{6, func() { m.writeOne(m.sweeps()) }},
		{2, func() { m.writeOne(m.staleSweeps()) }},
		{3, m.moveQueue},
		{1, func() { m.drawServer().crash() }},
		{1, func() { m.changeRun(m.c.Engine().Scheduler.CloseRun, runs.Running) }},
		{2, func() { m.changeRun(m.rerun) }},
		{1, func() { m.changeRun(m.cancel, runs.Waiting, runs.Ready, runs.Running) }},
		{1, m.rewindTrigger},
		{1, m.startBackfill},
		{1, m.changeBackfill},
		{1, func() {
			m.must(m.c.Engine().Triggers.Delete(m.Context(), "t", "test"))
			m.defineTrigger()
		}},
	}
	var all []func()
	for _, s := range steps {
		all = append(all, slices.Repeat([]func(){s.do}, s.weight)...)
	}
	for range rapid.IntRange(1, 120).Draw(m.T, "steps") {
		all[rapid.IntRange(0, len(all)-1).Draw(m.T, "step")]()
		m.check()
	}
	m.endAllRuns(rapid.Bool().Draw(m.T, "servers at the end"))
}

// errorOf returns the error of a call with two results.
func errorOf[T any](_ T, err error) error { return err }

// endAllRuns pauses the trigger and waits until every run has ended: through the sweeps of its queues or, without
// servers, at its deadline.
func (m *runModel) endAllRuns(servers bool) {
	m.exec(`UPDATE schedule_trigger SET status = 'PAUSED'`)
	m.exec(`UPDATE schedule_backfill SET paused = FALSE`)
	for range 300 {
		time.Sleep(time.Minute)
		for _, task := range m.tasks() {
			_, err := m.c.Engine().Scheduler.Tick(m.Context(), task)
			m.must(err)
			if servers {
				m.sweepTask(task)
			}
		}
		var open int
		m.must(m.c.DB().QueryRowContext(m.Context(), `SELECT (SELECT COUNT(*) FROM schedule_run WHERE finished_at IS NULL) +
			(SELECT COUNT(*) FROM schedule_backfill WHERE state = 'RUNNING')`).Scan(&open))
		if open == 0 {
			m.check()
			m.checkBackfills()
			return
		}
		if !servers {
			time.Sleep(runTimeout)
		}
	}
	m.check()
	m.Fatalf("states of the runs after 300 rounds: got %v, want all runs and backfills ended", m.states)
}

// sweepTask claims and finishes all queues of a task type. Each finish crashes before the finaliser: the next tick ends
// the run.
func (m *runModel) sweepTask(task string) {
	for _, q := range []string{"0", "1"} {
		id := task + "/" + q
		sweeps, err := m.c.Engine().Sweeps.Claim(m.Context(), task, m.owners[id].name,
			[]center.QueueEpoch{{ID: q, Epoch: m.epochs[id]}}, 1)
		m.must(err)
		for _, s := range sweeps {
			m.checkCommit(s, m.c.Engine().Sweeps.FinishOnly(m.Context(), s))
		}
	}
}
