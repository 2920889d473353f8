//go:build linux

package faults

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// scenario is one fault, or one kind of it.
type scenario struct {
	name    string
	play    func(*stage)
	kinds   []string // databases; nil for PostgreSQL and MariaDB
	quick   bool     // it may be played for each change
	family  string   // of scenarios that have something in common; set by scenarios
	own     bool     // it stops its database
	proxied bool     // it troubles the network
	threads int      // of each worker; 0 for 2
	idle    bool     // there are no items until the scenario is over
	power   power    // of the dealer

	pooled bool                   // a PgBouncer in transaction mode stands between the workers and the database
	guest  bool                   // the workers have a user of their own in the database; wants own
	disk   bool                   // the database, its own, has a disk that can be filled
	slow   bool                   // at the default intervals
	pool   int                    // connections of each worker's dealers; 0 for any number
	review func(*stage, *History) // looks at the history before the checker, and may take out what is not its affair

	judged func(History, []Violation) // is told what the checker found; nil: nobody asks
}

var everywhere = []string{testdb.Postgres, testdb.MySQL, testdb.SQLite}

func scenarios() (list []scenario) {
	families := []struct {
		name string
		list []scenario
	}{
		{"process", processScenarios},
		{"database", databaseScenarios},
		{"network", networkScenarios},
		{"limit", limitScenarios},
		{"pooled", pooledScenarios},
		{"standby", standbyScenarios},
		{"power", powerScenarios},
		{"run", runScenarios},
		{"step", stepScenarios},
		{"trigger", triggerScenarios},
		{"operate", operateScenarios},
	}
	for _, f := range families {
		for _, sc := range f.list {
			sc.family = f.name
			list = append(list, sc)
		}
	}
	return list
}

// TestFaults plays the scenarios that are chosen. Each can be run alone, by its name, and again, by its seed.
func TestFaults(t *testing.T) {
	seed := seed(t)
	list := plays(testdb.Kinds(t))
	names := wanted(t, list, seed)
	for _, p := range list {
		t.Run(p.name(), func(t *testing.T) {
			if !names[p.name()] {
				t.Skip("not chosen; ROTA_FAULTS=all plays it")
			}
			t.Parallel()
			p.run(t, p.kind, seed)
		})
	}
}

func seed(t *testing.T) uint64 {
	text := os.Getenv("ROTA_FAULTS_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("ROTA_FAULTS_SEED: %v", err)
	}
	return n
}

func (sc scenario) run(t *testing.T, kind string, seed uint64) {
	again := "TestFaults/" + kind + "/" + sc.name // whoever runs it
	name := fnv.New64a()
	_, _ = name.Write([]byte(again)) // never fails
	s := &stage{t: t, Rand: rand.New(rand.NewPCG(seed, name.Sum64())), settings: defaults(kind), proxied: sc.proxied, dir: t.TempDir()}
	s.settings.ThreadNumber = cmp.Or(sc.threads, s.settings.ThreadNumber)
	s.pool, s.power, s.review, s.judged, s.backlog = sc.pool, sc.power, sc.review, sc.judged, sc.power.backlog()
	sc.power.settle(&s.settings)
	if sc.slow {
		s.settings.HeartbeatInterval, s.settings.JudgeDeadInterval = 2*time.Second, 10*time.Second
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		t.Logf("again: ROTA_FAULTS=all ROTA_FAULTS_SEED=%d go test -run '^%s$' ./internal/faults", seed, again)
		for _, w := range s.workers {
			t.Logf("worker %d:\n%s", w.pid, w.lastWords(40))
		}
	})
	sc.house(s, kind)
	s.open()
	if sc.guest {
		s.entry = s.invite()
	}
	if sc.idle {
		s.hunger()
	}
	s.start(workers)
	if !sc.idle && !sc.power.runs() {
		s.works(10)
	}
	sc.play(s)
	s.close()
}

// house gives the stage its database.
func (sc scenario) house(s *stage, kind string) {
	s.t.Helper()
	switch {
	case sc.disk:
		s.server = testdb.OwnDisk(s.t)
		s.url = s.server.URL()
	case sc.own:
		s.server = testdb.Own(s.t, kind)
		s.url = s.server.URL()
	default:
		s.url = testdb.URL(s.t, kind)
	}
	s.entry = s.url
	if sc.pooled {
		s.pooler = testdb.Pooled(s.t, s.url)
		s.entry = s.pooler.URL()
	}
	if sc.own && sc.proxied {
		s.url, s.view = testdb.Through(s.t, s.url)
	}
}
