package rostercmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/ops"
)

// A table on a narrow terminal names the columns that it left out. A wide terminal and a pipe get all, and no note.
func TestTablesNameWhatTheyLeaveOut(t *testing.T) {
	t.Parallel()
	servers := []ops.ServerRecord{longServer}
	for _, width := range []int{80, 120} {
		shown := cli.Render(cli.Screen{Width: width}, servers, serverRow)
		table, note, found := strings.Cut(shown, "\nLeft out: ")
		note = strings.ReplaceAll(note, "\n", " ")
		titles, _, _ := strings.Cut(table, "\n")
		if strings.Count(table, "\n") != 1 || text.LongestLineLen(shown) > width || !found || !strings.Contains(note, "| less -S or -o json") {
			t.Errorf("%d characters:\n%s", width, shown)
		}
		for _, c := range serverRow(longServer) {
			if in, named := strings.Contains(titles, c.Title), strings.Contains(strings.ReplaceAll(note, "IN FLIGHT", "IN_FLIGHT"), strings.ReplaceAll(c.Title, "IN FLIGHT", "IN_FLIGHT")); in == named {
				t.Errorf("%d: column %s is in the table: %t, and in the note: %t\n%s", width, c.Title, in, named, shown)
			}
		}
	}
	for _, s := range []cli.Screen{{}, {Width: 500}} {
		if got := cli.Render(s, servers, serverRow); strings.Contains(got, "Left out: ") {
			t.Errorf("a table of all columns has a note:\n%s", got)
		}
	}
}

var longServer = ops.ServerRecord{
	UUID: "web-1.example.org:4711:1a2b3c4d", TaskType: "settle-orders", State: "SERVING", Queues: 16, InFlight: 500,
	HeartbeatAge: 1.3, LastError: strings.Repeat("no such\ntable ", 20), LibraryVersion: "v1.2.3",
}

// A table fits the terminal: it shortens uuids, then drops columns, then cuts texts. A pipe gets everything.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	servers := []ops.ServerRecord{longServer}
	for _, width := range []int{200, 120, 80} {
		got := cli.Render(cli.Screen{Width: width}, servers, serverRow)
		if n := text.LongestLineLen(got); n > width {
			t.Errorf("%d characters on a terminal of %d:\n%s", n, width, got)
		}
		for _, want := range []string{"WORKER", "STATE", "LAST ERROR", "web-1.example.org:4711", "SERVING", "no such"} {
			if !strings.Contains(got, want) {
				t.Errorf("%d: no %s in\n%s", width, want, got)
			}
		}
	}
	for _, s := range []cli.Screen{{}, {Width: 500}} {
		got := cli.Render(s, servers, serverRow)
		if !strings.Contains(got, longServer.UUID) || !strings.Contains(got, strings.TrimSpace(strings.Repeat("no such table ", 20))) || strings.Count(got, "\n") != 1 {
			t.Errorf("the table is incomplete:\n%s", got)
		}
	}
}

// States are coloured by meaning, and only if the screen has colours.
func TestColours(t *testing.T) {
	t.Parallel()
	queues := []ops.QueueRecord{{Status: "HELD"}, {Status: "MOVING"}, {Status: "ORPHAN"}}
	got := cli.Render(cli.Screen{Width: 80, Color: true}, queues, QueueRow)
	for _, want := range []string{"\x1b[32mHELD\x1b[0m", "\x1b[33mMOVING\x1b[0m", "\x1b[31mORPHAN\x1b[0m"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if plain := cli.Render(cli.Screen{Width: 80}, queues, QueueRow); strings.Contains(plain, "\x1b") {
		t.Errorf("%q", plain)
	}
}

// A list of 10,000 queues is rendered completely.
func TestManyQueuesAreRendered(t *testing.T) {
	t.Parallel()
	queues := make([]ops.QueueRecord, 10_000)
	for i := range queues {
		queues[i].TaskType, queues[i].QueueID = "settle", fmt.Sprint(i)
	}
	table, _, _ := strings.Cut(cli.Render(cli.Screen{Width: 40}, queues, QueueRow), "\nLeft out: ")
	if lines := strings.Count(table, "\n"); lines != 10_000 {
		t.Errorf("%d lines", lines)
	}
}
