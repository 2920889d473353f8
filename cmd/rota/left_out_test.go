package main

import (
	"strings"
	"testing"

	"github.com/dutyrota/rota/ops"
)

// A table on a narrow terminal names the columns that it left out. A wide terminal and a pipe get all, and no note.
func TestTablesNameWhatTheyLeaveOut(t *testing.T) {
	t.Parallel()
	servers := []ops.ServerRecord{longServer}
	for _, width := range []int{80, 120} {
		shown := render(screen{width: width}, servers, serverColumns)
		table, note := splitNote(strings.Split(shown, "\n"))
		text := strings.Join(note, " ")
		if len(table) != 2 || widest(shown) > width || !strings.HasPrefix(text, leftOutPrefix) || !strings.Contains(text, "| less -S or -o json") {
			t.Errorf("%d characters:\n%s", width, shown)
		}
		for _, c := range serverColumns {
			if in, named := strings.Contains(table[0], c.title), strings.Contains(strings.ReplaceAll(text, "IN FLIGHT", "IN_FLIGHT"), strings.ReplaceAll(c.title, "IN FLIGHT", "IN_FLIGHT")); in == named {
				t.Errorf("%d: column %s is in the table: %t, and in the note: %t\n%s", width, c.title, in, named, shown)
			}
		}
	}
	for _, s := range []screen{{}, {width: 500}} {
		if got := render(s, servers, serverColumns); strings.Contains(got, leftOutPrefix) {
			t.Errorf("a table of all columns has a note:\n%s", got)
		}
	}
}
