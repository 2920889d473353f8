package manager_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
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
