package human

import (
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 queues", 1: "1 queue", 2: "2 queues", 1234567: "1234567 queues"} {
		if got := Count(n, "queue", "queues"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 48210: "48,210", 1234567: "1,234,567", -100: "-100", -1000: "-1,000"} {
		if got := Number(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAge(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0.0s": -time.Second, "1.3s": 1300 * time.Millisecond, "42s": 42 * time.Second, "3m": 3 * time.Minute, "3m5s": 185 * time.Second,
		"1h": time.Hour, "2h": 2 * time.Hour, "2h10m": 130 * time.Minute, "4d3h": 99 * time.Hour,
	} {
		if got := Age(d.Seconds()); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestRelative(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for want, d := range map[string]time.Duration{"in 42s": 42 * time.Second, "42s ago": -42 * time.Second, "0.0s ago": 0} {
		if got := Relative(now, now.Add(d)); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestFirst(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a, b": {"a", "b"}, "a, b and 2 more": {"a", "b", "c", "d"}} {
		if got := First(names, 2); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCommandsIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"rota item list a --state DEAD; then rota item drop a ITEM": "rota --own-sign 'T 1' item list a --state DEAD; then rota --own-sign 'T 1' item drop a ITEM",
		"start a worker: rota worker -c rota.yaml":                  "start a worker: rota --own-sign 'T 1' worker -c rota.yaml",
		"rota --own-sign X task list":                               "rota --own-sign X task list",
		"rota.yaml, rota_conditions, rota tasks, rota migrate up":   "rota.yaml, rota_conditions, rota tasks, rota migrate up",
	} {
		if got := CommandsIn("T 1", text); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"queues=12": "queues=12", "": "''", "queues=[a, b]": "'queues=[a, b]'", "it's": `'it'\''s'`, "cron=0 0 2 * * ?": "'cron=0 0 2 * * ?'",
		"$HOME": "'$HOME'", "größe": "'größe'",
	} {
		if got := ShellWord(word); got != want {
			t.Errorf("ShellWord(%q) is %s, want %s", word, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	known := []string{"select", "queues", "max_in_flight", "max_servers"}
	for name, want := range map[string]string{
		"slect":      "unknown key; did you mean select?",
		"Queue":      "unknown key; did you mean queues?",
		"maxServers": "unknown key; did you mean max_servers?",
		"max-serves": "unknown key; did you mean max_servers?",
		"weather":    "unknown key; the known keys are max_in_flight, max_servers, queues, select",
		"q":          "unknown key; the known keys are max_in_flight, max_servers, queues, select",
		"":           "unknown key; the known keys are max_in_flight, max_servers, queues, select",
	} {
		if got := Unknown("key", name, known); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
