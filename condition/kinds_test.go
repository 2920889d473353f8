package condition_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/condition"
)

// Each kind has a name of its own, and says what it means.
func TestEachKindIsDescribed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range condition.Kinds() {
		if seen[k.Name] || k.Check == "" || k.Meaning == "" || !slices.Contains([]string{condition.OK, condition.Note, condition.Problem}, k.Status) {
			t.Errorf("%+v, want a name of its own, a check, a status and a meaning", k)
		}
		if k.ShownByAlerts() && (k.Alert == condition.Silent || k.Remedy == "") {
			t.Errorf("%+v, want alerts, because nothing else tells it, and a remedy", k)
		}
		seen[k.Name] = true
	}
	if len(seen) < 60 {
		t.Errorf("%d kinds, want all", len(seen))
	}
}

// S16: what a server is told once counts as lasting until it is told again. The death of an item is over at once.
func TestGap(t *testing.T) {
	t.Parallel()
	for kind, want := range map[condition.Kind]time.Duration{
		condition.Killer: 0, condition.Failing: 2 * time.Minute, condition.Limit: 70 * time.Minute, condition.Backlog: 2 * time.Minute, condition.KindOf("OF_A_PROGRAM"): 2 * time.Minute,
	} {
		if got := kind.Alert.Gap(10 * time.Second); got != want {
			t.Errorf("gap of %s: %s, want %s", kind.Name, got, want)
		}
	}
	if got := condition.Watched.Gap(time.Hour); got != 3*time.Hour {
		t.Errorf("gap with a heartbeat an hour: %s, want 3h", got)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	c := condition.New(condition.DeadItems, "settle", "7 items", "")
	if want := "rota item list settle --state DEAD; then rota item retry settle --all --state DEAD, or, when no select returns it any more, rota item drop settle ITEM"; c.Hint != want || c.Status != condition.Problem || c.Check != "items" {
		t.Errorf("%+v, want a problem of the check items with the hint %q", c, want)
	}
	if c := condition.New(condition.DeadItems, "settle", "7 items", "wait").Noted(); c.Hint != "wait" || c.Status != condition.Note {
		t.Errorf("%+v, want a note with the hint of the caller", c)
	}
	if c := condition.New(condition.KindOf("OF_A_PROGRAM"), "settle", "", ""); c.Check == "" || !condition.KindOf(c.Kind).ShownByAlerts() {
		t.Errorf("%+v, want an alert of the program", c)
	}
}
