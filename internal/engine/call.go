package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dutyrota/rota/processor"
)

// call is the common part of a select and a batch. While the call is in flight, other goroutines read lane, grant and
// began under the scheduler's lock. Its executor owns the rest.
type call struct {
	*setup
	lane  *lane
	grant *grant // the queue of the call, whose drain waits for it
	began time.Time

	ctx      context.Context // of the queue
	logCtx   context.Context // of the lines about the call: ctx, with what the hook has added
	now      time.Time       // when the executor last read the clock
	settings *Settings

	// When the call was claimed:
	wakes    uint64 // the scheduler's
	quota    int    // how many items the call may try while the breaker is open; 0 while it is closed
	round    uint64 // setup.rounds
	reloaded uint64 // setup.reloads
	doubted  bool   // so much had failed since the last success that a failure says little about its item

	outcome outcome
	err     error
	took    time.Duration // of the dealer
	keys    []string      // a buffer, reused by the next call
}

// outcome is the result of a call.
type outcome int

const (
	done      outcome = iota
	failed            // an error or a panic
	lost              // an error that means that a queue was lost
	cancelled         // an error after the call was cancelled; it says nothing about the items
	dropped           // not started, because the call was cancelled before, or its queue drains
	untrusted         // not started, because Trusted returned false
)

// started reports whether the dealer was called.
func (o outcome) started() bool { return o < dropped }

func (o outcome) public() processor.Outcome {
	return [...]processor.Outcome{
		processor.OutcomeDone, processor.OutcomeFailed, processor.OutcomeLost, processor.OutcomeCancelled,
		"dropped", "not trusted",
	}[o]
}

func (o outcome) String() string { return string(o.public()) }

// classify returns what an error of the dealer or of a store means for the call.
func (c *call) classify(err error) outcome {
	_, panicked := errors.AsType[*panicError](err)
	switch {
	case panicked, errors.Is(err, errExited):
		return failed // a bug, even if the queue is lost or cancelled too
	case c.ctx.Err() != nil:
		return cancelled
	case errors.Is(err, errDrains):
		return dropped
	case c.env.Lost(err):
		return lost
	}
	return failed
}

// inTime calls the dealer with a context that ends after BatchTimeout. If this may have caused an error, the error
// names the setting.
func (c *call) inTime(ctx context.Context, f func(context.Context) error) error {
	limit := c.settings.BatchTimeout
	if limit == 0 {
		return f(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(bounded)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return fmt.Errorf("%w (batch_timeout is %s)", err, limit)
	}
	return err
}

// logFailure logs the failure of a call of the dealer. The processor calls it again, so a failure other than a panic is
// only a warning. If only failures follow, package manager raises an alert.
func (c *call) logFailure(operation string, o outcome, err error, attrs ...slog.Attr) {
	level := slog.LevelWarn
	attrs = append(attrs, slog.Any("error", err))
	if o == cancelled || o == dropped {
		level = slog.LevelDebug
	} else if panicked, ok := errors.AsType[*panicError](err); ok {
		attrs = append(attrs, slog.String("stack", string(panicked.stack)))
		level = slog.LevelError
	}
	c.logLine(level, operation+": "+o.String(), attrs...)
}

// logError logs the error of an operation beside Select and Execute, and returns what it means. If the queue is lost,
// this is the outcome of the call. key is that of the item, if the operation concerns a single one.
func (c *call) logError(operation, key string, err error) outcome {
	o := c.classify(err)
	if o == lost {
		c.outcome = lost
	}
	var attrs []slog.Attr
	if key != "" {
		attrs = append(attrs, slog.String("key", key))
	}
	c.logFailure(operation, o, err, attrs...)
	return o
}

// logLine logs a failure of the call with its queue, as one line per minute and text.
func (c *call) logLine(level slog.Level, text string, attrs ...slog.Attr) {
	if c.env.Logger.Enabled(c.logCtx, level) {
		c.lines.log(c.logCtx, level, text, append([]slog.Attr{slog.String("queue", c.queueID())}, attrs...))
	}
}

func (c *call) queueID() string { return c.grant.queue.ID }

// failureLines logs failures: the first of a kind at once, and from then on one line per minute with the number of
// failures in between and one of them as an example. An outage of an hour is sixty lines, however many calls it fails.
// After a minute without a failure of the kind, the next failure is logged at once. The text of a line is its kind, so
// it must not name a queue or an item.
type failureLines struct {
	logger *slog.Logger

	mu    sync.Mutex
	kinds map[string]*failureLine
}

// failureLine holds the failures of a kind since its last line.
type failureLine struct {
	timer *time.Timer
	count int
	last  func(more ...slog.Attr) // writes the last of them
}

// failureLineEvery is the pause between two lines of a kind.
const failureLineEvery = time.Minute

// log logs a failure, or counts it. It keeps ctx and attrs.
func (f *failureLines) log(ctx context.Context, level slog.Level, text string, attrs []slog.Attr) {
	write := func(more ...slog.Attr) { f.logger.LogAttrs(ctx, level, text, append(attrs, more...)...) }
	if level <= slog.LevelDebug {
		write()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if line := f.kinds[text]; line != nil {
		line.count++
		line.last = write
		return
	}
	if f.kinds == nil {
		f.kinds = map[string]*failureLine{}
	}
	f.kinds[text] = &failureLine{timer: time.AfterFunc(failureLineEvery, func() { f.next(text) })}
	write()
}

// next logs the failures of the last minute.
func (f *failureLines) next(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.kinds[text]
	if line == nil {
		return // flush was faster
	}
	if !line.flush() {
		delete(f.kinds, text)
		return
	}
	line.timer.Reset(failureLineEvery)
}

// flush logs the failures that are counted and not logged yet, with the last of them as the example. It reports whether
// there are any.
func (l *failureLine) flush() bool {
	if l.count == 0 {
		return false
	}
	l.last(slog.Int("count", l.count))
	l.count, l.last = 0, nil
	return true
}

// flush logs the failures that are counted and not logged yet.
func (f *failureLines) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(f.kinds)) {
		f.kinds[text].timer.Stop()
		f.kinds[text].flush()
	}
	f.kinds = nil
}
