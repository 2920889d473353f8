package manager_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// Items that fail are skipped and tried again with their queue. Then the queue has failed, and with it the run.
func TestRunFails(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		k := &keyed{store{items: map[int]bool{}, takes: 10 * time.Millisecond}}
		k.put(40)
		cl.serveAlerted(new(alertLog), k, inRuns)
		id := cl.submit("")
		r := cl.ends(id, 5*time.Minute)
		cl.wantRun(r, runs.Failed, 37, 3)
		queues, err := cl.c.Engine().Runs.Queues(cl.Context(), id)
		if err != nil {
			cl.Fatal(err)
		}
		for _, q := range queues {
			want := runs.QueueFailed
			if q.QueueID == "3" {
				want = runs.QueueDone
			}
			if q.State != want || want == runs.QueueFailed && q.Attempt != 3 {
				cl.Errorf("%+v, want %s", q, want)
			}
		}
		if k.left() != 3 {
			cl.Fatalf("%d items are left, want 3", k.left())
		}
	})
}

// curable fails as keyed does until it is cured.
type curable struct {
	keyed
	cured atomic.Bool
}

// Execute implements processor.TaskDealer.
func (c *curable) Execute(ctx context.Context, items []int) error {
	if c.cured.Load() {
		return c.store.Execute(ctx, items)
	}
	return c.keyed.Execute(ctx, items)
}

// A rerun starts without the failures of the first run.
func TestRunSucceedsAfterTheCure(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		c := &curable{keyed: keyed{store{items: map[int]bool{}, takes: 10 * time.Millisecond}}}
		c.put(40)
		s := inRuns
		s.QueueMaxAttempts = 1
		cl.serveAlerted(new(alertLog), c, s)
		id := cl.submit("")
		cl.wantRun(cl.ends(id, time.Minute), runs.Failed, 37, 3)
		c.cured.Store(true)
		if err := cl.c.Engine().Runs.Rerun(cl.Context(), id, "test"); err != nil {
			cl.Fatal(err)
		}
		cl.wantRun(cl.ends(id, time.Minute), runs.Success, 40, 0)
	})
}

// Items that died in mode CONTINUOUS fail each run, although nothing would fail any more, until an operator tries them
// again. A rerun directly after that need not wait for a heartbeat: each sweep reads the failed items when it begins.
func TestItemsThatDiedBeforeModeRunFailRuns(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		c := &curable{keyed: keyed{store{items: map[int]bool{}}}}
		c.put(8)
		s := inRuns
		s.Mode, s.ItemMaxAttempts = center.ModeContinuous, 1
		w := cl.serveAlerted(new(alertLog), c, s)
		time.Sleep(time.Minute)
		w.stop()
		<-w.done
		c.cured.Store(true)
		s.Mode, s.HeartbeatInterval, s.JudgeDeadInterval = center.ModeRun, 10*time.Minute, 100*time.Minute
		diff, err := ops.New(cl.c).Tasks().Compare(cl.Context(), "settle", s)
		if err == nil {
			err = ops.New(cl.c).Tasks().Apply(cl.Context(), diff, "test")
		}
		if err != nil {
			cl.Fatal(err)
		}
		cl.serveAlerted(new(alertLog), c, s)
		id := cl.submit("")
		cl.wantRun(cl.ends(id, time.Minute), runs.Failed, 0, 3)
		beats := cl.beats()
		if n, err := ops.New(cl.c).Items().Retry(cl.Context(), "settle", "test", "a", "b", "c"); n != 3 || err != nil {
			cl.Fatalf("%d items retried, want 3: %v", n, err)
		}
		if err := cl.c.Engine().Runs.Rerun(cl.Context(), id, "test"); err != nil {
			cl.Fatal(err)
		}
		cl.wantRun(cl.ends(id, time.Minute), runs.Success, 3, 0)
		if n := cl.beats() - beats; n > 0 {
			cl.Errorf("%d heartbeats were sent between the retry and the end of the rerun, want none", n)
		}
	})
}

// failsInRuns fails as keyed does, and notes which items had failed before, as Execute sees it.
type failsInRuns struct {
	keyed
	before chan []string
}

// Execute implements processor.TaskDealer.
func (f *failsInRuns) Execute(ctx context.Context, items []int) error {
	if r, ok := processor.RunOf(ctx); ok {
		f.before <- r.FailedBefore
	}
	return f.keyed.Execute(ctx, items)
}

// A rerun knows which items have failed, also after a restart of the worker.
func TestRerunKnowsWhatFailed(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		f := &failsInRuns{keyed{store{items: map[int]bool{}}}, make(chan []string, 1000)}
		f.put(8)
		s := inRuns
		s.QueueMaxAttempts = 1
		w := cl.serveAlerted(new(alertLog), f, s)
		id := cl.submit("")
		cl.wantRun(cl.ends(id, time.Minute), runs.Failed, 5, 3)
		w.stop()
		<-w.done
		for len(f.before) > 0 {
			if b := <-f.before; len(b) > 0 {
				cl.Errorf("the first attempt knows that %v failed before", b)
			}
		}
		if err := cl.c.Engine().Runs.Rerun(cl.Context(), id, "test"); err != nil {
			cl.Fatal(err)
		}
		cl.serveAlerted(new(alertLog), f, s)
		cl.wantRun(cl.ends(id, time.Minute), runs.Failed, 5, 3)
		known := map[string]bool{}
		for len(f.before) > 0 {
			for _, key := range <-f.before {
				known[key] = true
			}
		}
		if !known["a"] || !known["b"] || !known["c"] || len(known) != 3 {
			cl.Errorf("the rerun knows that %v failed before, want a, b and c", known)
		}
	})
}

// down fails until it is cured.
type down struct {
	keyed
	cured atomic.Bool
}

// Execute implements processor.TaskDealer.
func (d *down) Execute(ctx context.Context, items []int) error {
	if d.cured.Load() {
		return d.store.Execute(ctx, items)
	}
	return errors.New("the service is down")
}

// A run that waits for the end of an outage says so, in the list of runs and as a problem, until the outage is over.
func TestRunSaysForWhatItWaits(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		d := &down{keyed: keyed{store{items: map[int]bool{}}}}
		d.put(40)
		cl.serveAlerted(new(alertLog), d, inRuns)
		id := cl.submit("")
		time.Sleep(time.Minute)
		const want = "it waits: nothing has succeeded since "
		if r, err := ops.New(cl.c).Runs().Get(cl.Context(), id); err != nil || r.State != runs.Running || !strings.HasPrefix(r.Message, want) {
			cl.Errorf("after a minute: %+v, %v, want it to say that it waits", r, err)
		}
		time.Sleep(40 * time.Minute)
		problems, err := ops.New(cl.c).Runs().Problems(cl.Context(), "settle")
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0].Text(), want) {
			cl.Errorf("after forty minutes the problems are %+v, %v, want the run that waits", problems, err)
		}
		d.cured.Store(true)
		r := cl.ends(id, time.Hour)
		if r.Message != "" && r.State == runs.Success {
			cl.Errorf("after the outage: %+v, want no message", r)
		}
		queues, err := cl.c.Engine().Runs.Queues(cl.Context(), id)
		for _, q := range queues {
			if strings.Contains(q.LastError, want) {
				cl.Errorf("after the outage: %+v, %v, want no queue that waits", q, err)
			}
		}
	})
}

type failing struct {
	store
	times int
}

// Select fails a few times for queue 0.
func (f *failing) Select(ctx context.Context, sel processor.Selection) ([]int, error) {
	if sel.Queue.Index == 0 && f.times > 0 { // only the select of queue 0 reads and writes it
		f.times--
		return nil, errors.New("no")
	}
	return f.store.Select(ctx, sel)
}

// A select that fails ends the sweep of its queue, and is tried again with it.
func TestRunWithAFailingSelect(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := &failing{store: store{cl: cl, items: map[int]bool{}}, times: 2}
		s.put(8)
		cl.serveAlerted(new(alertLog), s, inRuns)
		cl.wantRun(cl.ends(cl.submit(""), 5*time.Minute), runs.Success, 8, 0)
	})
}

// A Permanent failure is not tried again.
func TestRunFailsForGood(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		var calls atomic.Int32
		hopeless := processor.Each(func(context.Context, processor.Selection) error {
			calls.Add(1)
			return fmt.Errorf("look: %w", processor.Permanent(errors.New("no such file")))
		})
		m, err := manager.New(cl.c, manager.Config{}, manager.Serve("settle", hopeless, inRuns))
		if err != nil {
			cl.Fatal(err)
		}
		cl.run(m)
		if r := cl.ends(cl.submit(""), time.Minute); r.State != runs.Failed || calls.Load() != 4 {
			cl.Fatalf("the run is %s after %d calls, want %s after 4", r.State, calls.Load(), runs.Failed)
		}
	})
}
