package slots

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, on every host

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(t testing.TB, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse("2006-01-02 15:04:05.999999", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestParse(t *testing.T) {
	tests := []struct {
		kind, expression, zone, start string
		now, next, prev               string
	}{
		{KindCron, "0 0 12 * * ?", "", "", "2026-08-01 13:00:00", "2026-08-02 12:00:00", "2026-08-01 12:00:00"},
		{KindCron, "0 0 12 * * ?", "Europe/Berlin", "", "2026-08-01 13:00:00", "2026-08-02 10:00:00", "2026-08-01 10:00:00"},
		{KindCron, "0 0 12 1 1 ? 2027", "", "", "2028-01-01 00:00:00", "", "2027-01-01 12:00:00"},
		{KindCron, "0 0 12 1 1 ? 2027", "", "", "2026-01-01 00:00:00", "2027-01-01 12:00:00", ""},
		{KindEvery, "90m", "", "2026-08-01 12:00:00", "2026-08-01 13:00:00", "2026-08-01 13:30:00", "2026-08-01 12:00:00"},
		{KindEvery, "90m", "", "2026-08-01 12:00:00", "2026-08-01 13:30:00", "2026-08-01 15:00:00", "2026-08-01 13:30:00"},
		{KindEvery, "90m", "", "2026-08-01 12:00:00", "2026-08-01 11:59:59.999999", "2026-08-01 12:00:00", ""},
		{KindEvery, "1.5s", "", "2026-08-01 12:00:00.25", "2026-08-01 12:00:03", "2026-08-01 12:00:03.25", "2026-08-01 12:00:01.75"},
		{KindEvery, "8760h", "", "1970-01-01 00:00:00", "2199-12-31 00:00:00", "2200-11-06 00:00:00", "2199-11-06 00:00:00"},
		{KindOnce, "2026-08-01T12:00:00Z", "", "", "2026-08-01 11:59:59", "2026-08-01 12:00:00", ""},
		{KindOnce, "2026-08-01T14:00:00.0000019+02:00", "", "", "2026-08-01 12:00:01", "", "2026-08-01 12:00:00.000001"},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.expression+" at "+tt.now, func(t *testing.T) {
			s, err := Parse(tt.kind, tt.expression, tt.zone, at(t, tt.start))
			if err != nil {
				t.Fatal(err)
			}
			now := at(t, tt.now)
			if got := s.Next(now); got != at(t, tt.next) {
				t.Errorf("Next = %v, want %v", got, tt.next)
			}
			if got := s.Prev(now); got != at(t, tt.prev) {
				t.Errorf("Prev = %v, want %v", got, tt.prev)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ kind, expression, zone, start, want string }{
		{"HOURLY", "1", "", "", `kind ("HOURLY") must be CRON, EVERY or ONCE`},
		{KindCron, "0 2 * * ?", "", "", `expression: cron "0 2 * * ?": has 5 fields`},
		{KindCron, "0 0 2 * * ?", "Mars", "", `time_zone ("Mars") must be`},
		{KindEvery, "soon", "", "2026-08-01 12:00:00", `expression ("soon") of kind EVERY must be a duration from 1s to 8760h`},
		{KindEvery, "999ms", "", "2026-08-01 12:00:00", `must be a duration from 1s`},
		{KindEvery, "8760h0m1s", "", "2026-08-01 12:00:00", `must be a duration from 1s`},
		{KindEvery, "1000500us", "", "2026-08-01 12:00:00", `must be a duration from 1s`},
		{KindEvery, "1m", "", "", "start_at must be set"},
		{KindEvery, "1m", "", "1969-12-31 23:59:59", "not before 1970"},
		{KindOnce, "2026-08-01 12:00:00", "", "", `expression ("2026-08-01 12:00:00") of kind ONCE must be a time with its offset`},
	}
	for _, tt := range tests {
		_, err := Parse(tt.kind, tt.expression, tt.zone, at(t, tt.start))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %q: error %v, want %q in one line", tt.kind, tt.expression, err, tt.want)
		}
	}
}

// count equals the number of slots that enumerating finds.
func TestCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		after := drawTime(t, "after")
		by := after.Add(time.Duration(rapid.Int64Range(-1, int64(20*time.Hour)).Draw(t, "for")))
		var want int64
		for at := s.Next(after); !at.IsZero() && !at.After(by) && want < cronCountMax; at = s.Next(at) {
			want++
		}
		got := s.count(after, by)
		if _, every := s.(everySchedule); every {
			got = min(got, cronCountMax)
		}
		if got != want {
			t.Fatalf("%+v: count(%v, %v) = %d, want %d", s, after, by, got, want)
		}
	})
}

// dayBefore is the day before the autumn clock change in Berlin.
var dayBefore = time.Date(2026, 10, 24, 0, 0, 0, 0, time.UTC)

func drawTime(t *rapid.T, name string) time.Time {
	return dayBefore.Add(time.Duration(rapid.Int64Range(0, int64(72*time.Hour/time.Microsecond)).Draw(t, name)) * time.Microsecond)
}

func drawSchedule(t *rapid.T) Schedule {
	kind := rapid.SampledFrom([]string{KindCron, KindEvery, KindOnce}).Draw(t, "kind")
	var expression string
	switch kind {
	case KindCron:
		expression = rapid.SampledFrom([]string{"* * * * * ?", "0 0/7 * * * ?", "0 30 2 * * ?", "0 0 * ? * SUN"}).Draw(t, "expression")
	case KindEvery:
		expression = rapid.SampledFrom([]string{"1s", "90s", "1h", "36h", "2.5s"}).Draw(t, "expression")
	default:
		expression = drawTime(t, "once").Format(time.RFC3339Nano)
	}
	s, err := Parse(kind, expression, "Europe/Berlin", drawTime(t, "anchor"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
