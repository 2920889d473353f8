package runs_test

import (
	"errors"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/runs"
)

// check checks the invariants after a step.
func (m *runModel) check() {
	all := map[string]center.Run{}
	slots, running := map[string]bool{}, map[string]bool{}
	for _, task := range m.tasks() {
		runs, err := m.c.Runs().List(m.Context(), center.RunFilter{TaskType: task}, 10_000)
		m.must(err)
		for _, r := range runs {
			all[r.ID] = r.Run
			slot := r.TaskType + r.ScheduledAt.String()
			if r.Trigger != "" && slots[slot] {
				m.Fatalf("slot %s has two runs", slot)
			}
			slots[slot] = slots[slot] || r.Trigger != ""
			if r.State == center.RunRunning {
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
		if r.State == center.RunRunning {
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
	list, err := m.c.Backfills().List(m.Context(), center.BackfillFilter{}, 1000)
	m.must(err)
	for _, b := range list {
		if b.State == center.BackfillCancelled {
			continue
		}
		if b.SlotsMade+b.SlotsKept != b.SlotsTotal || b.State == center.BackfillSuccess &&
			b.RunsFailed+b.RunsCancelled+b.DependantsFailed > 0 {
			m.Fatalf("the backfill is %+v, want all slots passed and its state to follow from its runs", b)
		}
		slots, err := m.c.Backfills().Slots(m.Context(), b.ID)
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
func (m *runModel) checkJoins(all map[string]center.Run) {
	made := map[string]map[string]int{}
	for _, r := range all {
		id := r.Key
		if r.Trigger != "" {
			id = r.ScheduledAt.String()
		}
		if made[id] == nil {
			made[id] = map[string]int{}
		}
		if r.State != center.RunSkipped || r.RootID != r.ID {
			made[id][r.TaskType]++
		}
		if r.Trigger != "" && r.TaskType == "f" {
			made[id]["fired f"]++
		}
	}
	for id, runs := range made {
		both := runs["b"] > 0 && runs["e"] > 0
		if both && runs["f"] != 1 || !both && runs["fired f"] > 0 {
			m.Fatalf("slot or key %s has %d runs of f, although b has %d and e has %d", id, runs["f"], runs["b"], runs["e"])
		}
	}
}

// checkUpstreams checks that a run that is RUNNING did not begin before its upstreams allow it.
func (m *runModel) checkUpstreams(r center.Run, all map[string]center.Run) {
	_, deps, err := m.c.Engine().Runs.Graph(m.Context(), r.ID)
	m.must(err)
	for _, d := range deps {
		up := all[d.Upstream]
		if d.Run == r.ID && up.State != center.RunSuccess && (d.Rule == center.RuleSuccess || !up.Ended()) {
			m.Fatalf("run of %s began while its upstream %s was %s (rule %s)", r.TaskType, up.TaskType, up.State, d.Rule)
		}
	}
}

// checkQueues checks that a run that has ended has no open queue, and after a success only queues that are DONE.
func (m *runModel) checkQueues(r center.Run) {
	queues, err := m.c.Engine().Runs.Queues(m.Context(), r.ID)
	m.must(err)
	for _, q := range queues {
		open := q.State == center.RunQueuePending || q.State == center.RunQueueRunning
		if open || q.State != center.RunQueueDone && r.State == center.RunSuccess {
			m.Fatalf("run %s ended %s with queue %s %s", r.ID, r.State, q.QueueID, q.State)
		}
	}
}

// checkCommit checks that a write succeeded only under the queue's present owner and epoch, and records the epoch.
func (m *runModel) checkCommit(s runs.Sweep, err error) {
	if errors.Is(err, center.ErrFenced) || errors.Is(err, center.ErrRunOver) {
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
