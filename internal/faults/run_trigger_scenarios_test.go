//go:build linux

package faults

import (
	"time"

	"github.com/dutyrota/rota/center/centertest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// triggerScenarios are runs that a trigger or the end of another run starts.
var triggerScenarios = []scenario{
	{name: "run-trigger-skip", play: fireOften(runs.OverlapSkip), variant: sweeping, kinds: everywhere, quick: true},
	{name: "run-trigger-wait", play: fireOften(runs.OverlapWait), variant: sweeping, kinds: everywhere},
	{name: "run-kill-at-firing", play: killAtFiring, variant: sweeping, proxied: true},
	{name: "run-graph", play: killInGraph, variant: graph, kinds: everywhere, quick: true},
	{name: "run-graph-kill-at-resolving", play: killAtResolving, variant: graph, proxied: true},
	{name: "run-graph-replies-lost", play: replyLostInGraph, variant: graph, proxied: true},
	{name: "run-dependant-without-servers", play: dependantWithoutServers, variant: sweeping, proxied: true},
}

// trigger defines a trigger that fires each second, which is more often than its runs end.
func (s graphSteps) trigger(overlap string) {
	s.t.Helper()
	t := runs.Trigger{Name: "often", Target: taskType, Kind: runs.TriggerEvery, Expression: "1s", Overlap: overlap}
	if overlap == runs.OverlapWait {
		t.Kind, t.Expression = runs.TriggerCron, "* * * * * ?"
	}
	_, err := s.c.Engine().Triggers.Define(s.t.Context(), t)
	s.must(err)
}

// fires waits until the trigger has fired n more times.
func (s graphSteps) fires(n int) {
	s.t.Helper()
	fires := func() int { return s.count(`SELECT fires FROM schedule_trigger`) }
	from := fires()
	s.until("the trigger fires", func() bool { return fires() >= from+n })
}

// stopTrigger pauses the trigger and waits until all runs have ended.
func (s graphSteps) stopTrigger() {
	s.t.Helper()
	s.must(s.c.Engine().Triggers.SetPaused(s.t.Context(), "often", true, "test"))
	s.until("all runs have ended", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_run WHERE state IN ('WAITING', 'READY', 'RUNNING')`) == 0
	})
}

// fireOften: workers die while a trigger fires more often than its runs end.
func fireOften(overlap string) func(*stage) {
	return func(s *stage) {
		s.trigger(overlap)
		s.fires(2)
		for range 2 {
			s.sleep(s.upTo(s.dead(0.5)))
			s.kill(s.any())
			s.launch()
		}
		s.fires(3)
		s.stopTrigger()
		if n := s.count(`SELECT COUNT(*) FROM schedule_run WHERE state = ?`, runs.Skipped); n == 0 {
			s.t.Error("no slot was skipped: the scenario proves nothing")
		}
	}
}

// killAtFiring kills the worker that fires the trigger: before the statement, before the commit, and after the commit
// but before the reply.
func killAtFiring(s *stage) {
	s.trigger(runs.OverlapSkip)
	for _, m := range moments {
		w := s.awaitBreak(s.breakAt(firing, m, killWorker), m.String()+": the trigger fires")
		s.dies(w)
		s.launch()
		s.fires(2)
	}
	s.stopTrigger()
}

// diamond defines that left and right run after the first task type, and last after both.
func (s graphSteps) diamond() {
	s.t.Helper()
	for name, after := range map[string][]runs.After{
		"left": {{Upstream: taskType}}, "right": {{Upstream: taskType}}, "last": {{Upstream: "left"}, {Upstream: "right"}},
	} {
		s.until("the task types are defined",
			func() bool { return centertest.RunAfter(s.t.Context(), s.c, name, after...) == nil })
	}
}

// graphSucceeds waits until a run and all its dependants have succeeded.
func (s graphSteps) graphSucceeds(id string) (list []runs.Run) {
	s.t.Helper()
	s.succeeds(id)
	s.until("all runs of the graph have ended", func() bool {
		var err error
		list, _, err = s.c.Engine().Runs.Graph(s.t.Context(), id)
		open := 0
		for _, r := range list {
			if !r.Ended() {
				open++
			}
		}
		return err == nil && open == 0
	})
	for _, r := range list {
		if r.State != runs.Success {
			s.t.Errorf("%s is %s: %s", name(r), r.State, r.Message)
		}
	}
	return list
}

// killInGraph kills one worker in the first run, and another one while the dependants run.
func killInGraph(s *stage) {
	s.diamond()
	id := s.submit("")
	s.midway(id)
	s.kill(s.any())
	s.launch()
	s.succeeds(id)
	s.sleep(s.upTo(s.settings.HeartbeatInterval))
	s.kill(s.any())
	s.launch()
	s.wantGraph(id)
}

// wantGraph waits for the four runs of a diamond to succeed.
func (s graphSteps) wantGraph(id string) {
	s.t.Helper()
	if list := s.graphSucceeds(id); len(list) != 1+len(dependants) {
		s.t.Errorf("the graph has %d runs, want %d", len(list), 1+len(dependants))
	}
}

// killAtResolving kills the worker that resolves a dependant whose upstreams have ended.
func killAtResolving(s *stage) {
	s.diamond()
	for _, m := range moments {
		reached := s.breakAt(resolving, m, killWorker)
		id := s.submit("")
		s.dies(s.awaitBreak(reached, m.String()+": a run is resolved"))
		s.launch()
		s.wantGraph(id)
	}
}

// replyLostInGraph: the worker that closes a run or resolves a dependant does not receive the reply.
func replyLostInGraph(s *stage) {
	s.diamond()
	for _, at := range []step{closing, resolving} {
		reached := s.breakAt(at, testdb.AfterCommit, func(*worker) bool { return false })
		id := s.submit("")
		s.awaitBreak(reached, "the reply is lost: "+string(at))
		s.wantGraph(id)
	}
}

// dependantWithoutServers: no server serves the dependant, and the worker that ends the first run dies before it
// resolves the dependant. The dependant waits for the first server that serves it.
func dependantWithoutServers(s *stage) {
	_, err := ops.New(s.c).Tasks().Define(s.t.Context(), "left", dependantSettings(s.settings))
	s.must(err)
	s.must(centertest.RunAfter(s.t.Context(), s.c, "left", runs.After{Upstream: taskType}))
	reached := s.breakAt(closing, testdb.AfterCommit, killWorker)
	id := s.submit("")
	s.dies(s.awaitBreak(reached, "the run is closed"))
	s.succeeds(id)
	s.sleep(2 * time.Second) // two ticks of the other workers
	if n := s.count(`SELECT COUNT(*) FROM schedule_run WHERE task_type = 'left' AND state = ?`,
		runs.Waiting); n != 1 {
		s.t.Errorf("%d runs wait, want 1", n)
	}
	s.variant = graph
	s.launch()
	s.graphSucceeds(id)
}
