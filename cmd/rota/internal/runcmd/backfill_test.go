package runcmd

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/runs"
)

// The table has the slots whose run is open or has not succeeded, with the queues of the run, and fits the screen.
func TestBackfillShowsWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := runs.BackfillRecord{Backfill: runs.Backfill{ID: "b", TaskType: "extract", OwnSign: "BASE", State: runs.BackfillRunning, SlotsTotal: 3}}
	d := backfillDetails{Backfill: b, Slots: []runs.BackfillSlot{
		{ScheduledAt: noon, RunID: "r1", State: runs.Failed, Message: strings.Repeat("no such\ntable ", 20)},
		{ScheduledAt: noon.AddDate(0, 0, 1), RunID: "r2", State: runs.Running},
	}}
	for queue, state := range []string{runs.QueueDone, runs.QueueFailed, runs.QueueDone} {
		d.Queues = append(d.Queues, runs.BackfillQueue{RunID: "r1", QueueID: fmt.Sprint(queue), State: state})
	}
	shown := d.text(cli.Screen{Width: 80, Height: 24})
	if !regexp.MustCompile(`\n\n SLOT .*\n 2026-11-21T12:00:00Z +FAILED +2/3 +r1 +no such table .*\n 2026-11-22T12:00:00Z +RUNNING +0/0 +r2$`).MatchString(shown) || text.LongestLineLen(shown) > 80 {
		t.Error(shown)
	}
	d.Slots = nil
	if shown := d.text(cli.Screen{Width: 80}); strings.Contains(shown, "SLOT") || text.LongestLineLen(shown) > 80 {
		t.Error(shown)
	}
}
