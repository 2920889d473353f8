package demo

import (
	"testing"

	"github.com/dutyrota/rota/internal/testdb"
)

// What the demo reads from the database reaches the terminal only escaped.
func TestReadEscapes(t *testing.T) {
	db := roster(t, testdb.URL(t, testdb.SQLite), insertEvent(1, "JOINED", "0"), "UPDATE schedule_event SET reason = 'a\x1b]0;x\x07'")
	s, err := look(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if want := `a\x1b]0;x\a`; len(s.events) != 1 || s.events[0].reason != want {
		t.Errorf("%q, want the reason %s", s.events, want)
	}
}
