// Package centertest is the conformance suite of the roster: what must hold on every database that Rota
// runs on. A new rule of the store is a new case here.
package centertest

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
)

// Run runs all cases against the empty database at url. The cases share it, each with a task type
// of its own.
func Run(t *testing.T, url string) {
	c := Open(t, url, center.Options{})
	cases := map[string]func(*testing.T, *center.Center){
		"define":      testDefine,
		"plan":        testPlan,
		"lock":        testLock,
		"servers":     testServers,
		"heartbeat":   testHeartbeat,
		"release":     testRelease,
		"leave":       testLeave,
		"fence":       Fence,
		"share":       testShareFence,
		"in tx":       testInTx,
		"walk":        testWalk,
		"repartition": testRepartition,
		"named":       testNamedQueues,
		"pause":       testPause,
		"retention":   testRetention,
		"alert":       testAlert,
		"items":       testFailedItems,
		"many items":  testManyFailedItems,
		"cursor":      testCursor,
		"drain":       testDrainServer,
		"forgotten":   func(t *testing.T, _ *center.Center) { testOwnSignExpiry(t, url) },
		"watch":       testWatch,
		"waits":       testWaits,
		"own signs":   func(t *testing.T, _ *center.Center) { testOwnSigns(t, url) },
		"no roster":   testNoRoster,
		"run":         testRuns,
		"sweep":       testSweeps,
		"run ends":    func(t *testing.T, c *center.Center) { testRunEnds(t, c, url) },
		"run queues":  testRunQueues,
		"run graph":   testRunGraphs,
		"schedule":    func(t *testing.T, c *center.Center) { testSchedule(t, c, url) },
		"trigger":     func(t *testing.T, c *center.Center) { testTriggers(t, c, url) },
		"concurrent":  testConcurrent,
		"inspect":     testInspect,
		"inspect run": testInspectRuns,
		"events":      testEvents,
		"apply":       testApply,
		"apply new":   testApplyNew,
		"delete task": testDeleteTask,
		"preview":     testPreview,
		"doctor":      testDoctor,
		"given":       testDoctorSettings,
		"removal":     testDoctorNamed,
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) { f(t, c) })
	}
}

// Open opens a Center that is closed when the test ends.
func Open(t testing.TB, url string, o center.Options) *center.Center {
	t.Helper()
	c, err := center.Open(t.Context(), anydb.URL(url), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
