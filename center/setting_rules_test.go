package center_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

func TestValidateSettings(t *testing.T) {
	t.Parallel()
	valid := center.Settings{Queues: 1}
	cases := map[string]func(*center.Settings){
		"": func(*center.Settings) {},
		"judge_dead_interval (8s) must be at least 5 x heartbeat_interval (2s)":                   func(s *center.Settings) { s.JudgeDeadInterval = 8 * time.Second },
		"heartbeat_interval (1ms) must be at least 100ms":                                         func(s *center.Settings) { s.HeartbeatInterval = time.Millisecond },
		"queues (0) must be between 1 and 100000":                                                 func(s *center.Settings) { s.Queues = 0 },
		"queues (-1) must be between 1 and 100000":                                                func(s *center.Settings) { s.Queues = -1 },
		"queues must be a number or a list of names, not both":                                    func(s *center.Settings) { s.QueueNames = []string{"x"} },
		`queue "x" is named twice`:                                                                func(s *center.Settings) { s.Queues, s.QueueNames = 0, []string{"x", "x"} },
		`queue ("x ") must be printable, without white space around it`:                           func(s *center.Settings) { s.Queues, s.QueueNames = 0, []string{"x "} },
		"queue must not be empty":                                                                 func(s *center.Settings) { s.Queues, s.QueueNames = 0, []string{""} },
		`processor_type ("FAST") must be SLEEP or NOTSLEEP`:                                       func(s *center.Settings) { s.ProcessorType = "FAST" },
		"thread_number (-1) must be between 1 and 10000":                                          func(s *center.Settings) { s.ThreadNumber = -1 },
		"sleep_time_interval (-1s) must not be negative":                                          func(s *center.Settings) { s.SleepTimeInterval = -time.Second },
		"cron (0 0 2 * * ?) must not be set where mode is CONTINUOUS: only runs have a beginning": func(s *center.Settings) { s.Cron = "0 0 2 * * ?" },
		"after (a) must not be set where mode is CONTINUOUS: only runs have a beginning":          func(s *center.Settings) { s.After = []runs.After{{Upstream: "a"}} },
		"cron (0 0 2 * * ?) and every (1h0m0s) must not both be set": func(s *center.Settings) {
			s.Mode, s.Cron, s.Every = center.ModeRun, "0 0 2 * * ?", time.Hour
		},
		`cron "0 2 * *": has 4 fields, must have 6 or 7: second minute hour day-of-month month day-of-week [year]; seconds are required`: func(s *center.Settings) {
			s.Mode, s.Cron = center.ModeRun, "0 2 * *"
		},
		`time_zone ("Mars") must be a name in this host's tz database, such as Europe/Berlin`: func(s *center.Settings) {
			s.Mode, s.Cron, s.TimeZone = center.ModeRun, "0 0 2 * * ?", "Mars"
		},
		"every (1ms) must be from 1s to 8760h, in whole milliseconds": func(s *center.Settings) { s.Mode, s.Every = center.ModeRun, time.Millisecond },
		"after a: it is named twice": func(s *center.Settings) {
			s.Mode, s.After = center.ModeRun, []runs.After{{Upstream: "a"}, {Upstream: "a"}}
		},
		"after (b) and after_any (a) must not both be set": func(s *center.Settings) {
			s.Mode, s.After = center.ModeRun, []runs.After{{Upstream: "a", Any: true}, {Upstream: "b"}}
		},
		`after a: rule ("X") must be SUCCESS or FINISHED`: func(s *center.Settings) {
			s.Mode, s.After = center.ModeRun, []runs.After{{Upstream: "a", Rule: "X"}}
		},
		"require (\"zone\") must be a list of labels such as zone=b or disk=ssd|nvme,zone=b":  func(s *center.Settings) { s.Require = "zone" },
		"prefer (\"zone=|\") must be a list of labels such as zone=b or disk=ssd|nvme,zone=b": func(s *center.Settings) { s.Prefer = "zone=|" },
		"spread (\"zone=b\") must be the name of a label, such as zone":                       func(s *center.Settings) { s.Spread = "zone=b" },
		"item_retry (1.5ms) must be in whole milliseconds":                                    func(s *center.Settings) { s.ItemRetry = 1500 * time.Microsecond },
		"item_retry_max (2.0000001s) must be in whole milliseconds":                           func(s *center.Settings) { s.ItemRetryMax = 2*time.Second + 100 },
		"item_retry_max (1s) must be at least item_retry (2s)":                                func(s *center.Settings) { s.ItemRetry, s.ItemRetryMax = 2*time.Second, time.Second },
	}
	for want, change := range cases {
		s := valid
		change(&s)
		got := ""
		if err := s.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("Validate:\n got %s\nwant %s", got, want)
		}
	}
}
