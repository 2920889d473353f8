package processor

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

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
	last  failureRecord
}

// failureRecord is what is logged of a failure, beside its text.
type failureRecord struct {
	ctx   context.Context
	level slog.Level
	attrs []slog.Attr
}

// failureLineEvery is the pause between two lines of a kind.
const failureLineEvery = time.Minute

// log logs a failure, or counts it. It keeps ctx and attrs.
func (f *failureLines) log(ctx context.Context, level slog.Level, text string, attrs []slog.Attr) {
	if level <= slog.LevelDebug {
		f.logger.LogAttrs(ctx, level, text, attrs...)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.kinds[text]
	if line != nil {
		line.count++
		line.last = failureRecord{ctx, level, attrs}
		return
	}
	if f.kinds == nil {
		f.kinds = map[string]*failureLine{}
	}
	f.kinds[text] = &failureLine{timer: time.AfterFunc(failureLineEvery, func() { f.next(text) })}
	f.logger.LogAttrs(ctx, level, text, attrs...)
}

// next logs the failures of the last minute.
func (f *failureLines) next(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.kinds[text]
	if line == nil {
		return // flush was faster
	}
	if line.count == 0 {
		delete(f.kinds, text)
		return
	}
	f.write(line, text)
	line.timer.Reset(failureLineEvery)
}

// write logs the failures that a line has counted, with the last of them as the example.
func (f *failureLines) write(line *failureLine, text string) {
	f.logger.LogAttrs(line.last.ctx, line.last.level, text, append(line.last.attrs, slog.Int("count", line.count))...)
	line.count, line.last = 0, failureRecord{}
}

// flush logs the failures that are counted and not logged yet.
func (f *failureLines) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(f.kinds)) {
		line := f.kinds[text]
		line.timer.Stop()
		if line.count > 0 {
			f.write(line, text)
		}
	}
	f.kinds = nil
}
