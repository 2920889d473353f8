package center_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// Set reads what Records writes, for each setting.
func TestSettingsAreParsedFromTheirTexts(t *testing.T) {
	t.Parallel()
	want := center.Settings{
		ExecuteNumber: 7, SleepTimeNoData: 90 * time.Second, ProcessorType: center.ProcessorNotSleep, RatePerSecond: 0.25, Coalesce: true,
		PermitRunStartTime: "startrun:0 0 2 * * ?", TaskParameter: `{"a": "b, c"}`, Mode: center.ModeRun,
		After: []runs.After{{Upstream: "extract", Any: true}, {Upstream: "load", Rule: runs.RuleFinished, Any: true}},
	}.WithDefaults()
	var got center.Settings
	texts := map[string]string{}
	for _, r := range want.Records() {
		texts[r.Name] = r.Text
	}
	for name, text := range texts {
		if err := got.Set(name, text); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSetNamesTheSettingAndTheRule(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"execute_number": "many", "rate_per_second": "1/s", "coalesce": "perhaps", "batch_timeout": "5", "after": "a b c", "queues": "[a",
	} {
		var s center.Settings
		if err := s.Set(name, text); err == nil || !strings.HasPrefix(err.Error(), name+" ("+text+") must be ") {
			t.Errorf("%s: error %v", name, err)
		}
		if err := s.Set(name, ""); err != nil || !cmp.Equal(s, center.Settings{}) {
			t.Errorf("%s without a text: %+v, %v", name, s, err)
		}
	}
	for name, text := range map[string]string{"execute_number": "0", "item_retry_jitter": "0.0", "sleep_time_nodata": "0s"} {
		if err := new(center.Settings).Set(name, text); err == nil || !strings.Contains(err.Error(), " must be more than 0: leave it empty for the default, ") {
			t.Errorf("%s=%s, which would mean the default: error %v", name, text, err)
		}
	}
	for name, text := range map[string]string{"batch_timeout": "0s", "max_in_flight": "0", "rate_per_second": "0", "count_in_outage": "false"} {
		if err := new(center.Settings).Set(name, text); err != nil {
			t.Errorf("%s=%s, which means itself: error %v", name, text, err)
		}
	}
	for name, want := range map[string]string{
		"fetchnumber": "fetchnumber: unknown setting; did you mean fetch_number?",
		"queue":       "queue: unknown setting; did you mean queues?",
		"weather":     "weather: unknown setting; the known settings are after, balance, ",
	} {
		if err := new(center.Settings).Set(name, "1"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("unknown setting: error %v, want %s", err, want)
		}
	}
}

// Lists may be as in rota.yaml. A number of queues replaces their names, and the other way round.
func TestSetReadsLists(t *testing.T) {
	t.Parallel()
	var s center.Settings
	for _, set := range [][2]string{{"queues", "7"}, {"queues", "[north, south]"}, {"after", "[extract, load: FINISHED]"}} {
		if err := s.Set(set[0], set[1]); err != nil {
			t.Error(err)
		}
	}
	want := center.Settings{QueueNames: []string{"north", "south"}, After: []runs.After{{Upstream: "extract"}, {Upstream: "load", Rule: runs.RuleFinished}}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := s.Set("queues", "7"); err != nil || s.Queues != 7 || s.QueueNames != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// Names of queues are those of rows. A text with any names is read back as the same names: a form of the console, and a
// command line that the doctor prints, have such texts.
func TestTextsOfQueueNamesAreReadBack(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{
		{"north", "south"},
		{"1"},
		{"a,b", "c"},
		{",", ", x"},
		{`"`, `a"b`, `"a", "b"`, `"a`},
		{"[x]", "[y"},
		{"z]"},
		{`\`, `"\"`},
		{"it's", "'a, b'"},
		{"ö, ü", "-", "true"},
	} {
		s := center.Settings{Queues: 7, QueueNames: []string{"old"}}
		text := center.Settings{QueueNames: names}.QueuesText()
		if err := s.Set("queues", text); err != nil || s.Queues != 0 || !slices.Equal(s.QueueNames, names) {
			t.Errorf("%s: %q and %d (%v), want %q", text, s.QueueNames, s.Queues, err, names)
		}
	}
}

// A text that is handed on as it is keeps the blanks and the end of a line at its ends. Other texts may have blanks there.
func TestTaskParameterIsExact(t *testing.T) {
	t.Parallel()
	var s center.Settings
	for _, text := range []string{"{\n  \"a\": 1\n}\n", " x ", "\n", ""} {
		if err := s.Set("task_parameter", text); err != nil || s.TaskParameter != text {
			t.Errorf("%q: %q, %v", text, s.TaskParameter, err)
		}
	}
	if err := s.Set("time_zone", " UTC "); err != nil || s.TimeZone != "UTC" {
		t.Errorf("time_zone: %q, %v", s.TimeZone, err)
	}
}
