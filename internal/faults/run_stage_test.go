//go:build linux

package faults

import (
	"database/sql"
	"fmt"
	"strconv"

	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// submit submits a run. Its params are the watermark of the last successful run, in milliseconds.
func (s runSteps) submit(key string) string {
	s.t.Helper()
	var id string
	s.until("a run is submitted", func() (ok bool) {
		var err error
		id, _, err = s.c.Engine().Runs.Submit(s.t.Context(), taskType,
			runs.Submission{Key: key, Params: strconv.FormatInt(s.swept, 10)})
		return err == nil
	})
	return id
}

// addItems adds the given number of items to each queue in one transaction. The supply must have ended.
func (s supplySteps) addItems(each int) {
	s.t.Helper()
	var ids []int
	for id := s.count(`SELECT COALESCE(MAX(id), -1) + 1 FROM items`); len(ids) < each*queues; id++ {
		ids = append(ids, id)
	}
	s.insert(s.t.Context(), s.c, ids)
	s.until("the items are inserted", func() bool {
		return s.count(`SELECT COUNT(*) FROM items WHERE id = ?`, ids[len(ids)-1]) == 1
	})
}

// run reads a run, as soon as the database answers.
func (s runSteps) run(id string) (r runs.Run) {
	s.t.Helper()
	s.until("a run is read", func() (ok bool) {
		record, err := ops.New(s.c).Runs().Get(s.t.Context(), id)
		r = record.Run
		return err == nil
	})
	return r
}

// midway waits until a run is well under way, but has at least a quarter of its work left.
func (s runSteps) midway(id string) {
	s.t.Helper()
	s.until("the run is under way", func() bool {
		return s.count(`SELECT COUNT(*) FROM history WHERE run = ?`, id) > queues
	})
}

// ends waits until a run has ended.
func (s runSteps) ends(id string) (r runs.Run) {
	s.t.Helper()
	s.until("the run ends", func() bool {
		r = s.run(id)
		return r.Ended()
	})
	return r
}

// endsAs waits until a run has ended, and checks its state.
func (s runSteps) endsAs(id, state string) runs.Run {
	s.t.Helper()
	r := s.ends(id)
	if r.State != state {
		s.t.Fatalf("run %s is %s (%s), want %s; queues: %+v", r.Key, r.State, r.Message, state, s.queuesOf(id))
	}
	if state == runs.Success {
		s.swept = r.StartedAt.UnixMilli()
	}
	return r
}

// succeeds waits until a run has succeeded.
func (s runSteps) succeeds(id string) runs.Run {
	s.t.Helper()
	return s.endsAs(id, runs.Success)
}

// sweepRest sweeps the items that are left.
func (s graphSteps) sweepRest() {
	s.t.Helper()
	s.graphSucceeds(s.submit("the rest"))
}

func (s runSteps) queuesOf(run string) []runs.Queue {
	s.t.Helper()
	list, err := s.c.Engine().Runs.Queues(s.t.Context(), run)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// attempts returns the largest number of attempts of the queues of a run, and the largest number of take-overs since a
// queue made progress.
func (s runSteps) attempts(run string) (most, recoveries int) {
	s.t.Helper()
	for _, q := range s.queuesOf(run) {
		most, recoveries = max(most, q.Attempt), max(recoveries, q.Recoveries)
	}
	return most, recoveries
}

// sweeps collects the records of the runs.
func (s runSteps) sweeps() Sweeps {
	s.t.Helper()
	all := Sweeps{Queues: map[string][]runs.Queue{}, There: s.there, Rerun: s.rerun}
	triggers, err := ops.New(s.c).Triggers().List(s.t.Context(), runs.TriggerFilter{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, t := range triggers {
		all.Triggers = append(all.Triggers, t.Trigger)
	}
	list, err := ops.New(s.c).Runs().List(s.t.Context(), runs.Filter{}, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range list {
		all.Runs = append(all.Runs, r.Run)
		all.Queues[r.ID] = s.queuesOf(r.ID)
	}
	s.rows(`SELECT run_id, upstream_run_id, rule FROM schedule_run_dep ORDER BY run_id, upstream_run_id`,
		func(r *sql.Rows) error {
			var d runs.Dep
			err := r.Scan(&d.Run, &d.Upstream, &d.Rule)
			all.Deps = append(all.Deps, d)
			return err
		})
	s.rows(`SELECT run, queue, epoch, sweep, item FROM history ORDER BY seq`, func(r *sql.Rows) error {
		var e SweepEffect
		err := r.Scan(&e.Run, &e.Queue, &e.Epoch, &e.Found, &e.Item)
		all.Effects = append(all.Effects, e)
		return err
	})
	s.rows(`SELECT run, queue, epoch, sweep, waiting FROM calls ORDER BY seq`, func(r *sql.Rows) error {
		var c SweepCall
		err := r.Scan(&c.Run, &c.Queue, &c.Epoch, &c.Found, &c.Waiting)
		all.Calls = append(all.Calls, c)
		return err
	})
	s.t.Log(runSummary(all))
	return all
}

func runSummary(all Sweeps) string {
	states := map[string]int{}
	for _, r := range all.Runs {
		states[r.TaskType+" "+r.State]++
	}
	return fmt.Sprintf("runs %v, %d effects, %d calls", states, len(all.Effects), len(all.Calls))
}
