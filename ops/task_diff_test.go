package ops

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/runs"
)

func TestUpstreamsFirst(t *testing.T) {
	t.Parallel()
	after := func(name string, upstreams ...string) TaskSettings {
		s := TaskSettings{Name: name}
		for _, u := range upstreams {
			s.Settings.After = append(s.Settings.After, runs.After{Upstream: u})
		}
		return s
	}
	for want, tasks := range map[string][]TaskSettings{
		"a b":   {after("a"), after("b")},
		"b a":   {after("a", "b"), after("b")},
		"c b a": {after("a", "b", "c"), after("b", "c"), after("c")},
		"a":     {after("a", "elsewhere")},
		"c a b": {after("a", "b"), after("b", "a"), after("c")},
	} {
		var got []string
		for _, task := range UpstreamsFirst(tasks) {
			got = append(got, task.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

func TestSettingsDiffOfQueuesAndTriggers(t *testing.T) {
	t.Parallel()
	number := func(total, wanted, waiting int) SettingsDiff {
		return SettingsDiff{Exists: true, Total: total, Rows: total, Wanted: wanted, Waiting: waiting}
	}
	split := number(4, 6, 0)
	split.Rows = 7
	for _, test := range []struct {
		diff  SettingsDiff
		added int
	}{
		{number(4, 6, 0), 2}, {number(4, 3, 0), -1}, {number(4, 4, 6), 0}, {number(4, 6, 6), 0}, {split, -1},
	} {
		if added := test.diff.QueuesAdded(); added != test.added {
			t.Errorf("%+v: %d added, want %d", test.diff, added, test.added)
		}
	}
	cron := SettingsDiff{Changes: []runs.Difference{{Name: "cron"}}}
	if !cron.ChangesTrigger() || !cron.DeletesTrigger() {
		t.Error("settings without cron and every delete the trigger")
	}
	if cron.Settings.Cron = "0 0 2 * * ?"; !cron.ChangesTrigger() || cron.DeletesTrigger() {
		t.Error("settings with cron change the trigger")
	}
}
