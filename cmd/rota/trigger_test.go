package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

const dawn = `trigger apply dawn --task extract --misfire ALL --overlap WAIT --time-zone Europe/Berlin --cron`

// apply creates a trigger, changes it, and does nothing without a difference. A dry run writes nothing.
func TestTriggerApply(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.runs()
		row := func() runs.Trigger {
			list, err := ops.New(s.c).Triggers().List(t.Context(), runs.TriggerFilter{Name: "dawn"})
			s.must(err)
			if len(list) == 0 {
				return runs.Trigger{}
			}
			return list[0].Trigger
		}
		due := regexp.MustCompile(`\nIt is due, in Europe/Berlin:\n( \w\w\w \S+T05:30:00\+0[12]:00  in \S+\n){5}`)
		for _, test := range []struct{ more, want string }{
			{"--dry-run", "dawn$BASE: would be created for extract\n"}, {"", "dawn$BASE: created for extract\n"}, {"", "dawn$BASE: nothing to do\n"},
		} {
			before := row()
			got := s.run(dawn, append([]string{"0 30 5 * * ?"}, strings.Fields(test.more)...)...)
			if !strings.HasPrefix(got, test.want) || !due.MatchString(got) {
				t.Errorf("want %s, got\n%s", test.want, got)
			}
			if test.want != "dawn$BASE: created for extract\n" && !cmp.Equal(before, row()) {
				t.Errorf("it was written: %+v", row())
			}
		}
		if now := row(); now.Expression != "0 30 5 * * ?" || now.Misfire != runs.MisfireAll || now.Overlap != runs.OverlapWait || now.TimeZone != "Europe/Berlin" {
			t.Errorf("%+v", now)
		}
		s.run("trigger pause dawn")
		s.wantOutput("trigger apply dawn --task extract --every 90m --priority 7 --dry-run", `(?s)^dawn\$BASE:\n SETTING .*`+
			` kind +CRON +EVERY\n expression +0 30 5 \* \* \? +1h30m0s\n time_zone +Europe/Berlin +UTC\n start_at +- +\S+\n misfire +ALL +ONE\n overlap +WAIT +SKIP\n`+
			` priority +0 +7\nIt is PAUSED, and .*in UTC:\n.*\nNothing was written\.\n$`)
		var applied map[string]any
		s.must(json.Unmarshal([]byte(s.run("trigger apply dawn --task extract --every 90m --max-fires 2 -o json")), &applied))
		if row().MaxFires != 2 || applied["max_fires"] != 2.0 || applied["status"] != "PAUSED" || len(applied["next"].([]any)) != 2 ||
			applied["changes"].([]any)[0].(map[string]any)["setting"] != "kind" || applied["result"] != "changed" {
			t.Errorf("%+v, row %+v", applied, row())
		}
		for _, name := range []string{"result", "next", "changes"} {
			delete(applied, name)
		}
		s.namesAreColumns("trigger apply", applied, "schedule_trigger", nil)
		s.wantOutput("trigger apply old --task extract --at 2020-01-01T00:00:00Z", `(?m)^ Wed 2020-01-01T00:00:00Z  \d+d\d+h ago$`)
		s.wantOutput("trigger apply over --task extract --every 1h --end 2020-01-01T00:00:00Z --start 2019-01-01T00:00:00Z", `created for extract\nIt is not due any more\.\n$`)
	})
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	testdb.EachIfLong(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newTestRoster(t, url)
		s.runs()
		s.lists("trigger list", `nightly +extract +ACTIVE +0 0 2 \* \* \? Europe/Berlin +in \S+ +- +0 +0 +0 +WAIT +ONE`, "schedule_trigger", 1, "")
		s.lists("trigger list extract", `nightly +extract`, "schedule_trigger", 1, "")
		if got := s.run("trigger list idle -o json"); got != "[]\n" {
			t.Errorf("a trigger of another task type: %s", got)
		}
		s.wantOutput("trigger pause nightly", `^nightly\$BASE: paused; it misses its slots\n$`)
		s.wantOutput("trigger list", ` PAUSED .* Europe/Berlin +- +-`)
		s.wantOutput("trigger resume nightly", `^nightly\$BASE: resumed\n$`)

		centertest.Exec(t, s.c, "UPDATE schedule_trigger SET status = 'ERROR', expression = 'often'")
		for _, flag := range []string{"", " --dry-run"} {
			s.wantError(1, "rota: resume trigger nightly: expression: cron \"often\": has 1 field", "trigger resume nightly"+flag)
		}
		centertest.Exec(t, s.c, "UPDATE schedule_trigger SET status = 'DONE', expression = '0 0 2 * * ?', next_fire_at = NULL")
		for _, verb := range []string{"pause", "resume"} {
			s.wantOutput("trigger "+verb+" nightly", `^nightly\$BASE: nothing to do; it is DONE: it has no further slot\n$`)
		}
		fired := strings.TrimSpace(s.run("trigger fire nightly")) // WAIT lets one run of the trigger wait
		s.wantOutput("run show "+fired, ` by trigger nightly, for \S+Z, priority 0`)
		stdout, stderr, code := s.try("trigger fire nightly")
		skipped := strings.TrimSpace(stdout)
		if want := "rota: run " + skipped + " (extract) is SKIPPED: run " + fired + " is READY\n"; code != 1 || stderr != want {
			t.Errorf("exit code %d, stdout %q, stderr %q, want %q", code, stdout, stderr, want)
		}
		s.wantError(2, "delete trigger nightly$BASE, which starts runs of extract: not confirmed: add --yes", "trigger delete nightly")
		s.wantOutput("trigger delete nightly --yes", `^nightly\$BASE: deleted\n$`)
		s.wantError(1, "find trigger nightly in own_sign BASE: unknown trigger", "trigger delete nightly --yes")
		if n := count(t, s.c.DB(), "schedule_event WHERE kind = 'TRIGGER' AND actor = '"+cli.Actor()+"'"); n != 5 {
			t.Errorf("%d events of what was done to triggers, want 5", n)
		}
	})
}
