package slots

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// every and daily return triggers for the tables. daily fires at 2:30 in Berlin. Its clock changes on 2026-03-29 and
// 2026-10-25.
func every(t testing.TB, period, start string) Trigger {
	t.Helper()
	return trigger(t, KindEvery, period, start)
}

func daily(t testing.TB) Trigger {
	t.Helper()
	return trigger(t, KindCron, "0 30 2 * * ?", "")
}

func trigger(t testing.TB, kind, expression, start string) Trigger {
	t.Helper()
	s, err := Parse(kind, expression, "Europe/Berlin", at(t, start))
	if err != nil {
		t.Fatal(err)
	}
	return Trigger{Schedule: s, StartAt: at(t, start), Misfire: MisfireOne, MisfireAfter: time.Minute, CatchupMax: 3}
}

func (t Trigger) with(change func(*Trigger)) Trigger {
	change(&t)
	return t
}

// show formats the slots with month and day.
func show(times []time.Time) string {
	var list []string
	for _, at := range times {
		list = append(list, at.Format("01-02 15:04:05"))
	}
	return strings.Join(list, ", ")
}

// dueCase is a trigger at a time, with what Due returns.
type dueCase struct {
	name    string
	trigger Trigger
	from    string // next_fire_at
	now     string
	fire    string
	missed  int64
	next    string
}

// dueCases is a table, and so it is long.
func dueCases(t *testing.T) []dueCase {
	t.Helper()
	minutely := every(t, "1m", "2026-08-01 00:00:00")
	once := trigger(t, KindOnce, "2026-08-01T12:00:00Z", "")
	misfire := func(m string) func(*Trigger) { return func(t *Trigger) { t.Misfire = m } }
	ends := func(text string) func(*Trigger) { return func(t *Trigger) { t.EndAt = parseShort(text) } }
	left := func(n int64) func(*Trigger) { return func(t *Trigger) { t.MaxFires, t.Fires = 100, 100-n } }
	return []dueCase{
		{"not yet", minutely, "08-01 12:00:00", "08-01 11:59:59", "", 0, "08-01 12:00:00"},
		{"on time", minutely, "08-01 12:00:00", "08-01 12:00:00", "08-01 12:00:00", 0, "08-01 12:01:00"},
		{"a little late", minutely, "08-01 12:00:00", "08-01 12:00:59", "08-01 12:00:00", 0, "08-01 12:01:00"},
		{"done", minutely, "", "08-01 12:00:00", "", 0, ""},

		{"ONE", minutely, "08-01 12:00:00", "08-01 12:10:30", "08-01 12:10:00", 10, "08-01 12:11:00"},
		{"ONE after a month of every second", every(t, "1s", "2026-08-01 00:00:00"), "08-01 00:00:01", "09-01 00:00:00", "09-01 00:00:00", 31*86400 - 1, "09-01 00:00:01"},
		{"ONE after a month of cron seconds", trigger(t, KindCron, "* * * * * ?", ""), "08-01 00:00:01", "09-01 00:00:00", "09-01 00:00:00", 1 + cronCountMax, "09-01 00:00:01"},

		{"SKIP, young", minutely.with(misfire(MisfireSkip)), "08-01 12:00:00", "08-01 12:10:59", "08-01 12:10:00", 10, "08-01 12:11:00"},
		{"SKIP, old", every(t, "1h", "2026-08-01 00:00:00").with(misfire(MisfireSkip)), "08-01 12:00:00", "08-01 14:01:00", "", 3, "08-01 15:00:00"},
		{"SKIP, almost old", every(t, "1h", "2026-08-01 00:00:00").with(misfire(MisfireSkip)), "08-01 12:00:00", "08-01 14:00:59", "08-01 14:00:00", 2, "08-01 15:00:00"},

		{"ALL", minutely.with(misfire(MisfireAll)), "08-01 12:00:00", "08-01 12:02:00", "08-01 12:00:00, 08-01 12:01:00, 08-01 12:02:00", 0, "08-01 12:03:00"},
		{"ALL, the newest of too many", minutely.with(misfire(MisfireAll)), "08-01 12:00:00", "08-01 12:10:30", "08-01 12:08:00, 08-01 12:09:00, 08-01 12:10:00", 8, "08-01 12:11:00"},
		{"ALL, after a month of every second", every(t, "1s", "2026-08-01 00:00:00").with(misfire(MisfireAll)), "08-01 00:00:01", "09-01 00:00:00", "08-31 23:59:58, 08-31 23:59:59, 09-01 00:00:00", 31*86400 - 3, "09-01 00:00:01"},
		{"ALL, fewer firings left", minutely.with(misfire(MisfireAll)).with(left(2)), "08-01 12:00:00", "08-01 12:10:30", "08-01 12:09:00, 08-01 12:10:00", 9, ""},

		{"the last firing", minutely.with(left(1)), "08-01 12:00:00", "08-01 12:00:30", "08-01 12:00:00", 0, ""},
		{"the last firing but one", minutely.with(left(2)), "08-01 12:00:00", "08-01 12:00:30", "08-01 12:00:00", 0, "08-01 12:01:00"},
		{"no firing left", minutely.with(left(0)), "08-01 12:00:00", "08-01 12:00:30", "", 0, ""},
		{"a skipped slot does not count as a firing", minutely.with(misfire(MisfireSkip)).with(left(1)).with(func(t *Trigger) { t.MisfireAfter = time.Second }), "08-01 12:00:00", "08-01 12:00:30", "", 1, "08-01 12:01:00"},

		{"a slot at the end fires", minutely.with(ends("08-01 12:01:00")), "08-01 12:00:00", "08-01 12:00:30", "08-01 12:00:00", 0, "08-01 12:01:00"},
		{"the next slot is after the end", minutely.with(ends("08-01 12:00:59")), "08-01 12:00:00", "08-01 12:00:30", "08-01 12:00:00", 0, ""},
		{"late, the end has passed", minutely.with(ends("08-01 12:02:30")), "08-01 12:00:00", "08-02 00:00:00", "08-01 12:02:00", 2, ""},
		{"the end was moved before the next slot", minutely.with(ends("08-01 11:00:00")), "08-01 12:00:00", "08-01 12:00:00", "", 0, ""},

		{"next_fire_at is not in the schedule", minutely, "08-01 12:00:10", "08-01 12:00:30", "08-01 12:00:10", 0, "08-01 12:01:00"},
		{"next_fire_at is not in the schedule, ALL", minutely.with(misfire(MisfireAll)), "08-01 12:00:10", "08-01 12:01:00", "08-01 12:00:10, 08-01 12:01:00", 0, "08-01 12:02:00"},

		{"ONCE", once, "08-01 12:00:00", "08-01 12:00:00", "08-01 12:00:00", 0, ""},
		{"ONCE, late", once, "08-01 12:00:00", "09-01 12:00:00", "08-01 12:00:00", 0, ""},
		{"ONCE, too late", once.with(misfire(MisfireSkip)), "08-01 12:00:00", "09-01 12:00:00", "", 1, ""},

		{"spring: after the gap", daily(t), "03-29 01:00:00", "03-29 01:00:00", "03-29 01:00:00", 0, "03-30 00:30:00"},
		{"autumn: once", daily(t), "10-25 00:30:00", "10-25 02:00:00", "10-25 00:30:00", 0, "10-26 01:30:00"},
		{"autumn: ALL, once a day", daily(t).with(misfire(MisfireAll)), "10-24 00:30:00", "10-26 02:00:00", "10-24 00:30:00, 10-25 00:30:00, 10-26 01:30:00", 0, "10-27 01:30:00"},
		{"autumn: EVERY ignores the clock change", every(t, "24h", "2026-10-24 00:30:00"), "10-25 00:30:00", "10-26 00:30:00", "10-26 00:30:00", 1, "10-27 00:30:00"},
	}
}

func TestDue(t *testing.T) {
	for _, tt := range dueCases(t) {
		t.Run(tt.name, func(t *testing.T) {
			tt.trigger.NextFireAt = parseShort(tt.from)
			fire, missed, next, err := tt.trigger.Due(parseShort(tt.now))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.fire, show(fire)); diff != "" {
				t.Errorf("fire (-want +got):\n%s", diff)
			}
			if missed != tt.missed {
				t.Errorf("%d missed slots, want %d", missed, tt.missed)
			}
			if next != parseShort(tt.next) {
				t.Errorf("next_fire_at is %v, want %s", next, tt.next)
			}
		})
	}
}

// parseShort reads a time in 2026.
func parseShort(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse("2006-01-02 15:04:05", "2026-"+text)
	if err != nil {
		panic(err)
	}
	return at
}

func TestFirst(t *testing.T) {
	minutely := every(t, "1m", "2026-08-01 12:00:00")
	once := trigger(t, KindOnce, "2026-08-01T12:00:00Z", "")
	tests := []struct {
		name    string
		trigger Trigger
		now     string
		want    string
	}{
		{"EVERY, before the start", minutely, "08-01 10:00:10", "08-01 12:00:00"},
		{"EVERY, at the start", minutely, "08-01 12:00:00", "08-01 12:01:00"},
		{"EVERY, begun: earlier slots do not fire", minutely, "08-02 12:00:10", "08-02 12:01:00"},
		{"EVERY, over", minutely.with(func(t *Trigger) { t.EndAt = parseShort("08-02 12:00:30") }), "08-02 12:00:10", ""},
		{"EVERY, no firing left", minutely.with(func(t *Trigger) { t.MaxFires, t.Fires = 3, 3 }), "08-02 12:00:10", ""},
		{"CRON", daily(t), "08-01 12:00:00", "08-02 00:30:00"},
		{"CRON, the start is a slot", daily(t).with(func(t *Trigger) { t.StartAt = parseShort("08-05 00:30:00") }), "08-01 12:00:00", "08-05 00:30:00"},
		{"CRON, the start is just after a slot", daily(t).with(func(t *Trigger) { t.StartAt = parseShort("08-05 00:30:01") }), "08-01 12:00:00", "08-06 00:30:00"},
		{"ONCE", once, "08-01 10:00:00", "08-01 12:00:00"},
		{"ONCE, passed", once, "08-02 10:00:00", "08-01 12:00:00"},
		{"ONCE, fired", once.with(func(t *Trigger) { t.Fires = 1 }), "08-02 10:00:00", ""},
		{"ONCE, before its start", once.with(func(t *Trigger) { t.StartAt = parseShort("08-01 12:00:01") }), "08-01 10:00:00", ""},
		{"ONCE, after its end", once.with(func(t *Trigger) { t.EndAt = parseShort("08-01 11:59:59") }), "08-01 10:00:00", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.trigger.First(parseShort(tt.now)); got != parseShort(tt.want) {
				t.Errorf("First = %v, want %s", got, tt.want)
			}
		})
	}
}

func TestDueRefuses(t *testing.T) {
	for want, bad := range map[string]Trigger{
		`misfire ("") must be ONE, SKIP or ALL`:    {},
		`misfire ("one") must be ONE, SKIP or ALL`: {Misfire: "one"},
		"misfire_after (0s) must be above 0":       {Misfire: MisfireSkip},
		"catchup_max (0) must be at least 1 for":   {Misfire: MisfireAll},
		"catchup_max (-1) must be at least 1 for ": {Misfire: MisfireAll, CatchupMax: -1},
	} {
		bad.Schedule = every(t, "1m", "2026-08-01 00:00:00").Schedule
		if _, _, _, err := bad.Due(parseShort("08-01 00:00:00")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Through any downtimes, slots fire in order, each once and within the bounds, and each due slot fires or is missed.
func TestDueThroughDowntimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := drawTrigger(t)
		now := drawTime(t, "begin")
		tr.NextFireAt = tr.First(now)
		first := tr.NextFireAt
		var fired []time.Time
		var missed int64
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(6*time.Hour)).Draw(t, "downtime")))
			fire, more, next, err := tr.Due(now)
			if err != nil {
				t.Fatal(err)
			}
			if !next.IsZero() && !next.After(now) {
				t.Fatalf("at %v the next slot is %v", now, next)
			}
			if tr.Misfire != MisfireAll && len(fire) > 1 || len(fire) > tr.CatchupMax {
				t.Fatalf("%s fires %v", tr.Misfire, fire)
			}
			tr.NextFireAt, tr.Fires = next, tr.Fires+int64(len(fire))
			fired, missed = append(fired, fire...), missed+more
			if again, _, _, _ := tr.Due(now); len(again) > 0 {
				t.Fatalf("at %v it fires %v, and then again %v", now, fire, again)
			}
		}
		check(t, tr, enumerate(tr, first, now), fired, missed)
	})
}

func drawTrigger(t *rapid.T) Trigger {
	tr := Trigger{
		Schedule:     drawSchedule(t),
		Misfire:      rapid.SampledFrom([]string{MisfireOne, MisfireSkip, MisfireAll}).Draw(t, "misfire"),
		MisfireAfter: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "misfire_after")),
		CatchupMax:   rapid.IntRange(1, 100).Draw(t, "catchup_max"),
		MaxFires:     rapid.Int64Range(0, 30).Draw(t, "max_fires"),
	}
	if rapid.Bool().Draw(t, "with start") {
		tr.StartAt = drawTime(t, "start")
	}
	if rapid.Bool().Draw(t, "with end") {
		tr.EndAt = drawTime(t, "end")
	}
	return tr
}

// enumerate returns the slots that were due by now, without the bound of max_fires.
func enumerate(tr Trigger, first, now time.Time) (list []time.Time) {
	for at := first; !at.IsZero() && !at.After(now) && (tr.EndAt.IsZero() || !at.After(tr.EndAt)); at = tr.Schedule.Next(at) {
		list = append(list, at)
	}
	return list
}

func check(t *rapid.T, tr Trigger, due, fired []time.Time, missed int64) {
	for i, at := range fired {
		if _, ok := slices.BinarySearchFunc(due, at, time.Time.Compare); !ok || i > 0 && !at.After(fired[i-1]) {
			t.Fatalf("fired %v, which was not due or follows a later slot", at)
		}
	}
	if tr.MaxFires > 0 && int64(len(fired)) > tr.MaxFires {
		t.Fatalf("fired %d times, max_fires is %d", len(fired), tr.MaxFires)
	}
	want := int64(len(due))
	if _, cron := tr.Schedule.(cronSchedule); cron {
		want = min(want, cronCountMax)
	}
	exhausted := tr.MaxFires > 0 && tr.Fires == tr.MaxFires
	if total := int64(len(fired)) + missed; total > int64(len(due)) || total < want && !exhausted {
		t.Fatalf("fired %d and missed %d of %d due slots", len(fired), missed, len(due))
	}
}

// The time of Due does not depend on the downtime.
func BenchmarkDue(b *testing.B) {
	for name, downtime := range map[string]time.Duration{"a_second": time.Second, "a_month": 31 * 24 * time.Hour} {
		tr := every(b, "1s", "2026-08-01 00:00:00")
		tr.NextFireAt = tr.StartAt
		b.Run("every_second_after_"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, _, err := tr.Due(tr.StartAt.Add(downtime)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
