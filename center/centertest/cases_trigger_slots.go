package centertest

import (
	"errors"
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

// testSlotOfRun checks what a run knows of its slot, and that a backfill is refused whose runs would not use it.
func testSlotOfRun(t *testing.T, c *center.Center) {
	t.Run("R2 a run knows the next slot and the time zone of its trigger", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, hour := r.hourly(func(t *runs.Trigger) { t.TimeZone = "Europe/Berlin" })
		r.downSince(hour)
		id := r.tick().Open
		if run := r.run(id); !run.SlotEnd.Equal(hour.Add(time.Hour)) || run.TimeZone != "Europe/Berlin" {
			t.Fatalf("the run is %+v, want its end in an hour, in Berlin", run)
		}
		if s := r.claimOne("A", "0"); !s.SlotEnd.Equal(hour.Add(time.Hour)) || s.TimeZone != "Europe/Berlin" || !s.ScheduledAt.Equal(hour) {
			t.Fatalf("the sweep is %+v, want the slot of the run", s)
		}
		r.must(c.Engine().Runs.Cancel(t.Context(), id, "test"))
		backfill := r.backfillHours(2, nil)
		r.tick()
		for _, s := range r.wantSlotStates(backfill, "RUNNING", "") {
			if s.RunID != "" && !r.run(s.RunID).SlotEnd.Equal(s.ScheduledAt.Add(time.Hour)) {
				t.Fatalf("the run of the backfill is %+v, want its end in an hour", r.run(s.RunID))
			}
		}
		if run := r.run(r.submit("k")); !run.SlotEnd.IsZero() || run.TimeZone != "UTC" {
			t.Fatalf("the submitted run is %+v, want no end", run)
		}
	})
	t.Run("R20 a backfill is refused whose runs would all do the same work", func(t *testing.T) {
		r := newRunFixture(t, c, 1)
		_, last := r.hourly(nil)
		r.exec("UPDATE schedule_server SET capabilities = 'Keyed,Slotless' WHERE task_type = '%s'", r.task)
		want := r.hours(last, 2, nil)
		_, err := c.Engine().Backfills.Start(t.Context(), want, "test")
		if !errors.Is(err, runs.ErrBackfillRange) || !strings.Contains(err.Error(), "its statements use no {{slot}}") {
			t.Fatalf("error %v, want ErrBackfillRange with the reason", err)
		}
		want.SameWork = true
		r.must(second(c.Engine().Backfills.Start(t.Context(), want, "test")))
	})
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
