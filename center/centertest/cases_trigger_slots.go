package centertest

import (
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/runs"
)

// testMisfires checks which missed slots fire after a downtime and after a pause.
func testMisfires(t *testing.T, c *center.Center) {
	for name, tt := range map[string]struct {
		change func(*runs.Trigger)
		down   time.Duration // the age of the first slot that no worker has seen
		want   []string
		missed int64
	}{
		"ONE":              {nil, 5 * time.Hour, []string{"0s"}, 5},
		"SKIP, young":      {func(t *runs.Trigger) { t.Misfire = runs.MisfireSkip }, 5 * time.Hour, []string{"0s"}, 5},
		"SKIP, old":        {func(t *runs.Trigger) { t.Misfire, t.Expression = runs.MisfireSkip, "9h" }, 10 * time.Hour, []string{"1h0m0s"}, 1},
		"SKIP, too old":    {func(t *runs.Trigger) { t.Misfire, t.Expression = runs.MisfireSkip, "6h" }, 4 * time.Hour, nil, 1},
		"ALL":              {func(t *runs.Trigger) { t.Misfire = runs.MisfireAll }, 2 * time.Hour, []string{"2h0m0s", "1h0m0s", "0s"}, 0},
		"ALL, catchup_max": {func(t *runs.Trigger) { t.Misfire, t.CatchupMax = runs.MisfireAll, 2 }, 5 * time.Hour, []string{"1h0m0s", "0s"}, 4},
		"ALL, max_fires":   {func(t *runs.Trigger) { t.Misfire, t.MaxFires = runs.MisfireAll, 1 }, 5 * time.Hour, []string{"0s"}, 5},
		"ALL, end_at":      {func(t *runs.Trigger) { t.Misfire, t.EndAt = runs.MisfireAll, t.StartAt.Add(6*time.Hour) }, 5 * time.Hour, []string{"5h0m0s", "4h0m0s"}, 0},
	} {
		fires := func(t *testing.T, r *fixture, hour time.Time) {
			r.tick()
			r.wantSlots(hour, tt.want...)
			if now := r.readTrigger(r.task); now.Missed != tt.missed || now.Fires != int64(len(tt.want)) {
				t.Fatalf("the trigger is %+v, want %d firings and %d missed", now, len(tt.want), tt.missed)
			}
			for _, state := range r.runStates() {
				if state == runs.Skipped {
					t.Fatal("a run for a missed slot was skipped because of another one")
				}
			}
		}
		t.Run("R3 slots missed while no worker ran: "+name, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(tt.change)
			if tt.change != nil && r.readTrigger(r.task).Status == runs.TriggerDone { // end_at has passed
				r.exec("UPDATE schedule_trigger SET status = 'ACTIVE' WHERE name = '%s'", r.task)
			}
			r.downSince(hour.Add(-tt.down))
			fires(t, r, hour)
		})
		t.Run("R3 slots missed during a pause: "+name, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(tt.change)
			r.exec("UPDATE schedule_trigger SET status = 'ACTIVE' WHERE name = '%s'", r.task)
			r.must(c.Engine().Triggers.SetPaused(t.Context(), r.task, true, "test"))
			r.downSince(hour.Add(-tt.down))
			r.tick()
			r.wantSlots(hour)
			r.must(c.Engine().Triggers.SetPaused(t.Context(), r.task, false, "test"))
			fires(t, r, hour)
		})
	}
}

// testOverlaps checks the slots that are due while an earlier run is open.
func testOverlaps(t *testing.T, c *center.Center) {
	for overlap, want := range map[string][]string{
		runs.OverlapSkip: {"RUNNING", "SKIPPED", "SKIPPED", "SKIPPED"},
		runs.OverlapWait: {"RUNNING", "READY", "SKIPPED", "SKIPPED"},
	} {
		t.Run("R4 a run lasts longer than the interval, overlap "+overlap, func(t *testing.T) {
			r := newRunFixture(t, c, 1)
			_, hour := r.hourly(func(t *runs.Trigger) { t.Overlap = overlap })
			for ago := 3; ago >= 0; ago-- {
				slot := hour.Add(-time.Duration(ago) * time.Hour)
				r.downSince(slot)
				r.exec("UPDATE schedule_trigger SET end_at = '%s' WHERE name = '%s'", slot.Format(timeLayout), r.task) // no later slot is due
				r.exec("UPDATE schedule_trigger SET status = 'ACTIVE' WHERE name = '%s'", r.task)
				r.tick()
			}
			r.wantRunStates(want...)
			list, err := c.Engine().Runs.List(t.Context(), runs.Filter{TaskType: r.task}, 10)
			r.must(err)
			if !strings.Contains(list[0].Message, list[3].ID+" is RUNNING") || list[0].FinishedAt.IsZero() {
				t.Fatalf("the skipped run is %+v, want it finished and its message to name run %s", list[0], list[3].ID)
			}
			r.finishAll("A", "0")
			if ticked := r.tick(); (ticked.Open != "") != (overlap == runs.OverlapWait) {
				t.Fatalf("run %q is open after the first has ended, with overlap %s", ticked.Open, overlap)
			}
		})
	}
}
