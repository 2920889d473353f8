package manager_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

var inRuns = manager.Settings{Queues: 4, Mode: center.ModeRun, FetchNumber: 5, ExecuteNumber: 2, QueueRetry: 2 * time.Second}

// submit submits a run, after the workers have joined.
func (cl *cluster) submit(key string) string {
	cl.Helper()
	time.Sleep(time.Second)
	id, _, err := cl.c.Engine().Runs.Submit(cl.Context(), "settle", runs.Submission{Key: key})
	if err != nil {
		cl.Fatal(err)
	}
	return id
}

// ends waits until a run has ended and returns it.
func (cl *cluster) ends(id string, within time.Duration) runs.Run {
	cl.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		r, err := ops.New(cl.c).Runs().Get(cl.Context(), id)
		if err != nil {
			cl.Fatal(err)
		}
		if r.Ended() {
			return r.Run
		}
		if time.Now().After(deadline) {
			queues, err := cl.c.Engine().Runs.Queues(cl.Context(), id)
			cl.Fatalf("run %s is %s after %s: %+v, %v", id, r.State, within, queues, err)
		}
	}
}

func (cl *cluster) wantRun(r runs.Run, state string, done, failed int64) {
	cl.Helper()
	if r.State != state || r.ItemsDone != done || r.ItemsFailed != failed {
		cl.Fatalf("%s with %d items done and %d failed (%s), want %s, %d, %d", r.State, r.ItemsDone, r.ItemsFailed, r.Message, state, done, failed)
	}
}

// A run sweeps every queue until it is drained, once; nothing is done between the runs.
func TestRun(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := &store{takes: 100 * time.Millisecond}
		cl.serve(s, inRuns)
		s.put(50)
		time.Sleep(10 * time.Second)
		if s.selected() > 0 {
			cl.Fatal("something was selected without a run")
		}
		first := cl.submit("one")
		cl.wantRun(cl.ends(first, time.Minute), runs.Success, 50, 0)
		selects := s.selected()
		s.put(50)
		time.Sleep(time.Minute)
		if s.selected() != selects || s.left() != 50 {
			cl.Fatal("the run went on after its end")
		}
		if again := cl.submit("one"); again != first {
			cl.Fatal("two runs have one key")
		}
		cl.wantRun(cl.ends(cl.submit("two"), time.Minute), runs.Success, 50, 0)
		if s.doubled() {
			cl.Fatal("an item was executed twice")
		}
	})
}

// A second server joins during a run, and the first one leaves: what is swept stays swept.
func TestRunMoves(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := &store{takes: time.Second}
		a := cl.serve(s, inRuns)
		s.put(200)
		id := cl.submit("")
		time.Sleep(5 * time.Second)
		cl.serveAlso(s, inRuns)
		time.Sleep(10 * time.Second)
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		cl.wantRun(cl.ends(id, 5*time.Minute), runs.Success, 200, 0)
		if s.doubled() {
			cl.Fatal("an item was executed twice")
		}
		queues, err := cl.c.Engine().Runs.Queues(cl.Context(), id)
		if err != nil {
			cl.Fatal(err)
		}
		for _, q := range queues {
			if q.Attempt != 1 || q.Recoveries > 0 {
				cl.Errorf("a planned move counted as an attempt: %+v, want Attempt 1, Recoveries 0", q)
			}
		}
	})
}

// A queue whose requester is gone before the release is taken back and swept.
func TestRunWithAQueueThatWasNotReleased(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := &store{}
		cl.serve(s, inRuns)
		s.put(40)
		time.Sleep(10 * time.Second)
		cl.exec("UPDATE schedule_queue SET req_server = 'nobody', req_since = gmt_modified WHERE queue_id = '2'")
		time.Sleep(10 * time.Second) // the release was sent
		cl.exec("UPDATE schedule_queue SET req_server = NULL, req_since = NULL")
		cl.wantRun(cl.ends(cl.submit(""), time.Minute), runs.Success, 40, 0)
	})
}

// A server loses its row during a run: its next session takes the sweeps over.
func TestRunIsTakenOver(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := &store{takes: time.Second}
		cl.serve(s, inRuns)
		s.put(200)
		id := cl.submit("")
		time.Sleep(10 * time.Second)
		cl.exec("DELETE FROM schedule_server")
		r := cl.ends(id, 10*time.Minute)
		// What was done since the last save is not counted: 2 items a second of each of the 4 queues, for at most 9 s. With
		// each heartbeat, every 2 s, the server checks whether the last save is 5 s old. A batch takes a second.
		const least = 200 - 4*2*9
		if r.State != runs.Success || s.left() > 0 || r.ItemsDone > 200 || r.ItemsDone < least {
			cl.Fatalf("run %s with %d items done and %d left, want %s with %d to 200 and 0", r.State, r.ItemsDone, s.left(), runs.Success, least)
		}
	})
}

// A pause suspends the sweeps of a run, and a cancellation ends them.
func TestRunIsCancelledAndPaused(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := &store{takes: time.Second}
		cl.serve(s, inRuns)
		s.put(1000)
		id := cl.submit("")
		time.Sleep(5 * time.Second)
		if err := cl.c.Engine().Runs.SetPaused(cl.Context(), id, true, "test"); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		left := s.left()
		time.Sleep(time.Minute)
		if s.left() != left {
			cl.Fatal("a paused run goes on")
		}
		if err := cl.c.Engine().Runs.SetPaused(cl.Context(), id, false, "test"); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if s.left() == left {
			cl.Fatal("a resumed run does not go on")
		}
		if err := cl.c.Engine().Runs.Cancel(cl.Context(), id, "test"); err != nil {
			cl.Fatal(err)
		}
		if r := cl.ends(id, 10*time.Second); r.State != runs.Cancelled {
			cl.Fatalf("the run is %s, want %s", r.State, runs.Cancelled)
		}
		time.Sleep(5 * time.Second)
		left = s.left()
		time.Sleep(time.Minute)
		if s.left() != left || s.doubled() {
			cl.Fatalf("a cancelled run goes on: %d items are left of %d, twice: %t", s.left(), left, s.doubled())
		}
	})
}

// A trigger fires, and a task type that runs after it follows, here in the same process.
func TestTriggerAndDependant(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := &store{cl: cl, items: map[int]bool{}, takes: 10 * time.Millisecond}
		reports := make(chan string, 10)
		report := processor.Each(func(_ context.Context, sel processor.Selection) error {
			reports <- fmt.Sprintf("%s with %d left", sel.Run.Key, s.left())
			return nil
		})
		nightly := inRuns
		nightly.Cron = "0 5 0 * * ?"
		after := manager.Settings{Queues: 1, Mode: center.ModeRun, After: []runs.After{{Upstream: "settle"}}}
		m, err := manager.New(cl.c, manager.Config{}, manager.Serve("report", report, after), manager.Serve("settle", s, nightly))
		if err != nil {
			cl.Fatal(err)
		}
		cl.run(m)
		s.put(40)
		sleepUntil(0, 6, 0)
		list, err := ops.New(cl.c).Runs().List(cl.Context(), runs.Filter{}, 10)
		if err != nil || len(list) != 2 {
			cl.Fatalf("runs are %+v (error %v), want 2", list, err)
		}
		for _, r := range list {
			if r.State != runs.Success {
				cl.Errorf("%s is %s: %s, want %v", r.TaskType, r.State, r.Message, runs.Success)
			}
		}
		if s.left() > 0 || len(reports) != 1 {
			cl.Fatalf("%d items are left; %d reports, want 0, 1", s.left(), len(reports))
		}
	})
}

// The task type that another one runs after may belong to another program, which starts later.
func TestRunWaitsForItsUpstream(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		nothing := processor.Each(func(context.Context, processor.Selection) error { return nil })
		after := manager.Settings{Queues: 1, Mode: center.ModeRun, After: []runs.After{{Upstream: "settle"}}}
		m, err := manager.New(cl.c, manager.Config{}, manager.Serve("report", nothing, after))
		if err != nil {
			cl.Fatal(err)
		}
		cl.run(m)
		time.Sleep(time.Minute)
		if err := m.Ready(); err == nil || err.Error() != "task report is joining" {
			cl.Fatal(err)
		}
		if _, err := ops.New(cl.c).Tasks().Define(cl.Context(), "settle", inRuns); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if err := m.Ready(); err != nil {
			cl.Fatal(err)
		}
	})
}

// X4: in mode RUN a server claims only some of its queues at a time, and still uses the rate of all its queues.
func TestRunUsesTheWholeRate(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		s := &store{}
		set := inRuns
		set.Queues, set.ThreadNumber, set.RatePerSecond = 32, 1, 32
		cl.serve(s, set)
		s.put(32 * 40)
		id := cl.submit("")
		run := cl.ends(id, 5*time.Minute)
		cl.wantRun(run, runs.Success, 32*40, 0)
		if took := run.FinishedAt.Sub(run.StartedAt); took > 80*time.Second || took < 35*time.Second {
			cl.Errorf("1280 items at 32 per second took %s, want 40s and the ticks between the queues", took)
		}
	})
}

// X4: two servers share the rate of a run.
func TestRunSharesTheRate(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		s := &store{}
		set := inRuns
		set.Queues, set.ThreadNumber, set.RatePerSecond = 32, 1, 32
		cl.serve(s, set)
		cl.serveAlso(s, set)
		time.Sleep(20 * time.Second) // half of the queues have moved
		s.put(32 * 40)
		run := cl.ends(cl.submit(""), 5*time.Minute)
		cl.wantRun(run, runs.Success, 32*40, 0)
		if took := run.FinishedAt.Sub(run.StartedAt); took > 80*time.Second || took < 35*time.Second {
			cl.Errorf("1280 items at 32 per second took %s, want 40s and the ticks between the queues", took)
		}
	})
}

// seesRun notes the run that Execute sees.
type seesRun struct {
	store
	seen chan processor.Run
}

// Execute implements processor.TaskDealer.
func (s *seesRun) Execute(ctx context.Context, items []int) error {
	if r, ok := processor.RunOf(ctx); ok {
		s.seen <- *r
	}
	return s.store.Execute(ctx, items)
}

func TestExecuteSeesItsRun(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := &seesRun{store{cl: cl, items: map[int]bool{}}, make(chan processor.Run, 100)}
		s.put(4)
		cl.serveAlerted(new(alertLog), s, inRuns)
		id := cl.submit("k")
		cl.wantRun(cl.ends(id, time.Minute), runs.Success, 4, 0)
		if r := <-s.seen; r.ID != id || r.Key != "k" {
			cl.Fatalf("Execute sees run %+v, want %s", r, id)
		}
	})
}

// A run whose time has not come costs no tick each second, and begins when it has.
func TestRunThatWaitsForItsTime(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		d := &store{items: map[int]bool{}}
		d.put(1)
		s := inRuns
		s.HeartbeatInterval, s.JudgeDeadInterval = 20*time.Second, 100*time.Second
		w := cl.serve(d, s)
		time.Sleep(time.Second)
		submit := func(in time.Duration) (id string, begin time.Time) {
			begin = time.Now().Add(in)
			id, _, err := ops.New(cl.c).Runs().Submit(cl.Context(), "settle", runs.Submission{NotBefore: begin})
			if err != nil {
				cl.Fatal(err)
			}
			return id, begin
		}
		begins := func(id string, begin time.Time) {
			time.Sleep(time.Until(begin))
			r := cl.ends(id, time.Minute)
			if late := r.StartedAt.Sub(begin); r.State != runs.Success || late < 0 || late > 2*time.Second {
				cl.Errorf("the run is %s, opened %s after its time", r.State, late)
			}
		}
		begins(submit(27 * time.Second))
		id, begin := submit(time.Hour + 7*time.Second)
		time.Sleep(time.Minute)
		ticks := map[time.Time]bool{}
		for range 600 {
			ticks[w.Status()[0].Runs.Now] = true
			time.Sleep(time.Second)
		}
		if len(ticks) > 12 {
			cl.Errorf("%d ticks in ten minutes, want one a minute", len(ticks))
		}
		begins(id, begin)
	})
}
