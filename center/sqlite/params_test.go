package sqlite

import (
	"slices"
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

func TestParameters(t *testing.T) {
	for raw, want := range map[string]string{
		"sqlite:f.db?cache=shared":                    `parameter cache ("shared") is refused: a shared cache has locks of its own`,
		"sqlite:///f.db?_pragma=foreign_keys(1)":      `parameter _pragma ("foreign_keys(1)") is refused: a PRAGMA can change what any statement means`,
		"sqlite:f.db?_txlock=deferred":                `want sqlite:FILE without parameters: what they say is forced on each connection`,
		"sqlite:f.db?password=secret":                 `parameter password is refused: its effect on the roster is not known`,
		"sqlite::memory:?cache=shared":                `parameter cache ("shared") is refused: a shared cache has locks of its own`,
		"sqlite:f.db?_txlock=immediate&_timezone=UTC": `parameter _timezone ("UTC") is refused: times would be written or read in another form`,
	} {
		if err := URL(raw).Err; err == nil || err.Error() != "database URL: "+want {
			t.Errorf("%s:\n got %v\nwant database URL: %s", raw, err, want)
		}
	}
	if d := URL("sqlite:/what?.db"); d.Err != nil || d.Address != "sqlite:/what?.db" {
		t.Errorf("a question mark in a name: %s, %v", d.Address, d.Err)
	}
}

// A new version of the driver may have new parameters.
func TestTheTableHasAllParametersOfTheDriver(t *testing.T) {
	driver := testdb.SourceNames(t, "modernc.org/sqlite", "sqlite.go", `q\.Get\("(\w+)"\)|q\["(\w+)"\]|dsnPick\(q, "(\w+)", "(\w+)"\)`)
	if len(driver) < 15 || !slices.Contains(driver, "_txlock") {
		t.Fatalf("the driver has only %s", driver)
	}
	for _, name := range driver {
		if _, ok := params[name]; !ok {
			t.Errorf("the table lacks %s", name)
		}
	}
}
