package faults

import (
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/runs"
)

// swept returns a good record. A trigger fires two runs: the first succeeds, the second is skipped. A dependant runs
// after the first run, and an operator submits one more run later. The first run has one queue, and another server
// takes over its sweep.
func swept() Sweeps {
	trigger := runs.Trigger{Name: "often", Target: taskName, Overlap: runs.OverlapSkip, Fires: 1}
	first := runs.Run{
		ID: "1", RootID: "1", TaskType: taskName, Key: "k1", Trigger: "often", State: runs.Success,
		ScheduledAt: at(1000), CreatedAt: at(1010), StartedAt: at(1020), FinishedAt: at(3000),
	}
	skipped := runs.Run{
		ID: "2", RootID: "2", TaskType: taskName, Key: "k2", Trigger: "often", State: runs.Skipped,
		ScheduledAt: at(2000), CreatedAt: at(2010), FinishedAt: at(2010),
	}
	report := runs.Run{
		ID: "3", RootID: "1", TaskType: "report", Key: "k1", Trigger: "often", State: runs.Success,
		ScheduledAt: at(1000), CreatedAt: at(1010), StartedAt: at(3010), FinishedAt: at(3500),
	}
	last := runs.Run{
		ID: "4", RootID: "4", TaskType: taskName, Key: "k4", State: runs.Success,
		ScheduledAt: at(3100), CreatedAt: at(3100), StartedAt: at(3200), FinishedAt: at(4000),
	}
	done := []runs.Queue{{QueueID: "0", State: runs.QueueDone}}
	sweep := func(run string, epoch int64, found string) Sweep { return Sweep{run, "0", epoch, found} }
	return Sweeps{
		Runs:     []runs.Run{first, skipped, report, last},
		Queues:   map[string][]runs.Queue{"1": done, "3": done, "4": done},
		Deps:     []runs.Dep{{Run: "3", Upstream: "1", Rule: runs.RuleSuccess}},
		Triggers: []runs.Trigger{trigger},
		Effects: []SweepEffect{
			{sweep("1", 5, "RUNNING 5"), 10}, {sweep("1", 6, "RUNNING 6"), 11}, {sweep("4", 6, "RUNNING 6"), 12},
		},
		Calls: []SweepCall{{sweep("3", 5, "RUNNING 5"), 0}},
		There: map[int64]time.Time{10: at(500), 11: at(600), 12: at(1500), 13: at(3900)},
		Rerun: map[string]bool{},
	}
}

func TestCheckRunsAcceptsGoodRuns(t *testing.T) {
	for name, change := range map[string]func(*Sweeps){
		"unchanged": func(*Sweeps) {},
		"empty":     func(s *Sweeps) { *s = Sweeps{} },
		"a late effect of a run that was cancelled": func(s *Sweeps) {
			s.Runs[3].State, s.Queues["4"] = runs.Cancelled, []runs.Queue{{
				QueueID: "0",
				State:   runs.QueueCancelled,
			}}
			s.Effects[2].Found = "CANCELLED 6"
		},
		"a run that was cancelled and then rerun, with another in between": func(s *Sweeps) {
			s.Runs[0].FinishedAt, s.Rerun["1"], s.Deps = at(9000), true, nil
		},
		"a trigger whose runs may wait": func(s *Sweeps) {
			s.Triggers[0].Overlap, s.Triggers[0].Fires, s.Runs[1].State = runs.OverlapWait, 2, runs.Success
			s.Runs[1].StartedAt, s.Runs[1].FinishedAt = at(3010), at(3100)
			s.Queues["2"] = s.Queues["1"]
			s.Effects[2].Run = "2"
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := swept()
			change(&s)
			for _, v := range CheckRuns(s) {
				t.Error(v)
			}
		})
	}
}

func TestCheckRunsFindsViolations(t *testing.T) {
	failed := []runs.Queue{{QueueID: "0", State: runs.QueueFailed}}
	for _, c := range []struct {
		name   string
		change func(*Sweeps)
		want   []int // the broken invariants
	}{
		{"a run does not end", func(s *Sweeps) { s.Runs[3].State = runs.Running }, []int{13}},
		{"a run succeeds with a queue that has failed", func(s *Sweeps) { s.Queues["4"] = failed }, []int{13}},
		{"a run ends without one of its queues", func(s *Sweeps) {
			s.Queues["4"] = []runs.Queue{{QueueID: "0", State: runs.QueueRunning}}
		}, []int{13}},
		{"a run succeeds without queues", func(s *Sweeps) { delete(s.Queues, "4") }, []int{13}},
		{"an item is left", func(s *Sweeps) { s.Effects = s.Effects[:2] }, []int{14}},
		{"an item is left to the next run", func(s *Sweeps) { s.There[12] = at(900) }, []int{14}},
		{"an effect under an epoch older than the sweep", func(s *Sweeps) { s.Effects[0].Found = "RUNNING 6" }, []int{15}},
		{"an effect when the queue is done", func(s *Sweeps) { s.Effects[1].Found = "DONE 6" }, []int{15}},
		{"an effect before the claim", func(s *Sweeps) { s.Effects[1].Found = "PENDING 6" }, []int{15}},
		{
			"a cancelled sweep in a run that was not cancelled", func(s *Sweeps) { s.Effects[1].Found = "CANCELLED 6" },
			[]int{15},
		},
		{"a call when the queue is done", func(s *Sweeps) { s.Calls[0].Found = "DONE 5" }, []int{15}},
		{"an effect without a run", func(s *Sweeps) { s.Effects[0].Run = "" }, []int{15}},
		{"a dependant is called too early", func(s *Sweeps) { s.Calls[0].Waiting = 1 }, []int{16}},
		{"a dependant is opened too early", func(s *Sweeps) { s.Runs[2].StartedAt = at(2990) }, []int{16}},
		{"a dependant succeeds after a failure", func(s *Sweeps) {
			s.Runs[0].State, s.Queues["1"] = runs.Failed, failed
		}, []int{16}},
		{"a dependant is done without a call", func(s *Sweeps) { s.Calls = nil }, []int{16}},
		{"a slot makes two runs", func(s *Sweeps) { s.Runs[1].ScheduledAt = at(1000) }, []int{17}},
		{"a key makes two runs", func(s *Sweeps) { s.Runs[1].Key = "k1" }, []int{17}},
		{"a slot makes no run", func(s *Sweeps) { s.Triggers[0].Fires = 3 }, []int{17}},
		{"two runs at once", func(s *Sweeps) { s.Runs[3].StartedAt = at(2990) }, []int{18}},
		{"runs pile up", func(s *Sweeps) {
			s.Runs[1].State, s.Runs[1].StartedAt, s.Runs[1].FinishedAt = runs.Failed, at(3010), at(3100)
			s.Triggers[0].Fires++
		}, []int{19}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := swept()
			c.change(&s)
			var got []int
			for _, v := range CheckRuns(s) {
				got = append(got, v.Invariant)
			}
			if got = slices.Compact(got); !slices.Equal(got, c.want) {
				t.Errorf("broken invariants %v, want %v: %v", got, c.want, CheckRuns(s))
			}
		})
	}
}
