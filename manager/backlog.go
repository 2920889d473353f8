package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/processor"
)

const (
	// backlogInterval is the shortest time between two counts of a queue.
	backlogInterval = 10 * time.Second
	// backlogTimeout limits a count.
	backlogTimeout = 10 * time.Second
	// backlogShare is the inverse of the part of the time that the counts of a task type take, over all servers, while
	// each queue is counted within backlogRound.
	backlogShare = 100
	// backlogRound is how long the pauses after the counts of all queues of a server take together, at the most, unless
	// backlogMaxShare demands longer ones. If a server owns 30 queues and a count takes 0.1 s, the pause is 1 s and not
	// 9.9 s. Otherwise a count would be five minutes old before the next one, and nobody could use it (ops.FreshBacklog).
	backlogRound = 30 * time.Second
	// backlogMaxShare is the inverse of the part of the time that the counts of a server take at the most.
	backlogMaxShare = 10
	// backlogSaveDelay is how long a count waits for others, so that one statement records them.
	backlogSaveDelay = time.Second
	// backlogMaxPause is the longest pause after counts that fail.
	backlogMaxPause = time.Hour
	// straysInterval is the time between two counts of the items that belong to no queue.
	straysInterval = time.Hour
	// backlogFailures is the number of counts in a row that fail before an alert, which repeats while they fail.
	backlogFailures = 3
)

// backlogMeter counts the backlogs of the queues that the processor holds, one after the other, and records them. It
// counts a queue that is new here at once. It runs beside the sessions: a count that hangs holds up no hand-over, and
// only the end of the process waits for it.
type backlogMeter struct {
	*server
	dealer processor.Backlogger

	held    int                       // queues that the processor holds
	part    float64                   // of all queues that the processor holds
	windows map[string]*backlogWindow // by queue; of the present grants
	pending []ops.QueueBacklog        // counted and not recorded; Age is not set yet
	counted []time.Time               // when each of pending was counted
	rests   time.Time                 // until when only queues that are new here are counted
	failing map[string]failingCounts  // by the data database of the queues; of the writes, under ofWrites
	off     bool                      // the dealer is no Backlogger after all

	mu    sync.Mutex
	total BacklogStatus
}

// failingCounts are counts that have failed in a row.
type failingCounts struct {
	n     int
	since time.Time // when the first of them failed
	until time.Time // nothing is counted before
	last  error     // of the last of them
}

// ofWrites stands for all data databases, because writes go to the roster. No database has this name.
const ofWrites = "{writes}"

// BacklogStatus is the backlog of the queues that a server owns, as it last counted them.
type BacklogStatus struct {
	Known  bool // the dealer is a Backlogger, and a queue has been counted
	Items  int64
	Oldest time.Time // of the oldest item of all; zero if unknown

	Queues  int       // that the server owns
	Counted int       // queues that it has counted since it got them; Items is their sum
	Since   time.Time // of the oldest of these counts

	// Strays are the items that belong to no queue, or to several, as a dealer last found some that is a StrayCounter.
	// Both counts are equal if there are none, or nobody has counted. StraysSince is when a count first found some.
	Strays      processor.Strays
	StraysSince time.Time

	Failures     int       // counts in one data database, or writes, that have failed in a row
	FailingSince time.Time // when the first of them failed; zero if the last count succeeded
	LastError    error     // of the last of them
}

// Estimate returns the items of all queues that the server owns. It takes queues that have not been counted for as
// full as the others. It knows nothing while fewer than half have been counted.
func (b BacklogStatus) Estimate() (items int64, known bool) {
	return ops.EstimateBacklog(b.Items, int64(b.Counted), int64(b.Queues))
}

func newBacklogMeter(s *server, d processor.Backlogger) *backlogMeter {
	return &backlogMeter{
		server: s, dealer: d, part: 1, windows: map[string]*backlogWindow{}, failing: map[string]failingCounts{},
	}
}

// run counts until ctx is done.
func (m *backlogMeter) run(ctx context.Context) {
	for ctx.Err() == nil && !m.off {
		selections := m.proc.Selections()
		m.forget(selections)
		s, wait := m.next(selections)
		if wait <= 0 {
			m.count(ctx, s)
			m.countStrays(ctx, s)
		}
		if len(m.pending) > 0 && time.Since(m.counted[0]) >= backlogSaveDelay {
			m.save(ctx)
		}
		if wait > 0 {
			sleep(ctx, min(wait, time.Second)) // meanwhile a queue may be granted
		}
	}
}

// next returns the queue to count, and how long to wait before: a queue that is new here, or else that whose count is
// the oldest. A queue that is new here waits only after failures, so that the figures are right soon after a join.
func (m *backlogMeter) next(selections []processor.Selection) (s processor.Selection, wait time.Duration) {
	if len(selections) == 0 {
		return s, backlogInterval
	}
	s = slices.MinFunc(selections, func(a, b processor.Selection) int {
		return cmp.Or(m.at(a).Compare(m.at(b)), m.due(a).Compare(m.due(b)))
	})
	return s, time.Until(m.at(s))
}

// at returns when a queue may be counted. The failures in one data database hold up no other.
func (m *backlogMeter) at(s processor.Selection) time.Time {
	at := latest(m.failing[s.Queue.Database].until, m.failing[ofWrites].until)
	if due := m.due(s); !due.IsZero() {
		at = latest(due, m.rests, at)
	}
	return at
}

// due returns when a queue is to be counted again, or zero if it is new here.
func (m *backlogMeter) due(s processor.Selection) (at time.Time) {
	if w := m.windows[s.Queue.ID]; w != nil {
		at = w.due
	}
	return at
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// forget drops the counts of queues that the server does not hold any more, or holds under another epoch. It drops the
// failures in a data database when the server holds no queue of it.
func (m *backlogMeter) forget(selections []processor.Selection) {
	epochs, databases := map[string]int64{}, map[string]bool{ofWrites: len(selections) > 0}
	part := 0.0
	for _, s := range selections {
		epochs[s.Queue.ID], databases[s.Queue.Database] = s.Queue.Epoch, true
		part += 1 / float64(s.Total)
	}
	if part > 0 {
		m.part = min(1, part)
	}
	for id, w := range m.windows {
		if epoch, ok := epochs[id]; !ok || epoch != w.epoch {
			delete(m.windows, id)
		}
	}
	maps.DeleteFunc(m.failing, func(database string, _ failingCounts) bool { return !databases[database] })
	m.held = len(selections)
	m.sum()
}

// count counts one queue, and rests.
func (m *backlogMeter) count(ctx context.Context, s processor.Selection) {
	began := time.Now()
	b, err := m.ask(ctx, s)
	took := time.Since(began)
	if m.off = errors.Is(err, processor.ErrNoBacklog); m.off || ctx.Err() != nil {
		return
	}
	if err != nil {
		m.failed(ctx, s.Queue.Database, fmt.Errorf("queue %s: %w", s.Queue.ID, err))
		return
	}
	delete(m.failing, s.Queue.Database)
	w := m.windows[s.Queue.ID]
	if w == nil {
		w = &backlogWindow{epoch: s.Queue.Epoch}
		m.windows[s.Queue.ID] = w
	}
	adopted := m.adopted.Load()
	if !m.proc.Stats().FailingSince.IsZero() || w.adopted != adopted {
		w.counts = nil // of an outage, or of other settings: they say nothing about what comes after it
	}
	w.adopted = adopted
	w.add(backlogCount{at: time.Now(), Backlog: b, worked: m.proc.Worked(s.Queue.ID)})
	jitter := 0.9 + 0.2*rand.Float64() //nolint:gosec // it only spreads the load
	w.due = began.Add(time.Duration(float64(backlogInterval) * jitter))
	rate, demand := w.rates()
	m.pending = append(m.pending, ops.QueueBacklog{
		QueueID: s.Queue.ID, Epoch: s.Queue.Epoch, Items: b.Items, Oldest: b.Oldest, Took: took,
		Rate: rate, Trend: w.trend(), Demand: demand,
	})
	m.counted = append(m.counted, time.Now())
	m.sum()
	m.rest(took)
}

// countStrays counts the items that belong to no queue, if the count for a queue is due. An error costs an hour: the
// same statements count the backlog, and their failures are an alert already.
func (m *backlogMeter) countStrays(ctx context.Context, s processor.Selection) {
	counter, ok := m.dealer.(processor.StrayCounter)
	w := m.windows[s.Queue.ID]
	if !ok || w == nil || time.Now().Before(w.straysDue) || s.Queue.Index > 0 && s.Queue.Database == "" {
		return
	}
	w.straysDue = time.Now().Add(straysInterval)
	strays, err := guarded(ctx, func(ctx context.Context) (processor.Strays, error) { return counter.CountStrays(ctx, s) })
	if err != nil {
		m.log.LogAttrs(ctx, slog.LevelWarn, "count the items without the division into queues: failed",
			slog.Any("error", err))
		return
	}
	if w.strays = strays; strays.Items == strays.InQueues {
		w.straysSince = time.Time{}
	} else if w.straysSince.IsZero() {
		w.straysSince = time.Now()
	}
	m.sum()
}

// rest notes for how long to pause after a call. The pause keeps the counts to backlogShare of the time, but it is
// shorter if the pauses of all queues would take longer than backlogRound. It is never so short that the counts take
// more than backlogMaxShare.
func (m *backlogMeter) rest(took time.Duration) {
	pause := time.Duration((backlogShare/m.part - 1) * float64(took))
	longest := max(backlogRound/time.Duration(max(1, m.held)), (backlogMaxShare-1)*took)
	m.rests = latest(m.rests, time.Now()).Add(min(pause, longest))
}

// guarded calls the dealer. A panic is an error.
func guarded[T any](ctx context.Context, call func(context.Context) (T, error)) (result T, err error) {
	ctx, cancel := context.WithTimeout(ctx, backlogTimeout)
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return call(ctx)
}

// ask counts the backlog of a queue.
func (m *backlogMeter) ask(ctx context.Context, s processor.Selection) (processor.Backlog, error) {
	b, err := guarded(ctx, func(ctx context.Context) (processor.Backlog, error) { return m.dealer.Backlog(ctx, s) })
	if err == nil && b.Items < 0 {
		err = fmt.Errorf("%d items are left: the number must not be negative", b.Items)
	}
	return b, err
}

// failed logs a failure and notes the pause after it, which doubles. The last figures stay, with their age.
func (m *backlogMeter) failed(ctx context.Context, database string, err error) {
	f := m.failing[database]
	if f.n++; f.n == 1 {
		f.since = time.Now()
	}
	f.last, f.until = err, time.Now().Add(min(backlogMaxPause, time.Minute<<min(f.n-1, 10)))
	m.failing[database] = f
	m.sum()
	m.log.LogAttrs(ctx, slog.LevelWarn, "count the backlog: failed", slog.Any("error", err))
}

// save records the pending counts with one statement for many, and rests.
func (m *backlogMeter) save(ctx context.Context) {
	began := time.Now()
	if ctx.Err() != nil {
		return
	}
	for i := range m.pending {
		m.pending[i].Age = time.Since(m.counted[i])
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := ops.New(m.roster).Queues().SaveBacklogs(ctx, m.taskType, m.pending)
	m.pending, m.counted = m.pending[:0], m.counted[:0]
	if err != nil {
		m.failed(ctx, ofWrites, err)
		return
	}
	delete(m.failing, ofWrites)
	m.rest(time.Since(began))
}

// sum notes the backlog of all queues, for Status.
func (m *backlogMeter) sum() {
	total := BacklogStatus{Queues: m.held, Counted: len(m.windows)}
	for _, f := range m.failing {
		if f.n > total.Failures {
			total.Failures, total.FailingSince, total.LastError = f.n, f.since, f.last
		}
	}
	for _, w := range m.windows {
		last := w.last()
		total.Known, total.Items = true, total.Items+last.Items
		if !w.straysSince.IsZero() && (total.StraysSince.IsZero() || w.straysSince.Before(total.StraysSince)) {
			total.Strays, total.StraysSince = w.strays, w.straysSince
		}
		if total.Since.IsZero() || last.at.Before(total.Since) {
			total.Since = last.at
		}
		if !last.Oldest.IsZero() && (total.Oldest.IsZero() || last.Oldest.Before(total.Oldest)) {
			total.Oldest = last.Oldest
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total = total
}

// backlogPart makes a session see that counts fail, and that items belong to no queue. m may be nil.
func backlogPart(b *base, m *backlogMeter) part {
	return part{look: func(context.Context, bool) { b.alerter.checkBacklog(m.status()) }}
}

// checkBacklog notes that counts fail, and that items belong to no queue. Each is one condition of the task type,
// because the same statement fails on all servers.
func (a *alerter) checkBacklog(b BacklogStatus) {
	if !b.StraysSince.IsZero() {
		a.see(condition.Condition{Kind: condition.StrayItems.Name, Since: b.StraysSince, Text: straysText(b.Strays)})
	}
	if b.Failures >= backlogFailures {
		const text = "%d counts of the backlog in a row have failed, and the pauses between them grow; the last error: %v"
		a.see(condition.Condition{
			Kind: condition.Backlog.Name, Since: b.FailingSince, Text: fmt.Sprintf(text, b.Failures, b.LastError),
		})
	}
}

func straysText(s processor.Strays) string {
	text := fmt.Sprintf("%d of %d items belong to no queue", s.Items-s.InQueues, s.Items)
	if s.InQueues > s.Items {
		text = fmt.Sprintf("%d items are counted in more than one queue", s.InQueues-s.Items)
	}
	if s.Select != "" {
		text += "; a worker selects those of a queue with: " + s.Select
	}
	return text
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

// backlogWindow holds the last counts of a queue under one epoch. Like LinkedIn's Burrow it judges them without
// thresholds, by comparing each count with the one before. Burrow also compares the offsets of a consumer. A queue has
// no offsets, so the oldest item takes their place.
type backlogWindow struct {
	epoch   int64
	adopted int64          // server.adopted at the last count
	counts  []backlogCount // at least one
	due     time.Time      // when to count again

	straysDue   time.Time // when to count the items that belong to no queue again
	strays      processor.Strays
	straysSince time.Time // when there were some first; zero if the last count found none
}

const (
	// backlogCounts is the number of counts of a window.
	backlogCounts = 10

	// backlogRecent is how many counts there are, of about half a minute, of which one must be less than the one before
	// where a backlog drains. Otherwise the window would say so for a minute after all calls have begun to hang.
	backlogRecent = 4
)

type backlogCount struct {
	at time.Time
	processor.Backlog
	worked engine.Work
}

func (w *backlogWindow) add(c backlogCount) {
	if len(w.counts) == backlogCounts {
		w.counts = append(w.counts[:0], w.counts[1:]...)
	}
	w.counts = append(w.counts, c)
}

func (w *backlogWindow) last() backlogCount { return w.counts[len(w.counts)-1] }

func (w *backlogWindow) recent() []backlogCount {
	return w.counts[max(0, len(w.counts)-backlogRecent):]
}

// rates returns by how many items per second the backlog has grown since the first count, and how many executors the
// queue needs to keep up with what arrives: the part of the time in which its calls were in flight, and more in
// proportion if its backlog grows. Both are nil after one count. If the backlog has become less, and none of the recent
// counts is less than the one before, its rate is that of the recent ones: what was done before has stopped.
func (w *backlogWindow) rates() (rate, demand *float64) {
	first, last := w.counts[0], w.last()
	took := last.at.Sub(first.at).Seconds()
	if len(w.counts) < 2 || took <= 0 {
		return nil, nil
	}
	done, more := last.worked.Items-first.worked.Items, last.Items-first.Items
	executors := max(0, (last.worked.Time-first.worked.Time).Seconds()/took) // < 0 if it was granted once more meanwhile
	if done > 0 && more > 0 {
		executors *= float64(done+more) / float64(done)
	}
	if recent := w.recent(); more < 0 && !fell(recent) {
		more, took = last.Items-recent[0].Items, last.at.Sub(recent[0].at).Seconds()
	}
	return new(float64(more) / took), &executors
}

// trend returns what the counts say together: nothing after fewer than three, unless the queue is empty.
func (w *backlogWindow) trend() string {
	first, last := w.counts[0], w.last()
	switch {
	case last.Items == 0:
		return ops.BacklogEmpty
	case len(w.counts) < 3:
		return ""
	case fell(w.counts):
		if last.Items < first.Items && fell(w.recent()) {
			return ops.BacklogDraining
		}
		return ops.BacklogSteady
	case !last.Oldest.IsZero() && last.Oldest.Equal(first.Oldest):
		return ops.BacklogStuck
	case last.Items > w.found().Items:
		return ops.BacklogGrowing
	}
	return ops.BacklogSteady
}

// found returns the first count that found an item, of counts that never fell and whose last one did. An item that has
// just come to an empty queue proves no growth.
func (w *backlogWindow) found() backlogCount {
	return w.counts[slices.IndexFunc(w.counts, func(c backlogCount) bool { return c.Items > 0 })]
}

// fell reports whether a count was less than the one before.
func fell(counts []backlogCount) bool {
	for i, c := range counts[1:] {
		if c.Items < counts[i].Items {
			return true
		}
	}
	return false
}
