package center_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/center"
)

// Parse reads what Records writes, for each setting.
func TestSettingsAreParsedFromTheirTexts(t *testing.T) {
	t.Parallel()
	want := center.Settings{
		ExecuteNumber: 7, SleepTimeNoData: 90 * time.Second, ProcessorType: center.ProcessorNotSleep, RatePerSecond: 0.25, Coalesce: true,
		PermitRunStartTime: "startrun:0 0 2 * * ?", TaskParameter: `{"a": "b, c"}`, Mode: center.ModeRun,
		After: []center.After{{Upstream: "extract", Any: true}, {Upstream: "load", Rule: center.RuleFinished, Any: true}},
	}.WithDefaults()
	var got center.Settings
	texts := map[string]string{}
	for _, r := range want.Records() {
		texts[r.Name] = r.Text
	}
	for _, row := range center.SettingTable() {
		if row.Name == "queues" {
			continue
		}
		if err := row.Parse(&got, texts[row.Name]); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseNamesTheSettingAndTheRule(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"execute_number": "many", "rate_per_second": "1/s", "coalesce": "perhaps", "batch_timeout": "5", "after": "a b c",
	} {
		for _, row := range center.SettingTable() {
			if row.Name != name {
				continue
			}
			var s center.Settings
			if err := row.Parse(&s, text); err == nil || !strings.HasPrefix(err.Error(), name+" ("+text+") must be ") {
				t.Errorf("%s: error %v", name, err)
			}
			if err := row.Parse(&s, ""); err != nil || !cmp.Equal(s, center.Settings{}) {
				t.Errorf("%s without a text: %+v, %v", name, s, err)
			}
		}
	}
}
