package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/schema"
)

// Every command that prints a result takes -o.
func TestEveryCommandTakesOutput(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.HasSubCommands() || slices.Contains(notSwept, strings.TrimPrefix(cmd.CommandPath(), "rota ")) {
			return
		}
		if f := cmd.Flags().Lookup("output"); f == nil || f.Shorthand != "o" {
			t.Errorf("%s has no -o", cmd.CommandPath())
		}
	}
	visit(newRootCommand())
}

// Commands that change something reply with one JSON object, and with a line of CSV below the names.
func TestRepliesAsJSONAndCSV(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.runs()
		for _, test := range []struct {
			args string
			want map[string]any // members of the object
		}{
			{"migrate up", map[string]any{"version": float64(schema.Latest()), "from_version": float64(schema.Latest())}},
			{"task pause settle", map[string]any{"object": "settle$BASE", "result": "paused; every worker finishes what it has in flight"}},
			{"queue add regions west", map[string]any{"object": "queue west of regions$BASE", "queue_id": "west", "result": "added"}},
			{"queue pin regions west zone=b|c", map[string]any{"object": "queue west of regions$BASE", "queue_id": "west", "pin": "zone=b|c", "result": "pinned to zone=b|c"}},
			{"queue unpin regions west", map[string]any{"queue_id": "west", "result": "not pinned any more"}},
			{"queue remove regions west --yes", map[string]any{"object": "queue west of regions$BASE", "queue_id": "west"}},
			{"item retry settle --all", map[string]any{"object": "settle$BASE", "items": 0.0, "result": "0 failed items retried"}},
			{"trigger pause nightly", map[string]any{"object": "nightly$BASE"}},
			{"run submit idle --key k", map[string]any{"existed": false}},
			{"trigger delete nightly --yes", map[string]any{"result": "deleted"}},
			{"run cancel idle", map[string]any{"result": "cancelled"}},
			{"task delete idle --yes", map[string]any{"object": "idle", "result": "deleted"}},
		} {
			var record map[string]any
			if err := json.Unmarshal([]byte(s.run(test.args+" -o json")), &record); err != nil {
				t.Errorf("rota %s: %v", test.args, err)
			}
			for name, want := range test.want {
				if record[name] != want {
					t.Errorf("rota %s: %s is %v, want %v", test.args, name, record[name], want)
				}
			}
		}
		if got := s.run("run list idle"); !strings.Contains(got, "CANCELLED") {
			t.Errorf("the runs of a deleted task type are %q, want its cancelled one", got)
		}
		if got := s.run("task resume settle -o csv"); got != "object,result\nsettle$BASE,resumed\n" {
			t.Errorf("CSV is %q", got)
		}
		if got := s.run("migrate status -o csv"); !strings.HasPrefix(got, "version,name,applied_at\n1,roster,20") {
			t.Errorf("CSV is %q", got)
		}
	})
}

// run wait writes its progress to stderr, and the run to stdout, also if it did not succeed.
func TestRunWaitAsJSON(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	id, _ := s.runs()
	s.run("run cancel " + id)
	stdout, stderr, code := s.try("run wait " + id + " -o json")
	var record map[string]any
	s.must(json.Unmarshal([]byte(stdout), &record))
	if code != 1 || record["run_id"] != id || record["state"] != "CANCELLED" || !strings.Contains(stderr, "is CANCELLED") {
		t.Errorf("exit code %d, stderr %q, record %v", code, stderr, record)
	}
}
