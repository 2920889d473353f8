package runs_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/sqlite"
	"github.com/dutyrota/rota/internal/runs"
)

// runWorld is a database in memory, with fake time, and servers that take turns at all steps of runs. Each step is one
// transaction or a few. A server may die between two of them and leave its work unfinished.
type runWorld struct {
	*rapid.T
	c       *center.Center
	servers []*runServer
	owners  map[string]*runServer // of queues, "b/1"
	epochs  map[string]int64
	states  map[string]string // of runs, after the previous step
	commits map[string]int64  // the epoch of the last commit to a queue of a run
}

// runServer is the belief of one server. It learns late that it has lost a queue.
type runServer struct {
	name    string
	held    map[string]int64      // the epochs under which it believes to own queues, by queue
	sweeps  map[string]runs.Sweep // by queue
	zombies []runs.Sweep          // sweeps from before its crashes; they still write
}

// runTimeout is longer than all sweeps together: while servers work, no run reaches its deadline.
const runTimeout = 1000 * time.Hour

var runTasks = map[string][]center.After{
	"a": nil,
	"b": {{Upstream: "a"}},
	"c": {{Upstream: "a", Rule: center.RuleFinished}},
	"d": {{Upstream: "b"}, {Upstream: "c"}},
}

// In random interleavings of fire, open, claim, finish, rerun and crash, every slot has at most one run, every run ends, no
// older epoch commits to a queue of a run after a newer one, and no dependant starts before its upstreams have ended.
func TestRunsThroughRandomHistories(t *testing.T) {
	t.Parallel()
	if raced {
		t.Skip("one goroutine at a time: it is run without the race detector")
	}
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			c, err := center.Open(rt.Context(), sqlite.URL("sqlite::memory:"), center.Options{})
			if err != nil {
				rt.Fatal(err)
			}
			defer c.Close()
			newRunWorld(rt, c).live()
		})
	})
}

func newRunWorld(t *rapid.T, c *center.Center) *runWorld {
	w := &runWorld{
		T: t, c: c, owners: map[string]*runServer{}, epochs: map[string]int64{}, states: map[string]string{}, commits: map[string]int64{},
		servers: []*runServer{newRunServer("A"), newRunServer("B"), newRunServer("C")},
	}
	for _, task := range w.tasks() {
		settings := center.Settings{Mode: center.ModeRun, Queues: 2, QueueRetry: time.Minute, RunTimeout: runTimeout, MaxRecoveries: 3}
		_, err := c.Tasks().Define(w.Context(), task, settings)
		w.must(err)
		w.must(c.Engine().Dependencies.Define(w.Context(), task, runTasks[task]...))
		for _, q := range []string{"0", "1"} {
			w.give(task, q, w.servers[0])
		}
	}
	w.makeTrigger()
	return w
}

func newRunServer(name string) *runServer {
	return &runServer{name: name, held: map[string]int64{}, sweeps: map[string]runs.Sweep{}}
}

func (w *runWorld) makeTrigger() {
	_, err := w.c.Engine().Triggers.Define(w.Context(), center.Trigger{
		Name: "t", Target: "a", Kind: center.TriggerEvery, Expression: "10m", StartAt: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		Misfire: rapid.SampledFrom([]string{center.MisfireOne, center.MisfireSkip, center.MisfireAll}).Draw(w.T, "misfire"),
		Overlap: rapid.SampledFrom([]string{center.OverlapSkip, center.OverlapWait}).Draw(w.T, "overlap"), CatchupMax: 3,
	})
	w.must(err)
}

func (w *runWorld) tasks() []string { return []string{"a", "b", "c", "d"} }

func (w *runWorld) must(err error) {
	if err != nil {
		w.Fatal(err)
	}
}

func (w *runWorld) exec(query string, args ...any) {
	_, err := w.c.DB().ExecContext(w.Context(), query, args...)
	w.must(err)
}

func (w *runWorld) give(task, queue string, to *runServer) {
	id := task + "/" + queue
	w.epochs[id]++
	w.owners[id] = to
	to.held[id] = w.epochs[id]
	w.exec(`UPDATE schedule_queue SET cur_server = ?, epoch = ? WHERE task_type = ? AND queue_id = ?`, to.name, w.epochs[id], task, queue)
}

// task draws a task type. It draws the upstream ones more often, because they make the runs of the others.
func (w *runWorld) task() string {
	return rapid.SampledFrom([]string{"a", "a", "a", "b", "b", "c", "d"}).Draw(w.T, "task")
}

func (w *runWorld) server() *runServer { return rapid.SampledFrom(w.servers).Draw(w.T, "server") }

// run draws a run in one of the states. It returns "" if there is none.
func (w *runWorld) run(states ...string) string {
	var ids []string
	for id, state := range w.states {
		if slices.Contains(states, state) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(w.T, "run")
}

// live takes random steps, and at the end lets all runs end. It takes steps that make progress more often.
func (w *runWorld) live() {
	steps := []struct {
		often int
		do    func()
	}{
		{3, func() { time.Sleep(time.Duration(rapid.IntRange(1, 900).Draw(w.T, "seconds")) * time.Second) }},
		{6, func() { w.must(second(w.c.Engine().Scheduler.Tick(w.Context(), w.task()))) }},
		{1, func() { w.must(w.c.Engine().Scheduler.FireDue(w.Context(), "a")) }},
		{2, func() { w.must(w.c.Engine().Scheduler.OpenNext(w.Context(), w.task())) }},
		{2, w.submit},
		{6, w.claim},
		{6, func() { w.write(w.sweeps()) }},
		{2, func() { w.write(w.zombies()) }},
		{3, w.move},
		{1, func() { w.server().crash() }},
		{1, func() { w.onRun(w.c.Engine().Scheduler.CloseRun, center.RunRunning) }},
		{2, func() { w.onRun(w.rerun) }},
		{1, func() { w.onRun(w.cancel, center.RunWaiting, center.RunReady, center.RunRunning) }},
		{1, w.setBack},
		{1, func() {
			w.must(w.c.Engine().Triggers.Delete(w.Context(), "t", "test"))
			w.makeTrigger()
		}},
	}
	var all []func()
	for _, s := range steps {
		all = append(all, slices.Repeat([]func(){s.do}, s.often)...)
	}
	for range rapid.IntRange(1, 120).Draw(w.T, "steps") {
		all[rapid.IntRange(0, len(all)-1).Draw(w.T, "step")]()
		w.check()
	}
	w.endAll(rapid.Bool().Draw(w.T, "workers at the end"))
}

func second[T any](_ T, err error) error { return err }

// endAll pauses the trigger and waits until every run has ended. With workers the queues are swept; without workers each run
// reaches its deadline.
func (w *runWorld) endAll(workers bool) {
	w.exec(`UPDATE schedule_trigger SET status = 'PAUSED'`)
	for range 300 {
		time.Sleep(time.Minute)
		for _, task := range w.tasks() {
			_, err := w.c.Engine().Scheduler.Tick(w.Context(), task)
			w.must(err)
			if workers {
				w.work(task)
			}
		}
		var open int
		w.must(w.c.DB().QueryRowContext(w.Context(), `SELECT COUNT(*) FROM schedule_run WHERE finished_at IS NULL`).Scan(&open))
		if open == 0 {
			w.check()
			return
		}
		if !workers {
			time.Sleep(runTimeout)
		}
	}
	w.check()
	w.Fatalf("not all runs have ended: %v", w.states)
}

func (w *runWorld) work(task string) {
	for _, q := range []string{"0", "1"} {
		id := task + "/" + q
		sweeps, err := w.c.Engine().Sweeps.Claim(w.Context(), task, w.owners[id].name, []center.QueueEpoch{{ID: q, Epoch: w.epochs[id]}}, 1)
		w.must(err)
		for _, s := range sweeps { // the server dies before it closes the run: the next tick does
			w.committed(s, w.c.Engine().Sweeps.FinishQueueOnly(w.Context(), s))
		}
	}
}
