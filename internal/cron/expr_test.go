package cron

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests' zones, wherever they run

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	dateAndTime = "2006-01-02 15:04:05"
	withOffset  = "2006-01-02 15:04:05 -07:00"
)

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func parse(t testing.TB, expr, zone string) *Expr {
	t.Helper()
	e, err := Parse(expr, location(t, zone))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// instant reads "2006-01-02 15:04:05" in UTC, or with an offset.
func instant(t testing.TB, text string) time.Time {
	t.Helper()
	layout := dateAndTime
	if len(text) > len(layout) {
		layout = withOffset
	}
	at, err := time.Parse(layout, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// next returns the next n firings.
func next(e *Expr, after time.Time, n int) []time.Time {
	var fires []time.Time
	for range n {
		if after = e.Next(after); after.IsZero() {
			break
		}
		fires = append(fires, after)
	}
	return fires
}

func texts(times []time.Time, layout string) []string {
	list := make([]string, len(times))
	for i, at := range times {
		list[i] = at.Format(layout)
	}
	return list
}

const saturday = "2026-08-01 00:00:00" // a Saturday; the month ends on a Monday

// meanings are expressions of the documentation of Quartz and of generators of cron expressions.
var meanings = []struct {
	expr string
	want string // the next firings after saturday
}{
	{"0 0 12 * * ?", "2026-08-01 12:00:00, 2026-08-02 12:00:00"},
	{"0 15 10 ? * *", "2026-08-01 10:15:00, 2026-08-02 10:15:00"},
	{"0 15 10 * * *", "2026-08-01 10:15:00, 2026-08-02 10:15:00"},
	{"0 15 10 ? * ?", "2026-08-01 10:15:00, 2026-08-02 10:15:00"},
	{" 0\t15  10 * * ? ", "2026-08-01 10:15:00, 2026-08-02 10:15:00"},
	{"0 15 10 * * ? *", "2026-08-01 10:15:00, 2026-08-02 10:15:00"},
	{"0 15 10 * * ? 2027", "2027-01-01 10:15:00, 2027-01-02 10:15:00"},
	{"0 0 0 1 1 ? 2027-2031/2,2199", "2027-01-01 00:00:00, 2029-01-01 00:00:00, 2031-01-01 00:00:00, 2199-01-01 00:00:00"},
	{"0 0 0 1 1 ? 1970", ""},
	{"0 0/5 14,18 * * ?", "2026-08-01 14:00:00, 2026-08-01 14:05:00"},
	{"59-1/2 * * * * ?", "2026-08-01 00:00:01, 2026-08-01 00:00:59, 2026-08-01 00:01:01"},
	{"/20 * * * * ?", "2026-08-01 00:00:20, 2026-08-01 00:00:40, 2026-08-01 00:01:00"},
	{"0 30/30 * * * ?", "2026-08-01 00:30:00, 2026-08-01 01:30:00"},
	{"0 0 12/12 * * ?", "2026-08-01 12:00:00, 2026-08-02 12:00:00"},
	{"0 0 22-2/2 * * ?", "2026-08-01 02:00:00, 2026-08-01 22:00:00, 2026-08-02 00:00:00"},
	{"0 0 12 1/1 * ? *", "2026-08-01 12:00:00, 2026-08-02 12:00:00"},
	{"0 0 12 1 1/12 ? *", "2027-01-01 12:00:00, 2028-01-01 12:00:00"},
	{"0 0 0 30-2 * ?", "2026-08-02 00:00:00, 2026-08-30 00:00:00, 2026-08-31 00:00:00, 2026-09-01 00:00:00"},
	{"0 10,44 14 ? 3 WED", "2027-03-03 14:10:00, 2027-03-03 14:44:00, 2027-03-10 14:10:00"},
	{"0 0 0 ? nov-FEB mon", "2026-11-02 00:00:00"},
	{"0 0 0 ? * 1", "2026-08-02 00:00:00, 2026-08-09 00:00:00"},
	{"0 0 0 ? * 7", "2026-08-08 00:00:00, 2026-08-15 00:00:00"},
	{"0 0 0 ? * L", "2026-08-08 00:00:00, 2026-08-15 00:00:00"},
	{"0 0 0 ? * MON-FRI", "2026-08-03 00:00:00, 2026-08-04 00:00:00"},
	{"0 0 0 ? * 2-6/2", "2026-08-03 00:00:00, 2026-08-05 00:00:00, 2026-08-07 00:00:00, 2026-08-10 00:00:00"},
	{"0 0 0 ? * FRI-MON/2", "2026-08-02 00:00:00, 2026-08-07 00:00:00, 2026-08-09 00:00:00"},
	{"0 0 0 ? * 6#2", "2026-08-14 00:00:00, 2026-09-11 00:00:00"},
	{"0 0 0 ? * FRI#2", "2026-08-14 00:00:00, 2026-09-11 00:00:00"},
	{"0 0 0 ? * 1#5,Sat#1", "2026-08-30 00:00:00, 2026-09-05 00:00:00"},
	{"0 0 0 ? * 6L", "2026-08-28 00:00:00, 2026-09-25 00:00:00"},
	{"0 0 0 ? * fril 2026-2027", "2026-08-28 00:00:00, 2026-09-25 00:00:00"},
	{"0 0 0 L * ?", "2026-08-31 00:00:00, 2026-09-30 00:00:00"},
	{"0 0 0 L-3 * ?", "2026-08-28 00:00:00, 2026-09-27 00:00:00"},
	{"0 0 0 L-30 * ?", "2026-10-01 00:00:00"},
	{"0 0 0 L-3W * ?", "2026-08-28 00:00:00, 2026-09-28 00:00:00, 2026-10-28 00:00:00, 2026-11-27 00:00:00"},
	{"0 0 0 L-30W * ?", "2026-08-03 00:00:00, 2026-10-01 00:00:00, 2026-12-01 00:00:00, 2027-01-01 00:00:00, 2027-03-01 00:00:00, 2027-05-03 00:00:00, 2027-07-01 00:00:00, " +
		"2027-08-02 00:00:00, 2027-10-01 00:00:00, 2027-12-01 00:00:00"},
	{"0 0 0 L-3W,15 * ?", "2026-08-15 00:00:00, 2026-08-28 00:00:00, 2026-09-15 00:00:00, 2026-09-28 00:00:00"},
	{"0 0 0/24 * * ?", "2026-08-02 00:00:00, 2026-08-03 00:00:00"},
	{"0 0/60 0 * * ?", "2026-08-02 00:00:00, 2026-08-03 00:00:00"},
	{"cron5: 0 2 * * MON-FRI", "2026-08-03 02:00:00, 2026-08-04 02:00:00"},
	{"cron5:30 4 * * 0,7", "2026-08-02 04:30:00, 2026-08-09 04:30:00"},
	{"cron5: 0 0 1 * 5-7", "2026-08-02 00:00:00, 2026-08-07 00:00:00, 2026-08-08 00:00:00, 2026-08-09 00:00:00"},
	{"cron5: 0 0 13 * FRI", "2026-08-07 00:00:00, 2026-08-13 00:00:00, 2026-08-14 00:00:00"},
	{"cron5: 0 0 */10 * 1", "2026-08-31 00:00:00, 2026-09-21 00:00:00"},
	{"0 0 0 LW * ?", "2026-08-31 00:00:00, 2026-09-30 00:00:00, 2026-10-30 00:00:00"},
	{"0 0 0 1W * ?", "2026-08-03 00:00:00, 2026-09-01 00:00:00"},
	{"0 0 0 15w * ?", "2026-08-14 00:00:00, 2026-09-15 00:00:00"},
	{"0 0 0 31W 1,2,5 ?", "2027-01-29 00:00:00, 2027-05-31 00:00:00"},
	{"0 0 0 1,15W,L * ?", "2026-08-14 00:00:00, 2026-08-31 00:00:00, 2026-09-01 00:00:00"},
	{"0 0 0 29 2 ?", "2028-02-29 00:00:00, 2032-02-29 00:00:00"},
	{"0 0 0 ? 2 MON#5", "2044-02-29 00:00:00, 2072-02-29 00:00:00, 2112-02-29 00:00:00"},
	{"@hourly", "2026-08-01 01:00:00, 2026-08-01 02:00:00"},
	{"@daily", "2026-08-02 00:00:00, 2026-08-03 00:00:00"},
	{"@Midnight", "2026-08-02 00:00:00, 2026-08-03 00:00:00"},
	{"@weekly", "2026-08-02 00:00:00, 2026-08-09 00:00:00"},
	{"@monthly", "2026-09-01 00:00:00, 2026-10-01 00:00:00"},
	{"@yearly", "2027-01-01 00:00:00, 2028-01-01 00:00:00"},
	{"@annually", "2027-01-01 00:00:00, 2028-01-01 00:00:00"},
}

// The expressions come from the documentation of Quartz and from generators of cron expressions.
func TestMeaning(t *testing.T) {
	for _, tt := range meanings {
		t.Run(tt.expr, func(t *testing.T) {
			e := parse(t, tt.expr, "")
			n := max(1, strings.Count(tt.want, ",")+1)
			got := next(e, instant(t, saturday), n)
			if diff := cmp.Diff(tt.want, strings.Join(texts(got, dateAndTime), ", ")); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			for i := len(got) - 1; i > 0; i-- {
				if before := e.Prev(got[i].Add(-1)); !before.Equal(got[i-1]) {
					t.Errorf("Prev before %v = %v, want %v", got[i], before, got[i-1])
				}
			}
			if e.String() != tt.expr {
				t.Errorf("String() = %q", e)
			}
		})
	}
}

func TestPrevOfThePast(t *testing.T) {
	e := parse(t, "0 0 0 1 1 ? 2020,2022", "")
	for now, want := range map[string]string{
		"9999-01-01 00:00:00": "2022-01-01 00:00:00",
		"2022-01-01 00:00:00": "2022-01-01 00:00:00",
		"2021-12-31 23:59:59": "2020-01-01 00:00:00",
		"2019-12-31 23:59:59": "0001-01-01 00:00:00",
		"0001-01-01 00:00:00": "0001-01-01 00:00:00",
	} {
		if got := e.Prev(instant(t, now)).Format(dateAndTime); got != want {
			t.Errorf("Prev(%s) = %s, want %s", now, got, want)
		}
	}
	if got := e.Next(time.Time{}); !got.Equal(instant(t, "2020-01-01 00:00:00")) {
		t.Errorf("Next of the zero time = %v", got)
	}
}

// Next takes no longer if there are thousands of clock changes between the given time and the firing.
func TestFarAway(t *testing.T) {
	e := parse(t, "0 0 * 1 1 ? 1970,2199", "Europe/Berlin")
	begun := time.Now()
	for range 1000 {
		if got := e.Prev(instant(t, "9999-01-01 00:00:00")); !got.Equal(instant(t, "2199-01-01 23:00:00 +01:00")) {
			t.Fatalf("Prev = %v", got)
		}
		if got := e.Next(instant(t, "1970-06-01 00:00:00")); !got.Equal(instant(t, "2199-01-01 00:00:00 +01:00")) {
			t.Fatalf("Next = %v", got)
		}
	}
	limit(t, begun)
}

// Next returns an instant strictly after the given one, Prev an instant at or before it, and fractions of a second count.
func TestFractions(t *testing.T) {
	e := parse(t, "0 0 0 * * ?", "Europe/Berlin")
	slot := instant(t, "2026-08-01 00:00:00 +02:00")
	day := 24 * time.Hour
	for _, tt := range []struct {
		at, next, prev time.Time
	}{
		{slot.Add(-1), slot, slot.Add(-day)},
		{slot, slot.Add(day), slot},
		{slot.Add(1), slot.Add(day), slot},
		{slot.Add(time.Second - 1), slot.Add(day), slot},
	} {
		if got := e.Next(tt.at); !got.Equal(tt.next) || got.Location().String() != "Europe/Berlin" {
			t.Errorf("Next(%v) = %v, want %v", tt.at, got, tt.next)
		}
		if got := e.Prev(tt.at); !got.Equal(tt.prev) || got.Location().String() != "Europe/Berlin" {
			t.Errorf("Prev(%v) = %v, want %v", tt.at, got, tt.prev)
		}
	}
}

const fieldRule = " fields, must have 6 or 7: second minute hour day-of-month month day-of-week [year]; "

// refusals are expressions that Parse refuses, each with a part of the error.
var refusals = []struct{ expr, want string }{
	{"0 2 * * ?", "has 5" + fieldRule + "write cron5: before five fields of a crontab"},
	{"", "has 0" + fieldRule + "seconds are required"},
	{"0 0 2 * * ? * *", "has 8" + fieldRule + "seconds are required"},
	{"TZ=Europe/Berlin 0 2 * * ?", `second "TZ=Europe/Berlin" must have a step of 1-60`},
	{"@every 1h", "has 2 fields"},
	{"30", "has 1 field, must have 6 or 7"},
	{"cron5: 30", "has 1 field after cron5:, must have 5"},
	{"@reboot", "must be @yearly, @monthly, @weekly, @daily, @hourly or six fields"},
	{"60 * * * * ?", `second "60" must be 0-59`},
	{"-1 * * * * ?", `second "-1" must be 0-59`},
	{"+1 * * * * ?", `second "+1" must be 0-59`},
	{"? * * * * ?", `second "?" must be 0-59`},
	{"0 0,61 * * * ?", `minute "61" must be 0-59`},
	{"0 1,,2 * * * ?", `minute "" must be 0-59`},
	{"0 , * * * ?", `minute "" must be 0-59`},
	{"0 0 24 * * ?", `hour "24" must be 0-23`},
	{"0 0 *-5 * * ?", `hour "*-5" must be 0-23`},
	{"0 0 1-2-3 * * ?", `hour "1-2-3" must be 0-23`},
	{"0 0 H * * ?", `hour "H" must be 0-23`},
	{"0 0 0/25 * * ?", `hour "0/25" must have a step of 1-24`},
	{"0 0/61 * * * ?", `minute "0/61" must have a step of 1-60`},
	{"cron5: 0 0 2 * * ?", "has 6 fields after cron5:, must have 5: minute hour day-of-month month day-of-week"},
	{"cron5: 0 2 L * *", `day-of-month "L" must be 1-31, a list`},
	{"cron5: 0 2 * * 8", `day-of-week "8" must be 0-7 (0 and 7 are Sunday) or SUN-SAT`},
	{"cron5: 0 2 * * FRI-MON", `day-of-week "FRI-MON" must not end before it begins: write two ranges`},
	{"cron5: 50-10 2 * * *", `minute "50-10" must not end before it begins`},
	{"cron5: 0 22-2 * * *", `hour "22-2" must not end before it begins`},
	{"cron5: 0 2 28-3 * *", `day-of-month "28-3" must not end before it begins`},
	{"cron5: 0 2 * NOV-FEB *", `month "NOV-FEB" must not end before it begins`},
	{"cron5: 0 2 1,30-2/2 * *", `day-of-month "30-2/2" must not end before it begins`},
	{"cron5: 0 2 * * FRI#2", `day-of-week "FRI#2" must be 0-7`},
	{"cron5: 60 2 * * *", `minute "60" must be 0-59`},
	{"0 0/0 * * * ?", `minute "0/0" must have a step of 1-60`},
	{"0 0/ * * * ?", `minute "0/" must have a step of 1-60`},
	{"0 0/5/5 * * * ?", `minute "0/5/5" must have a step of 1-60`},
	{"0 0 0 0 * ?", `day-of-month "0" must be 1-31, L, L-1 to L-30, LW, L-1W to L-30W or 1W to 31W`},
	{"0 0 0 32 * ?", `day-of-month "32" must be`},
	{"0 0 0 L-0 * ?", `day-of-month "L-0" must be`},
	{"0 0 0 L-31 * ?", `day-of-month "L-31" must be`},
	{"0 0 0 L-31W * ?", `day-of-month "L-31W" must be`},
	{"0 0 0 L-W * ?", `day-of-month "L-W" must be`},
	{"0 0 0 32W * ?", `day-of-month "32W" must be`},
	{"0 0 0 1-5W * ?", `day-of-month "1-5W" must be`},
	{"0 0 0 1L * ?", `day-of-month "1L" must be`},
	{"0 0 0 W * ?", `day-of-month "W" must be`},
	{"0 0 0 1,? * ?", `day-of-month "?" must be`},
	{"0 0 0 1 13 ?", `month "13" must be 1-12 or JAN-DEC`},
	{"0 0 0 1 JANUARY ?", `month "JANUARY" must be`},
	{"0 0 0 1 ? ?", `month "?" must be`},
	{"0 0 0 ? * 0", `day-of-week "0" must be 1-7 (1 is Sunday) or SUN-SAT, L, 1L to 7L or 1#1 to 7#5`},
	{"0 0 0 ? * 8", `day-of-week "8" must be`},
	{"0 0 0 ? * FRI#0", `day-of-week "FRI#0" must be`},
	{"0 0 0 ? * FRI#6", `day-of-week "FRI#6" must be`},
	{"0 0 0 ? * 0#1", `day-of-week "0#1" must be`},
	{"0 0 0 ? * 8L", `day-of-week "8L" must be`},
	{"0 0 0 ? * #2", `day-of-week "#2" must be`},
	{"0 0 0 1 * MON", `day-of-month "1" and day-of-week "MON" cannot both be set: write ? for one`},
	{"0 0 0 1 1 ? 1969", `year "1969" must be 1970-2199`},
	{"0 0 0 1 1 ? 2200", `year "2200" must be 1970-2199`},
	{"0 0 0 1 1 ? 1-2147483647", `year "1-2147483647" must be 1970-2199`},
	{"0 0 0 1 1 ? 2030-2020", `year "2030-2020" must not end before it begins`},
	{"0 0 0 1 1 ? ?", `year "?" must be`},
	{"0 0 0 30 2 ?", "never fires: no such date"},
	{"0 0 0 31 2,4,6,9,11 ?", "never fires"},
	{"0 0 0 30W 2 ?", "never fires"},
	{"0 0 0 L-29 2 ?", "never fires"},
	{"* * * 29 2 ? 2026-2027", "never fires"},
	{"0 0 0 ? 2 SUN#5 2026-2031", "never fires"},
	{"0\n61 * * * ?", `"0\n61 * * * ?": minute "61" must`},
}

// Parse refuses these expressions, and the error names the rule.
func TestRefused(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.expr, func(t *testing.T) {
			begun := time.Now()
			_, err := Parse(tt.expr, nil)
			if err == nil {
				t.Fatalf("no error, want %q", tt.want)
			}
			if got := err.Error(); !strings.Contains(got, tt.want) || !strings.HasPrefix(got, "cron \"") || strings.Contains(got, "\n") {
				t.Errorf("error %q, want %q in one line", got, tt.want)
			}
			limit(t, begun)
		})
	}
	if _, err := Parse(strings.Repeat("0", maxLength+1), nil); err == nil || !strings.Contains(err.Error(), "at most 512") {
		t.Errorf("error of a too long expression: %v", err)
	}
}

func TestLoadZone(t *testing.T) {
	for _, bad := range []string{"Local", "Mars/Olympus", "../etc/passwd", "Europe\nBerlin"} {
		loc, err := LoadZone(bad)
		if err == nil || !strings.Contains(err.Error(), "time_zone (") || strings.Contains(err.Error(), "\n") {
			t.Errorf("LoadZone(%q) = %v, %v", bad, loc, err)
		}
	}
	if loc := location(t, ""); loc != time.UTC {
		t.Errorf("LoadZone of the empty name = %v", loc)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"0 0 2 * * ?", "0 0/5 14,18 * * ?", "0 0 0 L-3 * ? 2027", "0 0 0 ? * 6#2", "59-1/2 * 22-2 15W 1-3 ?", "@daily", "0 0 0 30 2 ?",
		"* * * * * * 1970-2199/7", "0 0 0 ? 2 MON#5", "TZ=UTC 0 0 * * *", "0 0 0 LW,1,31W * ?", "\x00 ? ? ? ? ?",
	} {
		f.Add(seed, int64(1_774_742_399))
	}
	berlin := location(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		at := time.Unix(unix%(1<<37), 0) // four thousand years
		e, err := Parse(text, berlin)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("the error has more than one line: %v", err)
			}
			return
		}
		if next := e.Next(at); !next.IsZero() && (!next.After(at) || !e.Prev(next).Equal(next)) {
			t.Fatalf("Next(%v) = %v, but Prev of that is %v", at, next, e.Prev(next))
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, expr := range []string{"* * * * * ?", "0 0 2 * * ?", "0 0 * ? * MON#5", "0 0 0 29 2 ?", "0 * * 29 2 ? 2196"} {
		e := parse(b, expr, "Europe/Berlin")
		at := instant(b, "2026-08-01 00:00:00")
		b.Run(strings.ReplaceAll(expr, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Next(at)
				e.Prev(at)
			}
		})
	}
}
