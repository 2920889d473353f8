package manager_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
	"github.com/dutyrota/rota/runs"
)

// mailbox is a dealer with items in memory: numbers, whose queue is their remainder.
type mailbox struct {
	mu   sync.Mutex
	left []int
	done map[int]time.Time
}

func (m *mailbox) Select(_ context.Context, s processor.Selection) (items []int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.left {
		if n%s.Total == s.Queue.Index {
			items = append(items, n)
		}
	}
	return items, nil
}

func (m *mailbox) Execute(_ context.Context, items []int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range items {
		m.done[n] = time.Now()
	}
	var left []int
	for _, n := range m.left {
		if _, done := m.done[n]; !done {
			left = append(left, n)
		}
	}
	m.left = left
	return nil
}

// put adds items, and returns when.
func (m *mailbox) put(items ...int) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = append(m.left, items...)
	return time.Now()
}

func (m *mailbox) doneAt(n int) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[n]
}

// X9: Wake makes the queue of a key be selected at once, or all queues. Before Run it does nothing.
func TestWake(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		d := &mailbox{done: map[int]time.Time{}}
		m, err := manager.New(cl.c, manager.Config{},
			manager.Serve("settle", d, manager.Settings{Queues: 4, SleepTimeNoData: time.Hour}))
		if err != nil {
			cl.Fatal(err)
		}
		m.Wake("settle")
		ctx, cancel := context.WithCancel(cl.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(time.Minute)
		at := d.put(5, 6)
		m.Wake("another", "5")
		m.Wake("settle", "5")
		synctest.Wait()
		if got := d.doneAt(5); !got.Equal(at) {
			cl.Errorf("item 5 was executed at %s, want %s", got, at)
		}
		if got := d.doneAt(6); !got.IsZero() {
			cl.Errorf("item 6 was executed at %s without a hint", got)
		}
		m.Wake("settle")
		synctest.Wait()
		if got := d.doneAt(6); !got.Equal(at) {
			cl.Errorf("item 6 was executed at %s, want %s", got, at)
		}
		cancel()
		if err := <-ended; err != nil {
			cl.Error(err)
		}
	})
}

// X9: on PostgreSQL, a hint of another process makes a queue be selected at once. A process without hints waits.
func TestWakeOfAnotherProcess(t *testing.T) {
	url := testdb.URL(t, testdb.Postgres)
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	d := &mailbox{done: map[int]time.Time{}}
	s := quick
	s.SleepTimeNoData = time.Hour
	for _, noHints := range []bool{true, false} {
		p := startConfigured(t, url, manager.Config{Grace: time.Second, NoHints: noHints}, d, s)
		until(t, "the queues are empty", func() bool { return p.m.Status()[0].Empty == 2 })
		d.put(3)
		if noHints {
			if err := c.Wake(t.Context(), "settle", "3"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond)
			if at := d.doneAt(3); !at.IsZero() || p.m.Status()[0].Hears {
				t.Error("a process without hints has heard one")
			}
			if err := d.Execute(t.Context(), []int{3}); err != nil {
				t.Fatal(err)
			}
		} else {
			until(t, "hints arrive", func() bool { return p.m.Status()[0].Hears })
			d.put(5)
			if err := c.Wake(t.Context(), "settle", "5"); err != nil {
				t.Fatal(err)
			}
			until(t, "the item is executed", func() bool { return !d.doneAt(5).IsZero() })
		}
		p.stop()
		if err := <-p.ended; err != nil {
			t.Fatal(err)
		}
	}
}

// X9: where the database sends no notifications, the worker of a hinted task type reads the hints of other processes, also
// when hinted is set while it runs. An hour would pass until the next poll.
func TestHintsInRowsWakeAWorker(t *testing.T) {
	for _, kind := range []string{testdb.SQLite, testdb.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t, kind)
			c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			d := &mailbox{done: map[int]time.Time{}}
			s := quick
			s.SleepTimeNoData = time.Hour
			p := startConfigured(t, url, manager.Config{Grace: time.Second}, d, s)
			until(t, "the queues are empty", func() bool { return p.m.Status()[0].Empty == 2 })
			if p.m.Status()[0].Hears {
				t.Error("a worker reads hints that nobody leaves")
			}
			centertest.Exec(t, c, "UPDATE schedule_task_type SET hinted = TRUE, version = version + 1")
			until(t, "hints arrive", func() bool { return p.m.Status()[0].Hears })
			for _, item := range []int{5, 6} {
				d.put(item)
				if err := c.Wake(t.Context(), "settle", strconv.Itoa(item)); err != nil {
					t.Fatal(err)
				}
				until(t, "the item is executed", func() bool { return !d.doneAt(item).IsZero() })
			}
			p.stop()
			if err := <-p.ended; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// R21 X9: on PostgreSQL, a worker ticks at the commit of a transaction that has submitted a run. Without the hint, it would
// tick a minute after its last tick, and its next heartbeat is later still.
func TestHintOfASubmittedRunTicks(t *testing.T) {
	url := testdb.URL(t, testdb.Postgres)
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	d := &mailbox{done: map[int]time.Time{}}
	s := quick
	s.Mode, s.HeartbeatInterval, s.JudgeDeadInterval = center.ModeRun, 10*time.Minute, 100*time.Minute
	p := startConfigured(t, url, manager.Config{Grace: time.Second}, d, s)
	until(t, "the worker owns the queues, hears hints and has ticked", func() bool {
		status := p.m.Status()[0]
		return status.Hears && status.Queues == s.Queues && status.InRuns
	})
	d.put(3)
	tx, err := c.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := c.Engine().Runs.SubmitTx(t.Context(), tx, "settle", runs.Submission{})
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	committed := time.Now()
	until(t, "the run has ended", func() bool {
		list, err := c.Engine().Runs.List(t.Context(), runs.Filter{RunID: id, State: runs.Success}, 1)
		return err == nil && len(list) == 1
	})
	if took := d.doneAt(3).Sub(committed); took > 30*time.Second {
		t.Errorf("the item of the run was done %s after the commit, want at once", took)
	}
	p.stop()
	if err := <-p.ended; err != nil {
		t.Fatal(err)
	}
}

// configured is a worker process with a configuration.
type configured struct {
	m     *manager.Manager
	stop  context.CancelFunc
	ended chan error
}

func startConfigured(t *testing.T, url string, cfg manager.Config, d *mailbox, s manager.Settings) *configured {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), center.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(c, cfg, manager.Serve("settle", d, s))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &configured{m, cancel, make(chan error, 1)}
	go func() { p.ended <- m.Run(ctx) }()
	t.Cleanup(func() { c.Close() })
	t.Cleanup(cancel)
	return p
}
