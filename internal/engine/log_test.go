package engine_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/dutyrota/rota/internal/engine"
	"github.com/dutyrota/rota/processor"
)

type spanKey struct{}

// A line about a call has the context of the call's hook, so that a handler finds the hook's span.
func TestLinesHaveTheContextOfTheHook(t *testing.T) {
	for name, inSelect := range map[string]bool{"select": true, "execute": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				hooks := processor.Hooks{
					Select: func(ctx context.Context, _ processor.Selection) (context.Context, func(int, error)) {
						return context.WithValue(ctx, spanKey{}, "select"), nil
					},
					Execute: func(ctx context.Context, _ processor.Batch) (context.Context, func(processor.Result)) {
						return context.WithValue(ctx, spanKey{}, "execute"), nil
					},
				}
				w.start(t, failing(w, inSelect, func() error { return errBroken }), engine.Env{Hooks: []processor.Hooks{hooks}}, settings(), "a")
				synctest.Wait()
				lines := w.log.Lines()
				if len(lines) == 0 || lines[0].Level != slog.LevelWarn || lines[0].Context.Value(spanKey{}) != name {
					t.Errorf("lines: %+v, want a warning with the span %s", lines, name)
				}
			})
		})
	}
}
