package docs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/condition"
)

// The table has the kinds of conditions as the code lists them.
func TestConditionsAreDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for _, k := range condition.Kinds() {
		alert := map[condition.Alert]string{condition.Silent: "", condition.Watched: "yes", condition.Told: "told once", condition.Each: "each"}[k.Alert]
		remedy := strings.ReplaceAll(strings.ReplaceAll(k.Remedy, "{task}", "TASK"), "|", `\|`)
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |", k.Name, k.Check, k.Status, alert, k.Meaning, remedy))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table differs (-code +page):\n%s\nWant:\n%s", diff, strings.Join(want, "\n"))
	}
}
