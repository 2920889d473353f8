package manager

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/dutyrota/rota/center"
)

// hearing is whether the hints of other processes reach this one (X9).
type hearing struct {
	log  *slog.Logger
	on   atomic.Bool
	told bool // the log has the present state; only the goroutine of Manager.listen uses it
}

// changed notes whether hints arrive.
func (h *hearing) changed(ctx context.Context, err error) {
	was := h.on.Swap(err == nil)
	switch {
	case h.told && was == (err == nil):
		return
	case err == nil:
		h.log.LogAttrs(ctx, slog.LevelInfo, "hints of other processes arrive")
	default:
		const text = "no hints of other processes arrive; new items are found by the next look"
		h.log.LogAttrs(ctx, slog.LevelWarn, text, slog.Any("error", err))
	}
	h.told = true
}

// listen passes the hints of other processes to the processors until ctx is done.
func (m *Manager) listen(ctx context.Context) {
	if !m.cfg.NoHints && m.c.CanListen() {
		wake := func(h center.Hint) { m.Wake(h.TaskType, h.Keys...) }
		_ = m.c.Listen(ctx, func(err error) { m.hearing.changed(ctx, err) }, wake) // changed has the errors
	}
}
