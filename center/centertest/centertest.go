// Package centertest is the conformance suite of the roster. Its cases must hold on every database that Rota
// supports. A new rule of the store needs a new case here.
package centertest

import (
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
)

// A Subject is something outside the store that some cases depend on.
type Subject uint

// The subjects of cases. [Run] runs every case. [RunAbout] leaves out the cases without its subject.
const (
	Clock   Subject = 1 << iota // the database's clock decides what is due, overdue or expired
	Session                     // statements of one transaction rely on each other: locks, fences, heartbeats
)

// Run runs all cases against the empty database at url. The cases share the database, and each defines its own
// task type.
func Run(t *testing.T, url string) { run(t, url, 0) }

// RunAbout runs the cases about one subject. It serves databases of a kind that [Run] also covers, but with another
// clock or behind a connection pooler.
func RunAbout(t *testing.T, url string, s Subject) { run(t, url, s) }

func run(t *testing.T, url string, about Subject) {
	c := Open(t, url, center.Options{})
	urlOnly := func(f func(*testing.T, string)) func(*testing.T, *center.Center) {
		return func(t *testing.T, _ *center.Center) { f(t, url) }
	}
	withURL := func(f func(*testing.T, *center.Center, string)) func(*testing.T, *center.Center) {
		return func(t *testing.T, c *center.Center) { f(t, c, url) }
	}
	cases := map[string]struct {
		f     func(*testing.T, *center.Center)
		about Subject
	}{
		"define":      {testDefine, Session},
		"rebalance":   {testPlan, Session},
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
		"expire sign": {urlOnly(testOwnSignExpiry), Clock},
		"watch":       {testWatch, Clock},
		"pending":     {testPendingHandovers, 0},
		"own signs":   {urlOnly(testOwnSigns), 0},
		"no roster":   {testNoRoster, Session},
		"run":         {testRuns, Clock},
		"sweep":       {testSweeps, Clock | Session},
		"run ends":    {withURL(testRunEnds), Clock},
		"run queues":  {testRunQueues, 0},
		"run graph":   {testRunGraphs, 0},
		"schedule":    {withURL(testSchedule), Clock},
		"trigger":     {withURL(testTriggers), Clock},
		"concurrent":  {testConcurrent, Session},
		"inspect":     {testInspect, Clock},
		"inspect run": {testInspectRuns, Clock},
		"events":      {testEvents, Clock},
		"apply":       {testApply, 0},
		"apply new":   {testApplyNew, 0},
		"delete task": {testDeleteTask, Clock},
		"preview":     {testPreview, Clock},
		"doctor":      {testDiagnose, Clock | Session},
		"given":       {testDiagnoseSettings, 0},
		"removal":     {testDiagnoseRemoval, 0},
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
