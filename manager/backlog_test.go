package manager_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

// backlogDealer is a dealer without items that counts the backlogs of its queues.
type backlogDealer struct {
	takes time.Duration
	stub  bool // ignores its context

	mu    sync.Mutex
	err   error
	calls map[string]int
	items int64
}

func (*backlogDealer) Select(context.Context, processor.Selection) ([]int, error) { return nil, nil }

func (*backlogDealer) Execute(context.Context, []int) error { return nil }

func (c *backlogDealer) Backlog(ctx context.Context, s processor.Selection) (processor.Backlog, error) {
	if c.stub {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-ctx.Done():
		return processor.Backlog{}, ctx.Err()
	case <-time.After(c.takes):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[s.Queue.ID]++
	return processor.Backlog{Items: c.items, Oldest: time.Now().Add(-time.Minute)}, c.err
}

func (c *backlogDealer) all() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, calls := range c.calls {
		n += calls
	}
	return n
}

func (c *backlogDealer) set(items int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items, c.err = items, err
}

// counts starts a worker of one task type with four queues.
func (cl *cluster) counts(c *backlogDealer, alerts *alertLog) *worker {
	cl.Helper()
	m, err := manager.New(cl.c, manager.Config{Grace: time.Second, Logger: cl.logger(), Alerter: alerts},
		manager.Serve("count", c, manager.Settings{
			Queues: 4, DrainTimeout: 3 * time.Second, HeartbeatInterval: 20 * time.Second, JudgeDeadInterval: 100 * time.Second, SleepTimeNoData: time.Minute,
		}))
	if err != nil {
		cl.Fatal(err)
	}
	return cl.run(m)
}

// backlogs returns the queues of the task type.
func (cl *cluster) backlogs() []ops.QueueRecord {
	cl.Helper()
	list, err := ops.New(cl.c).Queues().List(cl.Context(), ops.QueueFilter{TaskType: "count"})
	if err != nil {
		cl.Fatal(err)
	}
	return list
}

// The owner counts each queue about every 10 s, and the view shows the last count with its trend. Its ages are not
// looked at: SQLite's own clock is outside of the bubble.
func TestBacklogIsCounted(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		d := &backlogDealer{items: 100}
		w := cl.counts(d, new(alertLog))
		time.Sleep(time.Minute)
		if n := d.all(); n < 4*5 || n > 4*8 {
			t.Errorf("%d counts of 4 queues in a minute, want one of each in 9 to 12 s", n)
		}
		d.set(40, nil)
		time.Sleep(25 * time.Second)
		for _, q := range cl.backlogs() {
			if q.BacklogItems == nil || *q.BacklogItems != 40 || *q.BacklogTrend != ops.BacklogDraining || *q.BacklogRate >= 0 || q.BacklogOldest == nil {
				t.Errorf("queue %s: %+v, want 40 items that become less", q.QueueID, q)
			}
			if eta := q.BacklogETA(); eta == nil || *eta <= 0 {
				t.Errorf("queue %s: done in %v, want a time", q.QueueID, eta)
			}
		}
		if b := w.Status()[0].Backlog; !b.Known || b.Items != 160 || b.Oldest.IsZero() {
			t.Errorf("status: %+v, want 160 items", b)
		}
	})
}

// failingBacklog is a backlogDealer with an item in each queue, at which Execute fails if broken is true.
type failingBacklog struct {
	backlogDealer
	broken atomic.Bool
}

func (*failingBacklog) Select(_ context.Context, s processor.Selection) ([]int, error) {
	return []int{s.Queue.Index}, nil
}

func (f *failingBacklog) Execute(context.Context, []int) error {
	if f.broken.Load() {
		return errors.New("no route to host")
	}
	return nil
}

// No backlog has a trend while nothing succeeds, whatever it did before. After that the trend begins anew.
func TestBacklogOfAFailingDealerHasNoTrend(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		d := new(failingBacklog)
		d.set(100, nil)
		m, err := manager.New(cl.c, manager.Config{Grace: time.Second}, manager.Serve("count", d, manager.Settings{Queues: 4, SleepTimeInterval: time.Second}))
		if err != nil {
			t.Fatal(err)
		}
		cl.run(m)
		time.Sleep(3 * time.Second) // until the first counts
		d.set(40, nil)
		d.broken.Store(true)
		time.Sleep(50 * time.Second)
		for _, q := range cl.backlogs() {
			if q.BacklogTrend == nil || *q.BacklogTrend != "" || *q.BacklogItems != 40 || q.BacklogETA() != nil {
				t.Errorf("queue %s: %+v, want 40 items without a trend", q.QueueID, q)
			}
		}
		d.broken.Store(false)
		time.Sleep(5 * time.Minute) // the pauses of the queues after failures
		d.set(30, nil)
		time.Sleep(15 * time.Second)
		for _, q := range cl.backlogs() {
			if q.BacklogTrend == nil || *q.BacklogTrend != ops.BacklogDraining {
				t.Errorf("queue %s: %+v, want a backlog that drains", q.QueueID, q)
			}
		}
	})
}

// With other settings the trend of a backlog begins anew, so that a limit which holds the work back is noticed within
// 40 s and not when the last count of before is forgotten, after 100 s.
func TestTrendBeginsAnewWithOtherSettings(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		d := &backlogDealer{items: 100}
		m, err := manager.New(cl.c, manager.Config{Grace: time.Second}, manager.Serve("count", d, manager.Settings{Queues: 4, SleepTimeInterval: time.Second}))
		if err != nil {
			t.Fatal(err)
		}
		cl.run(m)
		time.Sleep(30 * time.Second)
		d.set(90, nil)
		time.Sleep(time.Minute)
		if _, err := cl.c.DB().ExecContext(cl.Context(), "UPDATE schedule_task_type SET rate_per_second = 0.5, version = version + 1"); err != nil {
			t.Fatal(err)
		}
		for i := range int64(40) {
			time.Sleep(time.Second)
			d.set(90+i, nil)
		}
		for _, q := range cl.backlogs() {
			if q.BacklogTrend == nil || *q.BacklogTrend != ops.BacklogGrowing {
				t.Errorf("queue %s: %s, want that it grows", q.QueueID, *q.BacklogTrend)
			}
		}
	})
}

// Counts take 1 % of the time, however many queues there are.
func TestBacklogCostsOnePercent(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		d := &backlogDealer{takes: 50 * time.Millisecond, items: 1}
		cl.counts(d, new(alertLog))
		time.Sleep(time.Hour)
		if n := d.all(); n < 650 || n > 730 {
			t.Errorf("%d counts of 50 ms in an hour, want about 720", n)
		}
	})
}

// Several workers together count no more than one that owns all queues.
func TestBacklogCostsOnePercentTogether(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		var all []*backlogDealer
		for range 4 {
			d := &backlogDealer{takes: 50 * time.Millisecond, items: 1}
			cl.counts(d, new(alertLog))
			all = append(all, d)
		}
		time.Sleep(5 * time.Minute) // until each owns a queue
		began, sum := 0, 0
		for _, d := range all {
			began += d.all()
		}
		time.Sleep(time.Hour)
		for _, d := range all {
			sum += d.all()
		}
		if n := sum - began; n < 600 || n > 750 {
			t.Errorf("4 workers counted %d times 50 ms in an hour, want about 720 times", n)
		}
	})
}

// Counts that take long take a tenth of the time at the most, and are not so rare that nobody can use them.
func TestSlowBacklogIsCounted(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		d := &backlogDealer{takes: time.Second, items: 1}
		w := cl.counts(d, new(alertLog))
		for range 60 {
			time.Sleep(time.Minute)
			if b := w.Status()[0].Backlog; b.Counted != 4 || time.Since(b.Since) > ops.FreshBacklog {
				t.Fatalf("%d of 4 queues are counted, the first %s ago, want all within a minute", b.Counted, time.Since(b.Since))
			}
		}
		if n := d.all(); n < 330 || n > 370 {
			t.Errorf("%d counts of a second in an hour, want about 360", n)
		}
	})
}

// The first counts of a queue's new owner wait for no pause, and are recorded at once, however long they take.
func TestBacklogIsKnownSoon(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		known := func(items int64) (n int) {
			for _, q := range cl.backlogs() {
				if q.BacklogItems != nil && *q.BacklogItems == items {
					n++
				}
			}
			return n
		}
		cl.counts(&backlogDealer{takes: 3 * time.Second, items: 7}, new(alertLog))
		time.Sleep(20 * time.Second)
		if n := known(7); n != 4 {
			t.Errorf("20 s after the start, %d of 4 queues are counted and recorded", n)
		}
		second := cl.counts(&backlogDealer{takes: 3 * time.Second, items: 8}, new(alertLog))
		for second.Status()[0].Queues < 2 {
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		if n := known(8); n != 2 {
			t.Errorf("10 s after a join, %d of its 2 queues are counted and recorded", n)
		}
	})
}

// A status says nothing of the items while too few queues have been counted.
func TestBacklogEstimate(t *testing.T) {
	for _, test := range []struct {
		status manager.BacklogStatus
		want   int64 // -1: unknown
	}{
		{manager.BacklogStatus{}, -1},
		{manager.BacklogStatus{Items: 10, Counted: 1, Queues: 3}, -1},
		{manager.BacklogStatus{Items: 10, Counted: 2, Queues: 3}, 15},
		{manager.BacklogStatus{Items: 10, Counted: 3, Queues: 3}, 10},
	} {
		if got, known := test.status.Estimate(); known != (test.want >= 0) || known && got != test.want {
			t.Errorf("%+v: %d, %t, want %d", test.status, got, known, test.want)
		}
	}
}

// A count that hangs holds up no hand-over, and a queue keeps the last figure of an owner that is gone.
func TestBacklogOfAnotherOwner(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		d := &backlogDealer{items: 7}
		first := cl.counts(d, new(alertLog))
		time.Sleep(30 * time.Second)
		hangs := &backlogDealer{takes: time.Hour, stub: true}
		cl.counts(hangs, new(alertLog))
		time.Sleep(2 * time.Minute)
		if st := first.Status()[0]; st.Queues != 2 || st.Backlog.Items != 2*7 {
			t.Errorf("the first worker owns %d queues with %d items, want 2 with 14", st.Queues, st.Backlog.Items)
		}
		first.stop()
		<-first.done
		time.Sleep(10 * time.Minute)
		for _, q := range cl.backlogs() {
			if q.BacklogItems == nil || *q.BacklogItems != 7 {
				t.Errorf("queue %s: backlog %v, want the 7 items that the first worker counted", q.QueueID, q.BacklogItems)
			}
		}
	})
}

// Counts that fail are told, become rare, and go on.
func TestBacklogFails(t *testing.T) {
	racetest.Defer(t)
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		d := &backlogDealer{items: 7, err: errors.New("relation shop does not exist")}
		w := cl.counts(d, alerts)
		time.Sleep(4 * time.Hour)
		if n := d.all(); n < 6 || n > 12 {
			t.Errorf("%d counts in 4 hours, want 6 in the first and then one per hour", n)
		}
		if told := alerts.ofKind(condition.Backlog); len(told) != 1 || !strings.Contains(told[0], "relation shop does not exist") {
			t.Errorf("alerts %q, want one %s with the error", told, condition.Backlog.Name)
		}
		if n := w.Status()[0].Backlog.Failures; n < 6 {
			t.Errorf("%d failures in the status, want at least 6", n)
		}
		d.set(7, nil)
		time.Sleep(2 * time.Hour)
		if n := w.Status()[0].Backlog.Failures; n != 0 {
			t.Errorf("%d failures in the status after a success, want 0", n)
		}
		if b := cl.backlogs()[0]; b.BacklogItems == nil {
			t.Errorf("queue %s has no backlog 2 hours after the counts succeed", b.QueueID)
		}
		d.set(7, errors.New("relation shop does not exist"))
		time.Sleep(10 * time.Minute)
		if told := alerts.ofKind(condition.Backlog); len(told) != 2 {
			t.Errorf("alerts %q, want a second %s when the counts fail again", told, condition.Backlog.Name)
		}
	})
}

// strayDealer is a dealer that counts items which belong to no queue.
type strayDealer struct {
	backlogDealer
	strays processor.Strays
	counts int
	of     string // the queues for which it was asked
}

func (d *strayDealer) CountStrays(_ context.Context, s processor.Selection) (processor.Strays, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts++
	d.of += s.Queue.ID
	return d.strays, nil
}

// N4: the owner of queue 0 looks once an hour for items that belong to no queue, and tells of them until they are gone.
func TestStraysAreTold(t *testing.T) {
	racetest.Defer(t)
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		d := &strayDealer{strays: processor.Strays{Items: 21, InQueues: 4, Select: "SELECT id FROM orders"}}
		m, err := manager.New(cl.c, manager.Config{Alerter: alerts}, manager.Serve("count", d, manager.Settings{
			Queues: 4, HeartbeatInterval: 20 * time.Second, JudgeDeadInterval: 100 * time.Second, SleepTimeNoData: time.Minute,
		}))
		if err != nil {
			cl.Fatal(err)
		}
		w := cl.run(m)
		time.Sleep(3*time.Hour + 30*time.Minute)
		want := "17 of 21 items belong to no queue; a worker selects those of a queue with: SELECT id FROM orders"
		if told := alerts.ofKind(condition.StrayItems); len(told) != 1 || !strings.Contains(told[0], want) {
			t.Errorf("alerts %q, want one with %q", told, want)
		}
		d.mu.Lock()
		if d.counts != 4 || d.of != "0000" {
			t.Errorf("%d counts in 3.5 hours for the queues %s, want one an hour for queue 0", d.counts, d.of)
		}
		d.strays = processor.Strays{Items: 21, InQueues: 21}
		d.mu.Unlock()
		if b := w.Status()[0].Backlog; b.Strays.InQueues != 4 || time.Since(b.StraysSince) < 3*time.Hour {
			t.Errorf("status %+v, want the strays of the first count", b)
		}
		time.Sleep(time.Hour)
		if b := w.Status()[0].Backlog; !b.StraysSince.IsZero() {
			t.Errorf("status %+v after all items have a queue", b)
		}
		d.mu.Lock()
		d.strays = processor.Strays{Items: 21, InQueues: 23}
		d.mu.Unlock()
		time.Sleep(time.Hour)
		if told := alerts.ofKind(condition.StrayItems); len(told) != 2 || !strings.Contains(told[1], "2 items are counted in more than one queue") {
			t.Errorf("alerts %q, want a second one", told)
		}
	})
}

// awayDealer is a dealer whose data database west does not answer.
type awayDealer struct{ backlogDealer }

func (d *awayDealer) Backlog(ctx context.Context, s processor.Selection) (processor.Backlog, error) {
	if s.Queue.Database == "west" {
		return processor.Backlog{}, errors.New("west does not answer")
	}
	return d.backlogDealer.Backlog(ctx, s)
}

// F11: while the counts in one data database fail, the queues of the others are counted as usual.
func TestBacklogOfTheOtherDataDatabases(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		cl.openShards()
		alerts := new(alertLog)
		d := &awayDealer{backlogDealer{items: 7}}
		m, err := manager.New(cl.c, manager.Config{Alerter: alerts}, manager.Serve("settle", d, sharded))
		if err != nil {
			cl.Fatal(err)
		}
		w := cl.run(m)
		time.Sleep(time.Hour)
		for _, id := range []string{"0", "1", "2"} {
			d.mu.Lock()
			if n := d.calls[id]; n < 200 {
				t.Errorf("queue %s: %d counts in an hour, want one in about 10 s", id, n)
			}
			d.mu.Unlock()
		}
		if told := alerts.ofKind(condition.Backlog); len(told) != 1 || !strings.Contains(told[0], "west does not answer") {
			t.Errorf("alerts %q, want one %s with the error", told, condition.Backlog.Name)
		}
		if b := w.Status()[0].Backlog; b.Counted != 3 || b.Failures < 5 {
			t.Errorf("status %+v, want 3 queues that are counted, and the failures of the others", b)
		}
	})
}

// A server whose counts have failed says nothing of these any more when other servers own the queues.
func TestBacklogFailuresEndWithTheQueues(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		cl.openShards()
		s := sharded // the hours pass in fewer steps
		s.HeartbeatInterval, s.JudgeDeadInterval, s.SleepTimeNoData = 20*time.Second, 100*time.Second, time.Minute
		run := func(d processor.TaskDealer[int]) *worker {
			m, err := manager.New(cl.c, manager.Config{}, manager.Serve("settle", d, s))
			if err != nil {
				cl.Fatal(err)
			}
			return cl.run(m)
		}
		first := run(&awayDealer{backlogDealer{items: 7}})
		time.Sleep(time.Hour)
		if n := first.Status()[0].Backlog.Failures; n < 3 {
			t.Fatalf("%d failures, want some", n)
		}
		run(&backlogDealer{items: 7})
		if err := cl.c.Roster().Operator("test").PauseServer(cl.Context(), first.Status()[0].Server, true); err != nil {
			cl.Fatal(err)
		}
		time.Sleep(time.Hour)
		if st := first.Status()[0]; st.Queues != 0 || st.Backlog.Failures != 0 {
			t.Errorf("the first server has %d queues and %d failures, want none", st.Queues, st.Backlog.Failures)
		}
	})
}

// A dealer that counts nothing after all is asked once.
func TestNoBacklog(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		d, alerts := &backlogDealer{err: processor.ErrNoBacklog}, new(alertLog)
		w := cl.counts(d, alerts)
		time.Sleep(time.Hour)
		if n := d.all(); n != 1 || len(alerts.kinds()) > 0 || w.Status()[0].Backlog.Known {
			t.Errorf("%d calls, alerts %v, status %+v, want one call", n, alerts.kinds(), w.Status()[0].Backlog)
		}
	})
}
