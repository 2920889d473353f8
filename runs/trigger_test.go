package runs

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// R3: with a jitter, all firings are later than their slots by the same time, and the runs keep the slots.
func TestJitterDelaysFiringsAndKeepsSlots(t *testing.T) {
	noon := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	delays := map[time.Duration]bool{}
	for i := range 50 {
		tr := Trigger{
			Name: fmt.Sprint(i), Target: "t", Kind: TriggerCron, Expression: "0 0 * * * ?",
			Jitter: 10 * time.Minute,
		}.WithDefaults()
		tr, err := tr.replace(Trigger{}, false, "BASE", noon.Add(-30*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		delay := tr.NextFireAt.Sub(noon)
		if delays[delay] = true; delay < 0 || delay >= 10*time.Minute {
			t.Fatalf("the first firing is %s after its slot, want less than 10m", delay)
		}
		if f := newFiring(tr, noon.Add(delay-time.Millisecond)); len(f.slots) != 0 {
			t.Fatalf("before its time the trigger fires %v", f.slots)
		}
		f := newFiring(tr, noon.Add(delay))
		if len(f.slots) != 1 || !f.slots[0].Equal(noon) || !f.NextFireAt.Equal(noon.Add(time.Hour+delay)) || f.Missed != 0 {
			t.Fatalf("the trigger fires %v, the next at %s, want the slot of noon, and an hour later", f.slots, f.NextFireAt)
		}
		if list, err := tr.Next(2); err != nil || !list[1].Equal(noon.Add(time.Hour+delay)) {
			t.Fatalf("the next firings are %v, want an hour apart: %v", list, err)
		}
	}
	if len(delays) < 40 {
		t.Errorf("50 triggers have %d different delays, want them spread", len(delays))
	}
}

// R3: a change of the jitter moves the next firing. The trigger loses no slot that has passed and not fired yet, and
// fires none again.
func TestChangeOfJitterKeepsTheNextSlot(t *testing.T) {
	noon := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	with := func(jitter time.Duration) Trigger {
		return Trigger{Name: "t", Target: "t", Kind: TriggerCron, Expression: "0 0 * * * ?", Jitter: jitter}.WithDefaults()
	}
	late, err := with(10*time.Minute).replace(Trigger{}, false, "BASE", noon.Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	waits := late.NextFireAt.Add(-time.Millisecond) // the slot of noon has passed
	prompt, err := with(0).replace(late, true, "BASE", waits)
	if err != nil || !prompt.NextFireAt.Equal(noon) {
		t.Fatalf("without the jitter the trigger fires next at %s, want the slot of noon: %v", prompt.NextFireAt, err)
	}
	prompt = newFiring(prompt, waits).Trigger
	again, err := with(10*time.Minute).replace(prompt, true, "BASE", waits)
	if want := late.NextFireAt.Add(time.Hour); err != nil || !again.NextFireAt.Equal(want) {
		t.Fatalf("with the jitter the trigger fires next at %s, want %s: %v", again.NextFireAt, want, err)
	}
}

func TestJitterAndExcludedDaysRefused(t *testing.T) {
	for want, tr := range map[string]Trigger{
		"jitter (25h0m0s) must be from 0s to 24h0m0s": {
			Kind: TriggerCron, Expression: "0 0 * * * ?",
			Jitter: 25 * time.Hour,
		},
		"jitter (1m0s) must not be set for kind ONCE": {
			Kind:       TriggerOnce,
			Expression: "2026-08-01T12:00:00Z", Jitter: time.Minute,
		},
		"excluded_days (12-25) must be empty unless kind is CRON": {
			Kind: TriggerEvery, Expression: "1h",
			ExcludedDays: "12-25",
		},
		`excluded_days: "x" must be a day such as 2026-04-03, or 12-25`: {
			Kind: TriggerCron, Expression: "0 0 * * * ?",
			ExcludedDays: "x",
		},
	} {
		tr.Name, tr.Target = "t", "t"
		if err := tr.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
