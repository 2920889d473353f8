//go:build linux

package faults

import (
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/testdb"
)

// triggerScenarios are runs that begin by themselves: by the clock, or after others.
var triggerScenarios = []scenario{
	{name: "run-trigger-skip", play: fireOften(center.OverlapSkip), power: sweeping, kinds: everywhere, quick: true},
	{name: "run-trigger-wait", play: fireOften(center.OverlapWait), power: sweeping, kinds: everywhere},
	{name: "run-kill-at-firing", play: killAtFiring, power: sweeping, proxied: true},
	{name: "run-graph", play: killInGraph, power: graph, kinds: everywhere, quick: true},
	{name: "run-graph-kill-at-settling", play: killAtSettling, power: graph, proxied: true},
	{name: "run-graph-replies-lost", play: replyLostInGraph, power: graph, proxied: true},
	{name: "run-dependant-without-servers", play: dependantWithoutServers, power: sweeping, proxied: true},
}

// trigger makes a trigger of every second: runs take longer.
func (s *stage) trigger(overlap string) {
	s.t.Helper()
	t := center.Trigger{Name: "often", Target: taskType, Kind: center.TriggerEvery, Expression: "1s", Overlap: overlap}
	if overlap == center.OverlapWait {
		t.Kind, t.Expression = center.TriggerCron, "* * * * * ?"
	}
	_, err := s.c.Engine().DefineTrigger(s.t.Context(), t)
	s.must(err)
}

// fires waits until the trigger has fired so many times more.
func (s *stage) fires(n int) {
	s.t.Helper()
	fires := func() int { return s.count(`SELECT fires FROM schedule_trigger`) }
	from := fires()
	s.until("the trigger fires", func() bool { return fires() >= from+n })
}

// rest stops the trigger, and waits until all runs have ended.
func (s *stage) rest() {
	s.t.Helper()
	s.must(s.c.Engine().PauseTrigger(s.t.Context(), "often", true, "test"))
	s.until("all runs have ended", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_run WHERE state IN ('WAITING', 'READY', 'RUNNING')`) == 0
	})
}

// fireOften: workers die while a trigger is due more often than its runs end.
func fireOften(overlap string) func(*stage) {
	return func(s *stage) {
		s.trigger(overlap)
		s.fires(2)
		for range 2 {
			s.sleep(s.upTo(s.dead(0.5)))
			s.kill(s.any())
			s.recruit()
		}
		s.fires(3)
		s.rest()
		if n := s.count(`SELECT COUNT(*) FROM schedule_run WHERE state = ?`, center.RunSkipped); n == 0 {
			s.t.Error("no slot was skipped: this proves nothing")
		}
	}
}

// killAtFiring kills whoever fires: before, in the middle, and when it has fired and does not know.
func killAtFiring(s *stage) {
	s.trigger(center.OverlapSkip)
	for _, m := range moments {
		w := s.victim(s.waylay(firing, 0, m, murder), m.String()+": the trigger fires")
		s.dies(w)
		s.recruit()
		s.fires(2)
	}
	s.rest()
}

// diamond lets left and right follow the first task type, and last both of them.
func (s *stage) diamond() {
	s.t.Helper()
	for name, after := range map[string][]center.After{
		"left": {{Upstream: taskType}}, "right": {{Upstream: taskType}}, "last": {{Upstream: "left"}, {Upstream: "right"}},
	} {
		s.until("the task types are defined", func() bool { return s.c.Engine().DefineAfter(s.t.Context(), name, after...) == nil })
	}
}

// graphSucceeds waits until a run and all that wait for it have succeeded.
func (s *stage) graphSucceeds(id string) (runs []center.Run) {
	s.t.Helper()
	s.succeeds(id)
	s.until("all runs of the graph have ended", func() bool {
		var err error
		runs, _, err = s.c.Engine().RunGraph(s.t.Context(), id)
		open := 0
		for _, r := range runs {
			if !r.Ended() {
				open++
			}
		}
		return err == nil && open == 0
	})
	for _, r := range runs {
		if r.State != center.RunSuccess {
			s.t.Errorf("%s is %s: %s", name(r), r.State, r.Message)
		}
	}
	return runs
}

// killInGraph kills one worker in the first run, and one when those that follow are under way.
func killInGraph(s *stage) {
	s.diamond()
	id := s.submit("")
	s.midway(id)
	s.kill(s.any())
	s.recruit()
	s.succeeds(id)
	s.sleep(s.upTo(s.settings.HeartbeatInterval))
	s.kill(s.any())
	s.recruit()
	s.wantGraph(id)
}

// wantGraph waits for the four runs of a diamond.
func (s *stage) wantGraph(id string) {
	s.t.Helper()
	if runs := s.graphSucceeds(id); len(runs) != 1+len(followers) {
		s.t.Errorf("%d runs", len(runs))
	}
}

// killAtSettling kills whoever lets a run go on that has waited.
func killAtSettling(s *stage) {
	s.diamond()
	for _, m := range moments {
		struck := s.waylay(settling, 0, m, murder)
		id := s.submit("")
		s.dies(s.victim(struck, m.String()+": a run is settled"))
		s.recruit()
		s.wantGraph(id)
	}
}

// replyLostInGraph: whoever ends a run, or settles one that waits for it, does not know that it has.
func replyLostInGraph(s *stage) {
	s.diamond()
	for _, at := range []step{closing, settling} {
		struck := s.waylay(at, 0, testdb.AfterCommit, func(*worker) bool { return false })
		id := s.submit("")
		s.victim(struck, "the reply is lost: "+string(at))
		s.wantGraph(id)
	}
}

// dependantWithoutServers: nobody serves the task type that follows, and whoever ends the first run dies before it
// looks after that. The run waits for the first server that comes.
func dependantWithoutServers(s *stage) {
	_, err := s.c.Tasks().Define(s.t.Context(), "left", following(s.settings))
	s.must(err)
	s.must(s.c.Engine().DefineAfter(s.t.Context(), "left", center.After{Upstream: taskType}))
	struck := s.waylay(closing, 0, testdb.AfterCommit, murder)
	id := s.submit("")
	s.dies(s.victim(struck, "the run is closed"))
	s.succeeds(id)
	s.sleep(2 * time.Second) // two ticks of the others
	if n := s.count(`SELECT COUNT(*) FROM schedule_run WHERE task_type = 'left' AND state = ?`, center.RunWaiting); n != 1 {
		s.t.Errorf("%d runs wait", n)
	}
	s.power = graph
	s.recruit()
	s.graphSucceeds(id)
}
