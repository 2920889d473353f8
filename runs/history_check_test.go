package runs_test

import (
	"errors"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// check checks the invariants after a step.
func (m *runModel) check() {
	all := map[string]runs.Run{}
	slots, running := map[string]bool{}, map[string]bool{}
	for _, task := range m.tasks() {
		list, err := ops.New(m.c).Runs().List(m.Context(), runs.Filter{TaskType: task}, 10_000)
		m.must(err)
		for _, r := range list {
			all[r.ID] = r.Run
			slot := r.TaskType + r.ScheduledAt.String()
			if r.Trigger != "" && slots[slot] {
				m.Fatalf("slot %s has two runs", slot)
			}
			slots[slot] = slots[slot] || r.Trigger != ""
			if r.State == runs.Running {
				if running[task] || r.DeadlineAt.IsZero() {
					m.Fatalf("run of %s is the second that is RUNNING, or has no deadline: %+v", task, r)
				}
				running[task] = true
			}
		}
	}
	m.checkJoins(all)
	for _, r := range all {
		if r.State == m.states[r.ID] {
			continue
		}
		if r.State == runs.Running {
			m.checkUpstreams(r, all)
		}
		if r.Ended() {
			m.checkQueues(r)
		}
		m.states[r.ID] = r.State
	}
}

// checkBackfills checks that a backfill that has ended has passed all its slots, that each of them has a run, and that
// the state follows from its runs (R20).
func (m *runModel) checkBackfills() {
	list, err := ops.New(m.c).Backfills().List(m.Context(), runs.BackfillFilter{}, 1000)
	m.must(err)
	for _, b := range list {
		if b.State == runs.BackfillCancelled {
			continue
		}
		if b.SlotsMade+b.SlotsKept != b.SlotsTotal || b.State == runs.BackfillSuccess &&
			b.RunsFailed+b.RunsCancelled+b.DependantsFailed > 0 {
			m.Fatalf("the backfill is %+v, want all slots passed and its state to follow from its runs", b)
		}
		slots, err := ops.New(m.c).Backfills().Slots(m.Context(), b.ID)
		m.must(err)
		for _, s := range slots {
			if s.RunID == "" {
				m.Fatalf("slot %s of backfill %s has no run", s.ScheduledAt, b.ID)
			}
		}
	}
}

// checkJoins checks that f has one run for each slot or key for which both b and e have a run, and no other run for a
// slot (R18). A root that was SKIPPED does not count.
func (m *runModel) checkJoins(all map[string]runs.Run) {
	made := map[string]map[string]int{}
	for _, r := range all {
		id := r.Key
		if r.Trigger != "" {
			id = r.ScheduledAt.String()
		}
		if made[id] == nil {
			made[id] = map[string]int{}
		}
		if r.State != runs.Skipped || r.RootID != r.ID {
			made[id][r.TaskType]++
		}
		if r.Trigger != "" && r.TaskType == "f" {
			made[id]["fired f"]++
		}
	}
	for id, list := range made {
		both := list["b"] > 0 && list["e"] > 0
		if both && list["f"] != 1 || !both && list["fired f"] > 0 {
			m.Fatalf("slot or key %s has %d runs of f, although b has %d and e has %d", id, list["f"], list["b"], list["e"])
		}
	}
}

// checkUpstreams checks that a run that is RUNNING did not begin before its upstreams allow it.
func (m *runModel) checkUpstreams(r runs.Run, all map[string]runs.Run) {
	_, deps, err := m.c.Engine().Runs.Graph(m.Context(), r.ID)
	m.must(err)
	for _, d := range deps {
		up := all[d.Upstream]
		if d.Run == r.ID && up.State != runs.Success && (d.Rule == runs.RuleSuccess || !up.Ended()) {
			m.Fatalf("run of %s began while its upstream %s was %s (rule %s)", r.TaskType, up.TaskType, up.State, d.Rule)
		}
	}
}

// checkQueues checks that a run that has ended has no open queue, and after a success only queues that are DONE.
func (m *runModel) checkQueues(r runs.Run) {
	queues, err := m.c.Engine().Runs.Queues(m.Context(), r.ID)
	m.must(err)
	for _, q := range queues {
		open := q.State == runs.QueuePending || q.State == runs.QueueRunning
		if open || q.State != runs.QueueDone && r.State == runs.Success {
			m.Fatalf("run %s ended %s with queue %s %s", r.ID, r.State, q.QueueID, q.State)
		}
	}
}

// checkCommit checks that a write succeeded only under the queue's present owner and epoch, and records the epoch.
func (m *runModel) checkCommit(s runs.Sweep, err error) {
	if errors.Is(err, center.ErrFenced) || errors.Is(err, runs.ErrRunOver) {
		return
	}
	m.must(err)
	queue, key := s.TaskType+"/"+s.QueueID, s.RunID+"/"+s.QueueID
	if m.owners[queue].name != s.Server || m.epochs[queue] != s.Epoch {
		m.Fatalf("commit to queue %s: got server %s and epoch %d, want owner %s and epoch %d", queue, s.Server, s.Epoch,
			m.owners[queue].name, m.epochs[queue])
	}
	if s.Epoch < m.commits[key] {
		m.Fatalf("commit to queue %s: got epoch %d after epoch %d", key, s.Epoch, m.commits[key])
	}
	m.commits[key] = s.Epoch
}
