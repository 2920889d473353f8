package docs_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A program links the driver of the database that it imports, and nothing of the program rota.
func TestOnlyTheNamedDriverIsLinked(t *testing.T) {
	t.Parallel()
	drivers := []string{"github.com/lib/pq", "github.com/go-sql-driver/mysql", "modernc.org/sqlite"}
	ofRota := []string{"charm.land/bubbletea/v2", "github.com/spf13/cobra", "github.com/spf13/viper", "github.com/sirupsen/logrus"}
	for imported, driver := range map[string]string{
		"../manager":         "",
		"../center/postgres": "github.com/lib/pq",
		"../center/mysql":    "github.com/go-sql-driver/mysql",
		"../center/sqlite":   "modernc.org/sqlite",
		"../examples/worker": "github.com/lib/pq",
	} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "../manager", imported).Output()
		if err != nil {
			t.Fatal(err)
		}
		linked := strings.Fields(string(out))
		if driver != "" && !slices.Contains(linked, driver) {
			t.Errorf("%s does not link %s", imported, driver)
		}
		for _, other := range slices.Concat(drivers, ofRota) {
			if other != driver && slices.Contains(linked, other) {
				t.Errorf("%s links %s", imported, other)
			}
		}
	}
}
