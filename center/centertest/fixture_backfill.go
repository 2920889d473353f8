package centertest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// asksForTicks reports whether the reply to a server's heartbeat asks it to tick.
func (r *fixture) asksForTicks(name string) bool { return r.runReply(name).Runs.Open }

// runReply returns the reply to the heartbeat of a server that works in runs.
func (r *fixture) runReply(name string) roster.HeartbeatReply {
	r.Helper()
	report := roster.ServerReport{UUID: r.uuid(name), OldToken: r.tokens[name], TaskType: r.task, State: ops.StateServing, InRuns: true}
	replies, err := r.c.Roster().SendHeartbeat(r.Context(), roster.Heartbeat{Token: "next", Servers: []roster.ServerReport{report}})
	r.must(err)
	return replies[report.UUID]
}

// backfillHours starts a backfill of the hourly trigger's slots from some hours before its last slot up to that slot,
// without that slot. It returns the id of the backfill.
func (r *triggerSteps) backfillHours(hours int, change func(*runs.BackfillRange)) string {
	r.Helper()
	_, last := r.hourly(nil)
	b, err := r.c.Engine().Backfills.Start(r.Context(), r.hours(last, hours, change), "test")
	r.must(err)
	return b.ID
}

// hours returns the range of some slots before the last one of the hourly trigger.
func (r *triggerSteps) hours(last time.Time, hours int, change func(*runs.BackfillRange)) runs.BackfillRange {
	want := runs.BackfillRange{TaskType: r.task, From: last.Add(-time.Duration(hours) * time.Hour), To: last}
	if change != nil {
		change(&want)
	}
	return want
}

func (r *triggerSteps) backfill(id string) runs.BackfillRecord {
	r.Helper()
	b, err := ops.New(r.c).Backfills().Get(r.Context(), id)
	r.must(err)
	return b
}

// wantBackfill checks the state of a backfill, for how many slots it has made runs, and how many runs it has left
// alone. It returns the backfill.
func (r *triggerSteps) wantBackfill(id, state string, made, kept int) runs.BackfillRecord {
	r.Helper()
	b := r.backfill(id)
	if b.State != state || b.SlotsMade != made || b.SlotsKept != kept {
		r.Fatalf("the backfill is %s (%s) with %d slots made and %d kept, want %s, %d and %d", b.State, b.Message, b.SlotsMade, b.SlotsKept, state, made, kept)
	}
	return b
}

// wantSlotStates checks the states of the runs of all slots of a backfill, the oldest first. A slot without a run has
// "".
func (r *triggerSteps) wantSlotStates(id string, want ...string) []runs.BackfillSlot {
	r.Helper()
	list, err := ops.New(r.c).Backfills().Slots(r.Context(), id)
	r.must(err)
	var got []string
	for _, s := range list {
		got = append(got, s.State)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("states of the slots (-want +got):\n%s", diff)
	}
	return list
}

// wantOneRunEach checks that the task type has n runs, each of another slot.
func (r *triggerSteps) wantOneRunEach(n int64) {
	r.Helper()
	list := r.readInt("SELECT COUNT(*) FROM schedule_run WHERE task_type = '%s'", r.task)
	slots := r.readInt("SELECT COUNT(DISTINCT scheduled_at) FROM schedule_run WHERE task_type = '%s'", r.task)
	if list != n || slots != n {
		r.Fatalf("%d runs of %d slots, want %d of each", list, slots, n)
	}
}
