// Package centertest is the conformance suite of the roster: what must hold on every database that Rota
// runs on. A new rule of the store is a new case here.
package centertest

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
)

// A Subject is what some cases depend on beside the rules of the store.
type Subject uint

// The subjects of cases. A case without one runs on each kind of database only.
const (
	Clock   Subject = 1 << iota // the database's clock decides what is due, late or dead
	Session                     // statements of one transaction rely on each other: locks, fences, heartbeats
)

// Run runs all cases against the empty database at url. The cases share it, each with a task type
// of its own.
func Run(t *testing.T, url string) { run(t, url, 0) }

// RunAbout runs the cases about one subject, for a database of a kind that [Run] is run on, too, but with
// another clock or behind a connection pooler.
func RunAbout(t *testing.T, url string, s Subject) { run(t, url, s) }

func run(t *testing.T, url string, about Subject) {
	c := Open(t, url, center.Options{})
	alone := func(f func(*testing.T, string)) func(*testing.T, *center.Center) {
		return func(t *testing.T, _ *center.Center) { f(t, url) }
	}
	with := func(f func(*testing.T, *center.Center, string)) func(*testing.T, *center.Center) {
		return func(t *testing.T, c *center.Center) { f(t, c, url) }
	}
	cases := map[string]struct {
		f     func(*testing.T, *center.Center)
		about Subject
	}{
		"define":      {testDefine, Session},
		"plan":        {testPlan, Session},
		"lock":        {testLock, Clock | Session},
		"servers":     {testServers, Clock},
		"heartbeat":   {testHeartbeat, Clock | Session},
		"release":     {testRelease, Session},
		"leave":       {testLeave, Session},
		"fence":       {Fence, Session},
		"share":       {testShareFence, Session},
		"in tx":       {testInTx, Session},
		"walk":        {testWalk, Clock},
		"repartition": {testRepartition, 0},
		"named":       {testNamedQueues, Clock},
		"pause":       {testPause, 0},
		"retention":   {testRetention, Clock},
		"alert":       {testAlert, Clock},
		"items":       {testFailedItems, Clock},
		"many items":  {testManyFailedItems, Clock},
		"cursor":      {testCursor, Session},
		"drain":       {testDrainServer, Session},
		"forgotten":   {alone(testOwnSignExpiry), Clock},
		"watch":       {testWatch, Clock},
		"waits":       {testWaits, 0},
		"own signs":   {alone(testOwnSigns), 0},
		"no roster":   {testNoRoster, Session},
		"run":         {testRuns, Clock},
		"sweep":       {testSweeps, Clock | Session},
		"run ends":    {with(testRunEnds), Clock},
		"run queues":  {testRunQueues, 0},
		"run graph":   {testRunGraphs, 0},
		"schedule":    {with(testSchedule), Clock},
		"trigger":     {with(testTriggers), Clock},
		"concurrent":  {testConcurrent, Session},
		"inspect":     {testInspect, Clock},
		"inspect run": {testInspectRuns, Clock},
		"events":      {testEvents, Clock},
		"apply":       {testApply, 0},
		"apply new":   {testApplyNew, 0},
		"delete task": {testDeleteTask, Clock},
		"preview":     {testPreview, Clock},
		"doctor":      {testDoctor, Clock | Session},
		"given":       {testDoctorSettings, 0},
		"removal":     {testDoctorNamed, 0},
	}
	for name, test := range cases {
		if test.about&about == about {
			t.Run(name, func(t *testing.T) { test.f(t, c) })
		}
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
