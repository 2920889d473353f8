package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
)

func TestMatchServer(t *testing.T) {
	t.Parallel()
	servers := []center.ServerRecord{{UUID: "a:1:0001", TaskType: "x"}, {UUID: "a:1:0002", TaskType: "y"}, {UUID: "a:11:0003"}, {UUID: "b:2:0004"}}
	for name, want := range map[string]string{"b:2:0004": "b:2:0004", "b:2": "b:2:0004", "b": "b:2:0004", "a:11": "a:11:0003", "a:1:0002": "a:1:0002"} {
		if got, err := matchServer(servers, name); err != nil || got.UUID != want {
			t.Errorf("%s: %s, %v, want %s", name, got.UUID, err, want)
		}
	}
	for _, name := range []string{"", "c", "a:1:00", "b:2:0004:"} {
		if _, err := matchServer(servers, name); !errors.Is(err, errUnknownServer) {
			t.Errorf("%q: %v, want %v", name, err, errUnknownServer)
		}
	}
	_, err := matchServer(servers, "a:1")
	if !errors.Is(err, errAmbiguousServer) || !strings.HasSuffix(err.Error(), "a:1:0001 (x) or a:1:0002 (y)") {
		t.Errorf("a:1: %v", err)
	}
}

func TestResolveRun(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	extract, report := s.runs()
	newest, err := s.c.Engine().Submit(t.Context(), "extract", "second", "")
	s.must(err)
	for name, want := range map[string]string{extract: extract, report: report, "extract": newest} {
		if r, err := resolveRun(t.Context(), s.c, name); err != nil || r.ID != want {
			t.Errorf("%s: %s, %v, want %s", name, r.ID, err, want)
		}
	}
	for name, want := range map[string]error{"nope": errNoRunOrTask, "idle": errNoRunYet} {
		if _, err := resolveRun(t.Context(), s.c, name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := resolveRunIDs(t.Context(), s.c, []string{extract, "nope"}); !errors.Is(err, errNoRunOrTask) {
		t.Error(err)
	}
}

func TestPlanScenario(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	scenario, err := planScenario(t.Context(), s.c, "settle", 2, []string{"web1:1", web2})
	if err != nil || scenario.Add != 2 || strings.Join(scenario.Remove, " ") != web1+" "+web2 {
		t.Errorf("%+v, %v", scenario, err)
	}
	if _, err := planScenario(t.Context(), s.c, "regions", 0, []string{web1}); !errors.Is(err, errOtherTask) {
		t.Errorf("a server of another task type: %v", err)
	}
}
