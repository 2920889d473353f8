package main

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/center"
)

func TestUpstreamsFirst(t *testing.T) {
	t.Parallel()
	after := func(name string, upstreams ...string) taskSettings {
		s := taskSettings{name: name}
		for _, u := range upstreams {
			s.settings.After = append(s.settings.After, center.After{Upstream: u})
		}
		return s
	}
	for want, tasks := range map[string][]taskSettings{
		"a b":   {after("a"), after("b")},
		"b a":   {after("a", "b"), after("b")},
		"c b a": {after("a", "b", "c"), after("b", "c"), after("c")},
		"a":     {after("a", "elsewhere")},
		"c a b": {after("a", "b"), after("b", "a"), after("c")},
	} {
		var got []string
		for _, task := range upstreamsFirst(tasks) {
			got = append(got, task.name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

func TestTaskDiffOfQueuesAndTriggers(t *testing.T) {
	t.Parallel()
	number := func(total, wanted, waiting int) taskDiff {
		return taskDiff{SettingsDiff: center.SettingsDiff{Exists: true, Total: total, Wanted: wanted, Waiting: waiting}}
	}
	for _, test := range []struct {
		diff           taskDiff
		added, removed int
	}{
		{number(4, 6, 0), 2, 0}, {number(4, 3, 0), 0, 1}, {number(4, 4, 6), 0, 0}, {number(4, 6, 6), 0, 0},
	} {
		if a, r := test.diff.queuesAdded(), test.diff.queuesRemoved(); a != test.added || r != test.removed {
			t.Errorf("%+v: %d added, %d removed, want %d and %d", test.diff, a, r, test.added, test.removed)
		}
	}
	cron := taskDiff{SettingsDiff: center.SettingsDiff{Changes: []center.Difference{{Name: "cron"}}}}
	if !cron.changesTrigger() || !cron.deletesTrigger() {
		t.Error("settings without cron and every delete the trigger")
	}
	if cron.settings.Cron = "0 0 2 * * ?"; !cron.changesTrigger() || cron.deletesTrigger() {
		t.Error("settings with cron change the trigger")
	}
}
