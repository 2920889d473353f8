package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/processor"
)

const (
	// backlogInterval is the shortest pause between two counts of a queue.
	backlogInterval = 10 * time.Second
	// backlogTimeout limits a count.
	backlogTimeout = 10 * time.Second
	// backlogShare is the inverse of the part of the time that the counts of a task type take at the most, over all
	// servers.
	backlogShare = 100
	// backlogMaxPause is the longest pause after counts that fail.
	backlogMaxPause = time.Hour
	// backlogFailures is the number of counts in a row that fail before an alert, which repeats while they fail.
	backlogFailures = 3
)

// backlogMeter counts the backlogs of the queues that the processor holds, one after the other, and records them. It
// runs beside the sessions: a count that hangs holds up no hand-over, and only the end of the process waits for it.
type backlogMeter struct {
	*server
	dealer processor.Backlogger

	part     float64                   // of all queues that the processor holds
	windows  map[string]*backlogWindow // by queue; of the present grants
	pending  []center.QueueBacklog     // counted and not recorded; Age is not set yet
	counted  []time.Time               // when
	saved    time.Time                 // when pending was last recorded
	failures int                       // in a row
	off      bool                      // the dealer is no Backlogger after all

	mu    sync.Mutex
	total BacklogStatus
}

// BacklogStatus is the backlog of the queues that a server owns, as it last counted them.
type BacklogStatus struct {
	Known  bool // the dealer is a Backlogger, and a queue has been counted
	Items  int64
	Oldest time.Time // of the oldest item of all; zero if unknown

	Failures int // counts, or writes of them, that have failed in a row
}

func newBacklogMeter(s *server, d processor.Backlogger) *backlogMeter {
	return &backlogMeter{server: s, dealer: d, part: 1, windows: map[string]*backlogWindow{}}
}

// run counts until ctx is done.
func (m *backlogMeter) run(ctx context.Context) {
	for ctx.Err() == nil && !m.off {
		began := time.Now()
		selections := m.proc.Selections()
		m.forget(selections)
		for _, s := range selections {
			m.part = min(1, float64(len(selections))/float64(s.Total))
			sleep(ctx, m.count(ctx, s))
			if time.Since(m.saved) >= backlogInterval {
				sleep(ctx, m.save(ctx))
			}
			if ctx.Err() != nil || m.off {
				return
			}
		}
		if len(selections) == 0 {
			sleep(ctx, time.Second) // until the first queue is there
			continue
		}
		sleep(ctx, m.save(ctx))
		jitter := 0.9 + 0.2*rand.Float64() //nolint:gosec // it only spreads the load
		sleep(ctx, time.Duration(float64(backlogInterval)*jitter)-time.Since(began))
	}
}

// forget drops the counts of queues that are not held any more, or under another epoch.
func (m *backlogMeter) forget(selections []processor.Selection) {
	epochs := map[string]int64{}
	for _, s := range selections {
		epochs[s.Queue.ID] = s.Queue.Epoch
	}
	for id, w := range m.windows {
		if epoch, ok := epochs[id]; !ok || epoch != w.epoch {
			delete(m.windows, id)
		}
	}
	m.sum()
}

// count counts one queue and returns for how long to pause.
func (m *backlogMeter) count(ctx context.Context, s processor.Selection) (pause time.Duration) {
	began := time.Now()
	b, err := m.ask(ctx, s)
	took := time.Since(began)
	if m.off = errors.Is(err, processor.ErrNoBacklog); m.off || ctx.Err() != nil {
		return 0
	}
	if err != nil {
		return m.failed(ctx, fmt.Errorf("queue %s: %w", s.Queue.ID, err))
	}
	m.failures = 0
	w := m.windows[s.Queue.ID]
	if w == nil {
		w = &backlogWindow{epoch: s.Queue.Epoch}
		m.windows[s.Queue.ID] = w
	}
	w.add(backlogCount{at: time.Now(), Backlog: b, worked: m.proc.Worked(s.Queue.ID)})
	m.pending = append(m.pending, center.QueueBacklog{
		QueueID: s.Queue.ID, Epoch: s.Queue.Epoch, Items: b.Items, Oldest: b.Oldest, Took: took, Rate: w.rate(), Trend: w.trend(), Demand: w.demand(),
	})
	m.counted = append(m.counted, time.Now())
	m.sum()
	return m.pauseAfter(took)
}

// pauseAfter returns the pause after which a call has taken no more than this server's part of the share.
func (m *backlogMeter) pauseAfter(took time.Duration) time.Duration {
	return time.Duration((backlogShare/m.part - 1) * float64(took))
}

// ask calls the dealer. A panic is an error.
func (m *backlogMeter) ask(ctx context.Context, s processor.Selection) (b processor.Backlog, err error) {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	b, err = m.dealer.Backlog(ctx, s)
	if err == nil && b.Items < 0 {
		err = fmt.Errorf("%d items are left: the number must not be negative", b.Items)
	}
	return b, err
}

// failed logs a failure and returns the pause after it, which doubles. The last figures stay, with their age.
func (m *backlogMeter) failed(ctx context.Context, err error) (pause time.Duration) {
	m.failures++
	m.sum()
	m.log.LogAttrs(ctx, slog.LevelWarn, "count the backlog: failed", slog.Any("error", err))
	if m.failures >= backlogFailures {
		m.queueAlert(processor.Alert{
			Kind: center.AlertBacklog,
			Text: fmt.Sprintf("%d counts of the backlog in a row have failed, and they go on more and more seldom; the last error: %v", m.failures, err),
		})
	}
	return min(backlogMaxPause, time.Minute<<min(m.failures-1, 10))
}

// save records the pending counts with one statement for many, and returns for how long to pause.
func (m *backlogMeter) save(ctx context.Context) (pause time.Duration) {
	m.saved = time.Now()
	if len(m.pending) == 0 || ctx.Err() != nil {
		return 0
	}
	for i := range m.pending {
		m.pending[i].Age = time.Since(m.counted[i])
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := m.roster.Queues().SaveBacklogs(ctx, m.taskType, m.pending)
	m.pending, m.counted = m.pending[:0], m.counted[:0]
	if err != nil {
		return m.failed(ctx, err)
	}
	return m.pauseAfter(time.Since(m.saved))
}

// sum notes the backlog of all queues, for Status.
func (m *backlogMeter) sum() {
	total := BacklogStatus{Failures: m.failures}
	for _, w := range m.windows {
		last := w.last()
		total.Known, total.Items = true, total.Items+last.Items
		if !last.Oldest.IsZero() && (total.Oldest.IsZero() || last.Oldest.Before(total.Oldest)) {
			total.Oldest = last.Oldest
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total = total
}

// status returns the backlog of all queues. A nil meter knows nothing.
func (m *backlogMeter) status() BacklogStatus {
	if m == nil {
		return BacklogStatus{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total
}
