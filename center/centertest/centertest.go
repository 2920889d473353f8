package centertest

import (
	"maps"
	"slices"
	"testing"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/engines"
	"github.com/dutyrota/rota/internal/racetest"
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
func Run(t *testing.T, url string) {
	c := Open(t, url, center.Options{})
	run(t, c, url, 0)
	t.Attr(engines.EngineAttr, Engine(t, c))
}

// RunOnNodes does the same where each session may be on another node of a cluster. The cases that assert a lock between
// two sessions check there what [locksReach] says.
func RunOnNodes(t *testing.T, url string) {
	c := Open(t, url, center.Options{})
	onNodes.Store(c, true)
	defer onNodes.Delete(c)
	run(t, c, url, 0)
}

// Variant skips a run of the suite over other connections, or with another clock, in short tests and under the race
// detector: what a change breaks, [Run] on the plain databases tells first.
func Variant(t *testing.T) {
	t.Helper()
	racetest.Skip(t)
	if testing.Short() {
		t.Skip("make check runs the suite also over other connections")
	}
}

// RunAbout runs the cases about one subject. It serves databases of a kind that [Run] also covers, but with another
// clock or behind a connection pooler.
func RunAbout(t *testing.T, url string, s Subject) { run(t, Open(t, url, center.Options{}), url, s) }

// RunPart runs the cases of one of several parts. Each part needs a database of its own. The cases mostly wait, so that
// parts that run at the same time take little longer than one.
func RunPart(t *testing.T, url string, part, parts int) {
	c, names := Open(t, url, center.Options{}), slices.Sorted(maps.Keys(groups))
	for i := part; i < len(names); i += parts {
		groups[names[i]].test(t, names[i], c, url)
	}
	t.Attr(engines.EngineAttr, Engine(t, c))
}

func run(t *testing.T, c *center.Center, url string, about Subject) {
	for name, g := range groups {
		if g.about&about == about {
			g.test(t, name, c, url)
		}
	}
}

func (g group) test(t *testing.T, name string, c *center.Center, url string) {
	t.Run(name, func(t *testing.T) {
		if g.runURL != nil {
			g.runURL(t, c, url)
			return
		}
		g.run(t, c)
	})
}

// Database returns the database at a URL. The tests of another driver replace it before they run the suite.
var Database = anydb.URL

// Open opens a Center that is closed when the test ends.
func Open(t testing.TB, url string, o center.Options) *center.Center {
	t.Helper()
	c, err := center.Open(t.Context(), Database(url), o)
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
