package manager

import (
	"time"

	"github.com/sirupsen/logrus"
)

// retryLine logs the failures of a step that a server repeats until it succeeds. It logs the first failure at once.
// From then on it logs one line per minute, with the number of failures since the last line and the last failure as an
// example. An outage of an hour is sixty lines. The processor logs its calls in the same way. Only one goroutine uses a
// retryLine.
type retryLine struct {
	text  string
	last  time.Time // of the last line; zero before the first
	count int       // failures since
	entry *logrus.Entry
}

// retryLineEvery is the pause between two lines.
const retryLineEvery = time.Minute

// failed logs a failure, or counts it.
func (r *retryLine) failed(log logrus.FieldLogger, err error) {
	r.entry = log.WithError(err)
	if r.last.IsZero() {
		r.last = time.Now()
		r.entry.Warn(r.text)
		return
	}
	r.count++
	if time.Since(r.last) >= retryLineEvery {
		r.flush()
	}
}

// flush logs the failures that it has counted and not logged yet.
func (r *retryLine) flush() {
	if r.count > 0 {
		r.entry.WithField("count", r.count).Warn(r.text)
		r.last, r.count = time.Now(), 0
	}
}
