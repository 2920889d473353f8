package roster_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/roster"
)

// EventKinds returns each constant once.
func TestEventKindsAreAll(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, constant := range regexp.MustCompile(`(?m)^\tEvent\w+ += "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, constant[1])
	}
	if diff := cmp.Diff(want, roster.EventKinds()); diff != "" || len(want) < 20 {
		t.Errorf("(-constants +EventKinds):\n%s", diff)
	}
}
