package cron

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	berlin  = "Europe/Berlin"       // 2026-03-29 02:00 -> 03:00, 2026-10-25 03:00 -> 02:00
	newYork = "America/New_York"    // 2026-03-08 02:00 -> 03:00, 2026-11-01 02:00 -> 01:00
	howe    = "Australia/Lord_Howe" // 2026-10-04 02:00 -> 02:30, 2026-04-05 02:00 -> 01:30
)

// clockChanges are the days on which clocks change. The times are local, with the offset from UTC.
var clockChanges = []struct {
	name, zone, expr string
	after            string
	want             string // the next firings, without the date
}{
	{"spring: a time in the gap fires after it", berlin, "0 30 2 * * ?", "2026-03-28 03:00:00 +01:00", "29 03:00:00 +02, 30 02:30:00 +02"},
	{"spring: several times in the gap fire once", berlin, "0 0/20 2 * * ?", "2026-03-29 01:59:59 +01:00", "29 03:00:00 +02, 30 02:00:00 +02"},
	{"spring: the end of the gap fires once with them", berlin, "0 0,30 2,3 * * ?", "2026-03-29 01:00:00 +01:00", "29 03:00:00 +02, 29 03:30:00 +02, 30 02:00:00 +02"},
	{"spring: midnight", berlin, "0 0 0 * * ?", "2026-03-28 23:00:00 +01:00", "29 00:00:00 +01, 30 00:00:00 +02"},
	{"spring: every second of an hour", berlin, "* * 2 * * ?", "2026-03-28 02:59:58 +01:00", "28 02:59:59 +01, 29 03:00:00 +02, 30 02:00:00 +02"},
	{"autumn: the first of two", berlin, "0 30 2 * * ?", "2026-10-24 03:00:00 +02:00", "25 02:30:00 +02, 26 02:30:00 +01"},
	{"autumn: asked between the two", berlin, "0 30 2 * * ?", "2026-10-25 02:10:00 +01:00", "26 02:30:00 +01"},
	{"autumn: every second hour", berlin, "0 30 */2 * * ?", "2026-10-25 00:00:00 +02:00", "25 00:30:00 +02, 25 02:30:00 +02, 25 04:30:00 +01"},
	{"autumn: every second of an hour", berlin, "* * 2 * * ?", "2026-10-25 02:59:58 +02:00", "25 02:59:59 +02, 26 02:00:00 +01"},
	{"autumn: the hour after", berlin, "0 0 3 * * ?", "2026-10-25 02:59:59 +02:00", "25 03:00:00 +01, 26 03:00:00 +01"},
	{"spring: every minute", berlin, "0 * * * * ?", "2026-03-29 01:58:00 +01:00", "29 01:59:00 +01, 29 03:00:00 +02, 29 03:01:00 +02"},
	{"spring: every hour at half past", berlin, "0 30 * * * ?", "2026-03-29 01:00:00 +01:00", "29 01:30:00 +01, 29 03:30:00 +02"},
	{"autumn: every minute", berlin, "0 * * * * ?", "2026-10-25 02:58:00 +02:00", "25 02:59:00 +02, 25 02:00:00 +01, 25 02:01:00 +01"},
	{"autumn: every second", berlin, "* * 0-23 * * ?", "2026-10-25 02:59:58 +02:00", "25 02:59:59 +02, 25 02:00:00 +01, 25 02:00:01 +01"},
	{"autumn: every hour at half past", berlin, "0 30 * * * ?", "2026-10-25 01:00:00 +02:00", "25 01:30:00 +02, 25 02:30:00 +02, 25 02:30:00 +01, 25 03:30:00 +01"},
	{"autumn: the last second of every hour", berlin, "59 59 * * * ?", "2026-10-25 01:30:00 +02:00", "25 01:59:59 +02, 25 02:59:59 +02, 25 02:59:59 +01, 25 03:59:59 +01"},
	{"autumn: every hour of that day only", berlin, "0 0 * 25 10 ?", "2026-10-25 02:30:00 +02:00", "25 02:00:00 +01, 25 03:00:00 +01"},
	{"go.dev/issue/81583: the last day of a leap year", berlin, "0 0 12 * * ?", "2040-12-30 13:00:00 +01:00", "31 12:00:00 +01, 01 12:00:00 +01"},
	{"go.dev/issue/81583: the last day of a leap year, every hour", berlin, "0 0 * * * ?", "2040-12-31 23:00:00 +01:00", "01 00:00:00 +01, 01 01:00:00 +01, 01 02:00:00 +01"},

	{"spring", newYork, "0 15 2 * * ?", "2026-03-07 12:00:00 -05:00", "08 03:00:00 -04, 09 02:15:00 -04"},
	{"autumn", newYork, "0 15 1 * * ?", "2026-10-31 12:00:00 -04:00", "01 01:15:00 -04, 02 01:15:00 -05"},
	{"autumn: a time that comes once", newYork, "0 0 2 * * ?", "2026-10-31 12:00:00 -04:00", "01 02:00:00 -05, 02 02:00:00 -05"},
	{"autumn: every half hour", newYork, "0 0/30 * * * ?", "2026-11-01 01:00:00 -04:00", "01 01:30:00 -04, 01 01:00:00 -05, 01 01:30:00 -05, 01 02:00:00 -05"},

	{"spring by half an hour", howe, "0 15 2 * * ?", "2026-10-03 12:00:00 +10:30", "04 02:30:00 +11, 05 02:15:00 +11"},
	{"spring by half an hour, not in the gap", howe, "0 45 2 * * ?", "2026-10-03 12:00:00 +10:30", "04 02:45:00 +11, 05 02:45:00 +11"},
	{"spring by half an hour: every hour", howe, "0 0 * * * ?", "2026-10-04 00:30:00 +10:30", "04 01:00:00 +10, 04 03:00:00 +11"},
	{"spring by half an hour: every ten minutes", howe, "0 */10 * * * ?", "2026-10-04 01:45:00 +10:30", "04 01:50:00 +10, 04 02:30:00 +11, 04 02:40:00 +11"},
	{"autumn by half an hour", howe, "0 45 1 * * ?", "2026-04-04 12:00:00 +11:00", "05 01:45:00 +11, 06 01:45:00 +10"},
	{"autumn by half an hour, not repeated", howe, "0 15 1 * * ?", "2026-04-04 12:00:00 +11:00", "05 01:15:00 +11, 06 01:15:00 +10"},
	{"autumn by half an hour: every hour at a quarter to", howe, "0 45 * * * ?", "2026-04-05 01:00:00 +11:00", "05 01:45:00 +11, 05 01:45:00 +10, 05 02:45:00 +10"},

	{"a zone of half an hour", "Asia/Kolkata", "0 0 2 * * ?", "2026-03-29 00:00:00 +05:30", "29 02:00:00 +05, 30 02:00:00 +05"},
	{"a zone of half an hour, spring", "Australia/Adelaide", "0 30 2 * * ?", "2026-10-03 12:00:00 +09:30", "04 03:00:00 +10, 05 02:30:00 +10"},
	{"a zone of half an hour, autumn", "Australia/Adelaide", "0 30 2 * * ?", "2026-04-04 12:00:00 +10:30", "05 02:30:00 +10, 06 02:30:00 +09"},
	{"a zone of a quarter, autumn", "Pacific/Chatham", "0 0 3 * * ?", "2026-04-04 12:00:00 +13:45", "05 03:00:00 +13, 06 03:00:00 +12"},
	{"a change at a minute past midnight", "America/St_Johns", "0 30 0 * * ?", "2011-03-12 12:00:00 -03:30", "13 01:01:00 -02, 14 00:30:00 -02"},
	{"no midnight", "America/Sao_Paulo", "0 0 0 * * ?", "2018-11-03 12:00:00 -03:00", "04 01:00:00 -02, 05 00:00:00 -02"},
	{"two midnights", "America/Sao_Paulo", "0 30 23 * * ?", "2018-02-17 12:00:00 -02:00", "17 23:30:00 -02, 18 23:30:00 -03"},
	{"two midnights, a new day begins once", "America/Havana", "0 0 0 * * ?", "2026-10-31 12:00:00 -04:00", "01 00:00:00 -04, 02 00:00:00 -05"},
	{"two last hours of a day: both belong to that day", "America/Sao_Paulo", "0 0 * 17 2 ?", "2018-02-17 22:00:00 -02:00", "17 23:00:00 -02, 17 23:00:00 -03, 17 00:00:00 -03"},
	{"the new day begins, and once more", "America/St_Johns", "0 0 * 7 11 ?", "2010-11-06 12:00:00 -02:30", "07 00:00:00 -02, 07 00:00:00 -03, 07 01:00:00 -03"},
	{"two hours", "Antarctica/Troll", "0 30 2 * * ?", "2026-10-24 12:00:00 +02:00", "25 02:30:00 +02, 26 02:30:00 +00"},
	{"a day is skipped", "Pacific/Apia", "0 0 12 * * ?", "2011-12-28 13:00:00 -10:00", "29 12:00:00 -10, 31 00:00:00 +14, 31 12:00:00 +14"},
	{"a day is skipped: every hour", "Pacific/Apia", "0 0 * * * ?", "2011-12-29 22:00:00 -10:00", "29 23:00:00 -10, 31 00:00:00 +14, 31 01:00:00 +14"},
}

// The days on which clocks change (R3). The times are local, with the offset from UTC.
func TestClockChanges(t *testing.T) {
	for _, tt := range clockChanges {
		t.Run(tt.zone+" "+tt.name, func(t *testing.T) {
			e := parse(t, tt.expr, tt.zone)
			after := instant(t, tt.after)
			fires := next(e, after, strings.Count(tt.want, ",")+1)
			if diff := cmp.Diff(tt.want, strings.Join(texts(fires, "02 15:04:05 -07"), ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for i, at := range fires {
				if got := e.Prev(at); !got.Equal(at) {
					t.Errorf("Prev(%v) = %v", at, got)
				}
				if got := e.Next(at.Add(-1)); !got.Equal(at) {
					t.Errorf("Next(%v) = %v", at.Add(-1), got)
				}
				if got := e.Prev(at.Add(-1)); i > 0 && !got.Equal(fires[i-1]) {
					t.Errorf("Prev before %v = %v, want %v", at, got, fires[i-1])
				}
			}
		})
	}
}
