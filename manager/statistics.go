package manager

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// statisticsInterval is the shortest pause between two writes of the statistics of a process (S1).
const statisticsInterval = ops.StatisticsEvery

// statisticsWriter writes the statistics of all servers of the process, in a statement and a goroutine of its own, so
// that an error of the database about a text, or a wait, costs no server its lease (S1). It writes right after a
// heartbeat has succeeded, and ends before the next one is due: otherwise a statement that waits in the database could
// hold the rows that the heartbeat writes.
type statisticsWriter struct {
	*heartbeater
	beaten  chan struct{} // capacity 1: a heartbeat has succeeded
	last    time.Time     // of the last attempt
	written map[string]roster.Statistics
	refused atomic.Bool // the last attempt failed
}

func newStatisticsWriter(h *heartbeater) *statisticsWriter {
	return &statisticsWriter{heartbeater: h, beaten: make(chan struct{}, 1), written: map[string]roster.Statistics{}}
}

func (w *statisticsWriter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.beaten:
		}
		if time.Since(w.last) < statisticsInterval {
			continue
		}
		registrations, interval, _ := w.snapshot()
		w.writeChanged(ctx, registrations, interval/2)
	}
}

// writeChanged writes what has changed since the last write.
func (w *statisticsWriter) writeChanged(ctx context.Context, registrations []*registration, limit time.Duration) {
	var changed []roster.Statistics
	written := make(map[string]roster.Statistics, len(registrations))
	for _, r := range registrations {
		now := r.statistics()
		if was, ok := w.written[r.uuid]; ok && now.Equal(was) {
			written[r.uuid] = was
		} else {
			changed = append(changed, now)
		}
	}
	if len(changed) == 0 {
		return
	}
	w.last = time.Now()
	if w.write(ctx, limit, changed...) == nil {
		for _, s := range changed {
			written[string(s.UUID)] = s
		}
	}
	w.written = written
}

// write writes statistics within a time limit. It logs the first failure, and the first success after it. It may be
// called concurrently.
func (w *statisticsWriter) write(ctx context.Context, limit time.Duration, servers ...roster.Statistics) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	err := w.roster.Roster().WriteStatistics(ctx, servers...)
	for _, o := range w.observers {
		o.Statistics(time.Since(begin), err)
	}
	switch refused := w.refused.Swap(err != nil); {
	case err != nil && !refused:
		w.log.LogAttrs(ctx, slog.LevelWarn, fmt.Sprintf("statistics not written; trying again in %s, and queues are "+
			"worked meanwhile", statisticsInterval), slog.Any("error", err))
	case err == nil && refused:
		w.log.LogAttrs(ctx, slog.LevelInfo, "statistics are written again")
	}
	return err
}
