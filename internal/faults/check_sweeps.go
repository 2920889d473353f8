package faults

import (
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/runs"
)

// CheckRuns returns the violations of runs, ordered by invariant. It is pure.
func CheckRuns(s Sweeps) []Violation {
	c := &runChecker{Sweeps: s, runs: map[string]runs.Run{}}
	for _, r := range s.Runs {
		c.runs[r.ID] = r
	}
	c.allEnd()
	c.allSwept()
	c.ownSweeps()
	c.upstreamsFirst()
	c.oncePerSlot()
	c.oneAtATime()
	c.noPileUp()
	return c.sorted()
}

type runChecker struct {
	Sweeps
	findings
	runs map[string]runs.Run
}

func name(r runs.Run) string { return fmt.Sprintf("run %s (%s, %s)", r.ID, r.TaskType, r.Key) }

// allEnd checks 13: each run and its queues have ended, in states that agree.
func (c *runChecker) allEnd() {
	for _, r := range c.Runs {
		if !r.Ended() {
			c.fault(13, "%s is %s", name(r), r.State)
			continue
		}
		for _, q := range c.Queues[r.ID] {
			good := q.State == runs.QueueDone || q.State == runs.QueueCancelled ||
				q.State == runs.QueueFailed && r.State == runs.Failed
			if !good {
				c.fault(13, "%s is %s, and its queue %s is %s", name(r), r.State, q.QueueID, q.State)
			}
		}
		if r.State == runs.Success && len(c.Queues[r.ID]) == 0 {
			c.fault(13, "%s is SUCCESS without a queue", name(r))
		}
	}
}

// allSwept checks 14: the items that existed when a run opened are done when it has succeeded, by this run or an
// earlier run.
func (c *runChecker) allSwept() {
	done := map[int64]time.Time{}
	for _, e := range c.Effects {
		if done[e.Item] = c.runs[e.Run].FinishedAt; c.Rerun[e.Run] {
			done[e.Item] = time.Time{} // the first execution of a rerun may have done it
		}
	}
	for _, r := range c.Runs {
		// a message means that queues were removed
		if r.State != runs.Success || r.TaskType != taskName || r.Message != "" {
			continue
		}
		var left []int64
		for id, there := range c.There {
			if at, ok := done[id]; there.Before(r.StartedAt) && (!ok || at.After(r.FinishedAt)) {
				left = append(left, id)
			}
		}
		if len(left) > 0 {
			first := slices.Min(left)
			c.fault(14, "%s left %d items, the first of them %d, which was there %s before it began", name(r), len(left), first,
				r.StartedAt.Sub(c.There[first]))
		}
	}
}

// taskName is the task type whose items the check counts.
const taskName = "faults"

// ownSweeps checks 15: an effect in a run commits while its queue is being swept, under the epoch of the sweep. The
// exception is a run that an operator stops, because the stop does not wait for a sweep.
func (c *runChecker) ownSweeps() {
	sweeps := make([]Sweep, 0, len(c.Effects)+len(c.Calls))
	for _, e := range c.Effects {
		sweeps = append(sweeps, e.Sweep)
	}
	for _, call := range c.Calls {
		sweeps = append(sweeps, call.Sweep)
	}
	for _, s := range sweeps {
		r, ok := c.runs[s.Run]
		running := fmt.Sprintf("%s %d", runs.QueueRunning, s.Epoch)
		stopped := (c.Rerun[s.Run] || r.State == runs.Cancelled || r.State == runs.Failed) &&
			(s.Found == fmt.Sprintf("%s %d", runs.QueueCancelled, s.Epoch) ||
				s.Found == fmt.Sprintf("%s %d", runs.QueueFailed, s.Epoch))
		if !ok || s.Found != running && !stopped {
			c.fault(15, "in queue %s of %s something took effect under epoch %d while its row said %s", s.Queue, name(r),
				s.Epoch, s.Found)
		}
	}
}

// upstreamsFirst checks 16: before its upstreams have ended, a run does not open and has no effect. A successful run
// has a call for each queue.
func (c *runChecker) upstreamsFirst() {
	called := map[string]bool{}
	for _, call := range c.Calls {
		called[call.Run+" "+call.Queue] = true
		if call.Waiting > 0 {
			c.fault(16, "queue %s of %s was called while %d of its upstreams had not ended", call.Queue, name(c.runs[call.Run]),
				call.Waiting)
		}
	}
	for _, d := range c.Deps {
		r, up := c.runs[d.Run], c.runs[d.Upstream]
		if !r.StartedAt.IsZero() && r.StartedAt.Before(up.FinishedAt) {
			c.fault(16, "%s began at %s, before %s ended at %s", name(r), clock(r.StartedAt), name(up), clock(up.FinishedAt))
		}
		if r.State == runs.Success && up.State != runs.Success {
			c.fault(16, "%s is SUCCESS after %s, which is %s", name(r), name(up), up.State)
		}
	}
	for _, r := range c.Runs {
		for _, q := range c.Queues[r.ID] {
			if r.TaskType != taskName && q.State == runs.QueueDone && !called[r.ID+" "+q.QueueID] {
				c.fault(16, "queue %s of %s is DONE and was never called", q.QueueID, name(r))
			}
		}
	}
}

// oncePerSlot checks 17: a slot of a trigger makes one run of a task type, and so does a key. Every run that a
// trigger has fired exists. A slot that was skipped makes a run and is no firing, and neither is a run of a backfill.
func (c *runChecker) oncePerSlot() {
	slots, keys := map[string]string{}, map[string]string{}
	for _, r := range c.Runs {
		slot, key := fmt.Sprint(r.TaskType, r.Trigger, r.ScheduledAt.UnixMicro()), r.TaskType+" "+r.Key
		if other := slots[slot]; r.Trigger != "" && other != "" {
			c.fault(17, "%s has the slot %s of run %s", name(r), r.ScheduledAt, other)
		}
		if other := keys[key]; other != "" {
			c.fault(17, "%s has the key of run %s", name(r), other)
		}
		slots[slot], keys[key] = r.ID, r.ID
	}
	for _, t := range c.Triggers {
		fired := int64(0)
		for _, r := range c.Runs {
			if r.Trigger == t.Name && r.Backfill == "" && r.TaskType == t.Target && r.State != runs.Skipped {
				fired++
			}
		}
		if fired != t.Fires {
			c.fault(17, "trigger %s has fired %d slots, and %d runs were not skipped", t.Name, t.Fires, fired)
		}
	}
}

// noPileUp checks 19: when a trigger fires a run that is not skipped, no other run of the trigger is open. If the run may
// wait, one other may be open. The runs of backfills do not count.
func (c *runChecker) noPileUp() {
	most := map[string]int{}
	for _, t := range c.Triggers {
		if most[t.Name] = 0; t.Overlap == runs.OverlapWait {
			most[t.Name] = 1
		}
	}
	for _, r := range c.Runs {
		if r.Trigger == "" || r.Backfill != "" || r.State == runs.Skipped || r.RootID != r.ID {
			continue
		}
		open := 0
		for _, o := range c.Runs {
			if o.ID != r.ID && o.Backfill == "" && o.Trigger == r.Trigger && o.TaskType == r.TaskType && o.State != runs.Skipped &&
				o.CreatedAt.Before(r.CreatedAt) && o.FinishedAt.After(r.CreatedAt) {
				open++
			}
		}
		if open > most[r.Trigger] {
			c.fault(19, "%s was made while %d others were open", name(r), open)
		}
	}
}

// oneAtATime checks 18: two runs of a task type are not under way at once. It skips runs that were rerun, because
// their times are not recorded.
func (c *runChecker) oneAtATime() {
	list := slices.DeleteFunc(slices.Clone(c.Runs), func(r runs.Run) bool {
		return r.StartedAt.IsZero() || c.Rerun[r.ID]
	})
	slices.SortFunc(list, func(a, b runs.Run) int { return a.StartedAt.Compare(b.StartedAt) })
	last := map[string]runs.Run{}
	for _, r := range list {
		if before, ok := last[r.TaskType]; ok && r.StartedAt.Before(before.FinishedAt) {
			c.fault(18, "%s began at %s, before %s ended at %s", name(r), clock(r.StartedAt), name(before),
				clock(before.FinishedAt))
		}
		last[r.TaskType] = r
	}
}
