package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/dutyrota/rota/internal/failures"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		extract, report := s.runs()
		s.must(s.c.Engine().Runs.Cancel(t.Context(), extract, "test"))
		for args, want := range map[string]string{
			"task show":            "extract idle regions report settle",
			"task show s":          "settle",
			"task show settle":     "", // the command takes one argument
			"plan":                 "extract idle regions report settle",
			"plan settle --remove": web1 + " " + web2,
			"worker drain":         web1 + " " + web2,
			"worker drain web2":    web2,
			"queue remove regions": "north south",
			"queue list --status":  "HELD MOVING OVERDUE ORPHAN RESERVED UNASSIGNED",
			"queue list -o":        "table json csv",
			"item retry settle":    "",

			"event list settle --queue":      "0 1 2 3",
			"queue list --host":              "web1 web2",
			"event list --kind":              strings.Join(ops.EventKinds(), " "),
			"run submit":                     "extract idle report",
			"run submit extract --after":     report + " " + extract + " extract idle report",
			"run show":                       report + " " + extract + " extract idle report",
			"run rerun":                      report + " " + extract + " extract idle report",
			"run cancel":                     "extract idle report", // no run is open
			"run list --state":               "WAITING READY RUNNING SUCCESS FAILED DEPENDENT_FAILED CANCELLED SKIPPED",
			"run backfill extract --trigger": "nightly",
			"run backfill show":              "", // there is none
			"trigger fire":                   "nightly",
			"trigger apply x --task":         "extract idle report",
			"trigger apply x --overlap":      "SKIP WAIT",
			"trigger apply x --misfire":      "ONE SKIP ALL",
		} {
			// The last word is what the user has typed so far; it may be empty.
			words, typed := strings.Fields(args), ""
			if last := words[len(words)-1]; last == "s" || last == "web2" {
				words, typed = words[:len(words)-1], last
			}
			cmd := rota(t.Context(), s.dir, slices.Concat([]string{"__complete"}, words, []string{typed})...)
			cmd.Env = append(cmd.Env, "ROTA_DATABASE="+url)
			stdout, err := cmd.Output()
			s.must(err)
			var got []string
			for line := range strings.Lines(string(stdout)) {
				if name, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); name != "" && !strings.HasPrefix(name, ":") {
					got = append(got, name)
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %q, want %q", args, got, want)
			}
		}
	})
}

// Completion offers no part of a key: the shell takes what follows a tab for a description, and the part is perhaps
// the key of another item.
func TestCompletionOfKeys(t *testing.T) {
	t.Parallel()
	s := newTestRoster(t, testdb.URL(t, testdb.SQLite))
	var items []failures.Item
	for _, key := range []string{"4711", "4712\tEUR", "4713\nEUR"} {
		items = append(items, failures.Item{Key: key, QueueID: "0", State: ops.ItemDead, Attempts: 1, LastError: "no"})
	}
	s.must(failures.Of(s.c.Roster()).Save(t.Context(), "settle", items))
	args := []string{"__complete", "item", "drop", "--database", s.url, "settle", ""}
	if stdout, _, _ := runRota(t, s.dir, args...); stdout != "4711\n:4\n" {
		t.Errorf("the items are %q", stdout)
	}
}

// Completion prints no errors into the user's command line.
func TestCompletionIsSilent(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := runRota(t, t.TempDir(), "__completeNoDesc", "task", "show", "--database", "postgres://u@127.0.0.1:1/d", "")
	if code != 0 || stdout != ":4\n" || strings.Contains(stderr, "cannot connect") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}
