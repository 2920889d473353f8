package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/ops"
)

func widest(s string) (n int) {
	for line := range strings.Lines(s) {
		n = max(n, text.StringWidthWithoutEscSequences(strings.TrimRight(line, "\n")))
	}
	return n
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
		got := render(screen{width: width}, servers, serverColumns)
		if n := widest(got); n > width {
			t.Errorf("%d characters on a terminal of %d:\n%s", n, width, got)
		}
		for _, want := range []string{"SERVER", "STATE", "LAST ERROR", "web-1.example.org:4711", "SERVING", "no such"} {
			if !strings.Contains(got, want) {
				t.Errorf("%d: no %s in\n%s", width, want, got)
			}
		}
	}
	for _, s := range []screen{{}, {width: 500}} {
		got := render(s, servers, serverColumns)
		if !strings.Contains(got, longServer.UUID) || !strings.Contains(got, strings.TrimSpace(strings.Repeat("no such table ", 20))) || strings.Count(got, "\n") != 1 {
			t.Errorf("the table is incomplete:\n%s", got)
		}
	}
}

// States are coloured by meaning, and only if the screen has colours.
func TestColours(t *testing.T) {
	t.Parallel()
	queues := []ops.QueueRecord{{Status: "HELD"}, {Status: "MOVING"}, {Status: "ORPHAN"}}
	got := render(screen{width: 80, color: true}, queues, queueColumns)
	for _, want := range []string{"\x1b[32mHELD\x1b[0m", "\x1b[33mMOVING\x1b[0m", "\x1b[31mORPHAN\x1b[0m"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if plain := render(screen{width: 80}, queues, queueColumns); strings.Contains(plain, "\x1b") {
		t.Errorf("%q", plain)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"0.0s": 0, "1.3s": 1300 * time.Millisecond, "42s": 42 * time.Second, "3m": 3 * time.Minute, "3m5s": 185 * time.Second,
		"2h": 2 * time.Hour, "2h10m": 130 * time.Minute, "4d3h": 99 * time.Hour,
	} {
		seconds := d.Seconds()
		if got := ageText(&seconds); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
	if ageText(nil) != "-" {
		t.Error("a missing age must be -")
	}
}

func TestFindingsOnATerminal(t *testing.T) {
	t.Parallel()
	findings := []condition.Condition{{Status: "PROBLEM", Check: "requests", TaskType: "settle", Text: strings.Repeat("a long finding ", 20), Hint: strings.Repeat("some advice ", 20)}}
	if got := findingsText(screen{width: 80, height: 24, color: true}, findings); widest(got) > 80 || strings.Count(got, "finding") != 20 || strings.Count(got, "advice") != 20 {
		t.Errorf("%d characters wide:\n%s", widest(got), got)
	}
	if got := findingsText(screen{}, findings); strings.Contains(got, "\n") {
		t.Errorf("more than a line:\n%s", got)
	}
}

// A list of 10,000 queues is rendered completely.
func TestManyQueuesAreRendered(t *testing.T) {
	t.Parallel()
	queues := make([]ops.QueueRecord, 10_000)
	for i := range queues {
		queues[i].TaskType, queues[i].QueueID = "settle", fmt.Sprint(i)
	}
	table, _ := splitNote(strings.Split(render(screen{width: 40}, queues, queueColumns), "\n"))
	if lines := len(table) - 1; lines != 10_000 {
		t.Errorf("%d lines", lines)
	}
}
