package main

import (
	"errors"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

func TestResolveRun(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	extract, report := s.runs()
	newest, _, err := s.c.Engine().Runs.Submit(t.Context(), "extract", runs.Submission{Key: "second"})
	s.must(err)
	for name, want := range map[string]string{extract: extract, report: report, "extract": newest} {
		if r, err := ops.New(s.c).Runs().Find(t.Context(), name); err != nil || r.ID != want {
			t.Errorf("%s: %s, %v, want %s", name, r.ID, err, want)
		}
	}
	for name, want := range map[string]error{"nope": runs.ErrNoRunOrTask, "idle": runs.ErrNoRunYet} {
		if _, err := ops.New(s.c).Runs().Find(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}
