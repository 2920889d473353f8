package manager

import (
	"context"
	"log/slog"
	"time"
)

// retryLine logs the failures of a step that a server repeats until it succeeds. It logs the first failure at once.
// From then on it logs one line per minute, with the number of failures since the last line and the last failure as an
// example. An outage of an hour is sixty lines. The processor logs its calls in the same way. Only one goroutine uses a
// retryLine.
type retryLine struct {
	log   *slog.Logger
	text  string
	at    time.Time // of the last line; zero before the first
	count int       // failures since
	err   error     // of the last failure
}

// retryLineEvery is the pause between two lines.
const retryLineEvery = time.Minute

// failed logs a failure, or counts it.
func (r *retryLine) failed(ctx context.Context, err error) {
	r.err = err
	if r.at.IsZero() {
		r.at = time.Now()
		r.log.LogAttrs(ctx, slog.LevelWarn, r.text, slog.Any("error", err))
		return
	}
	r.count++
	if time.Since(r.at) >= retryLineEvery {
		r.flush(ctx)
	}
}

// flush logs the failures that it has counted and not logged yet.
func (r *retryLine) flush(ctx context.Context) {
	if r.count > 0 {
		r.log.LogAttrs(ctx, slog.LevelWarn, r.text, slog.Any("error", r.err), slog.Int("count", r.count))
		r.at, r.count = time.Now(), 0
	}
}
