package engine

import (
	"log/slog"
	"testing"

	"github.com/dutyrota/rota/internal/logtest"
)

// A line whose level is disabled costs no allocation.
func TestDisabledLinesAllocateNothing(t *testing.T) {
	logger, _ := logtest.New(slog.LevelInfo)
	env := Env{Logger: logger}.withDefaults()
	c := &call{setup: &setup{env: env, lines: failureLines{logger: env.Logger}}, logCtx: t.Context(), grant: &grant{}}
	n := testing.AllocsPerRun(100,
		func() { c.logLine(slog.LevelDebug, "execute: cancelled", slog.Any("error", errExited)) })
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
