package processor

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// failureLines logs failures: the first of a kind at once, and from then on one line per minute with the number of
// failures in between and one of them as an example. An outage of an hour is sixty lines, however many calls it fails.
// After a minute without a failure of the kind, the next failure is logged at once. The text of a line is its kind, so
// it must not name a queue or an item.
type failureLines struct {
	mu    sync.Mutex
	kinds map[string]*failureLine
}

// failureLine holds the failures of a kind since its last line.
type failureLine struct {
	timer *time.Timer
	count int
	entry *logrus.Entry // the last of them
	level logrus.Level
}

// failureLineEvery is the pause between two lines of a kind.
const failureLineEvery = time.Minute

// log logs a failure, or counts it.
func (f *failureLines) log(level logrus.Level, entry *logrus.Entry, text string) {
	if level >= logrus.DebugLevel {
		entry.Log(level, text)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	line := f.kinds[text]
	if line != nil {
		line.count++
		line.entry, line.level = entry, level
		return
	}
	if f.kinds == nil {
		f.kinds = map[string]*failureLine{}
	}
	f.kinds[text] = &failureLine{timer: time.AfterFunc(failureLineEvery, func() { f.next(text) })}
	entry.Log(level, text)
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
	line.write(text)
	line.timer.Reset(failureLineEvery)
}

func (l *failureLine) write(text string) {
	l.entry.WithField("count", l.count).Log(l.level, text)
	l.count = 0
}

// flush logs the failures that are counted and not logged yet.
func (f *failureLines) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range slices.Sorted(maps.Keys(f.kinds)) {
		line := f.kinds[text]
		line.timer.Stop()
		if line.count > 0 {
			line.write(text)
		}
	}
	f.kinds = nil
}
