package condition_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/condition"
)

// The list has each constant once, in their order, and says what it means.
func TestEachKindIsListed(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("kinds.go")
	if err != nil {
		t.Fatal(err)
	}
	var constants, listed []string
	for _, constant := range regexp.MustCompile(`(?m)^\t\w+ += "(\w+)"$`).FindAllStringSubmatch(string(source), -1) {
		constants = append(constants, constant[1])
	}
	for _, k := range condition.Kinds() {
		listed = append(listed, k.Name)
		if k.Check == "" || k.Meaning == "" || !slices.Contains([]string{condition.OK, condition.Note, condition.Problem}, k.Status) {
			t.Errorf("%+v, want a check, a status and a meaning", k)
		}
		if k.ShownByAlerts() && (k.Alert == condition.Silent || k.Remedy == "") {
			t.Errorf("%+v, want alerts, because nothing else tells it, and a remedy", k)
		}
	}
	if diff := cmp.Diff(constants, listed); diff != "" || len(listed) < 60 {
		t.Errorf("(-constants +list):\n%s", diff)
	}
}

// S16: what a server is told once counts as lasting until it is told again. The death of an item is over at once.
func TestGap(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]time.Duration{
		condition.Killer: 0, condition.Failing: 2 * time.Minute, condition.Limit: 70 * time.Minute, condition.Backlog: 2 * time.Minute, "OF_A_PROGRAM": 2 * time.Minute,
	} {
		if got := condition.KindOf(kind).Alert.Gap(10 * time.Second); got != want {
			t.Errorf("gap of %s: %s, want %s", kind, got, want)
		}
	}
	if got := condition.Watched.Gap(time.Hour); got != 3*time.Hour {
		t.Errorf("gap with a heartbeat an hour: %s, want 3h", got)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	c := condition.New(condition.DeadItems, "settle", "7 items", "")
	if want := "rota item list settle --state DEAD; then rota item retry or rota item drop"; c.Hint != want || c.Status != condition.Problem || c.Check != "items" {
		t.Errorf("%+v, want a problem of the check items with the hint %q", c, want)
	}
	if c := condition.New(condition.DeadItems, "settle", "7 items", "wait").Noted(); c.Hint != "wait" || c.Status != condition.Note {
		t.Errorf("%+v, want a note with the hint of the caller", c)
	}
	if c := condition.New("OF_A_PROGRAM", "settle", "", ""); c.Check == "" || !condition.KindOf(c.Kind).ShownByAlerts() {
		t.Errorf("%+v, want an alert of the program", c)
	}
}
