// Package logtest keeps what a logger writes, for tests.
package logtest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// Line is a line of a log. Fields holds the values that were logged, so that an error is still an error.
type Line struct {
	Context context.Context
	Level   slog.Level
	Text    string
	Fields  map[string]any
}

// Log keeps the lines of a logger. Its methods may be called concurrently.
type Log struct {
	mu    sync.Mutex
	lines []Line
}

// New returns a logger for lines of at least that level, and the log that keeps them.
func New(level slog.Level) (*slog.Logger, *Log) {
	l := &Log{}
	return slog.New(&handler{log: l, level: level}), l
}

// Lines returns the lines so far.
func (l *Log) Lines() []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// handler is the slog.Handler of a Log.
type handler struct {
	log   *Log
	level slog.Level
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	line := Line{Context: ctx, Level: r.Level, Text: r.Message, Fields: map[string]any{}}
	add := func(a slog.Attr) bool {
		if _, ok := line.Fields[a.Key]; ok {
			panic("field " + a.Key + " twice in: " + r.Message)
		}
		line.Fields[a.Key] = a.Value.Any()
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	h.log.lines = append(h.log.lines, line)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.log, h.level, slices.Concat(h.attrs, attrs)}
}

// WithGroup implements slog.Handler. The library logs no groups.
func (h *handler) WithGroup(name string) slog.Handler { panic("group " + name) }
