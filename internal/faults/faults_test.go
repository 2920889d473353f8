//go:build linux

package faults

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
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
	always  bool     // it belongs to the short form
	own     bool     // it stops its database
	proxied bool     // it troubles the network
	threads int      // of each worker; 0 for 2
	idle    bool     // there are no items until the scenario is over
}

var everywhere = []string{testdb.Postgres, testdb.MySQL, testdb.SQLite}

func scenarios() []scenario {
	return slices.Concat(processScenarios, databaseScenarios, networkScenarios)
}

// TestFaults plays the scenarios. Each can be run alone, by its name, and again, by its seed.
func TestFaults(t *testing.T) {
	seed := seed(t)
	for _, kind := range testdb.Kinds(t) {
		for _, sc := range scenarios() {
			if sc.kinds == nil && kind == testdb.SQLite || sc.kinds != nil && !slices.Contains(sc.kinds, kind) {
				continue
			}
			t.Run(kind+"/"+sc.name, func(t *testing.T) {
				if !sc.always && os.Getenv("ROTA_FAULTS") != "all" {
					t.Skip("only with ROTA_FAULTS=all")
				}
				t.Parallel()
				sc.run(t, kind, seed)
			})
		}
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
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name())) // never fails
	s := &stage{t: t, Rand: rand.New(rand.NewPCG(seed, name.Sum64())), settings: defaults(kind), proxied: sc.proxied, dir: t.TempDir()}
	s.settings.ThreadNumber = cmp.Or(sc.threads, s.settings.ThreadNumber)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		t.Logf("again: ROTA_FAULTS=all ROTA_FAULTS_SEED=%d go test -run '^%s$' ./internal/faults", seed, t.Name())
		for _, w := range s.workers {
			t.Logf("worker %d:\n%s", w.pid, w.lastWords(40))
		}
	})
	if sc.own {
		s.server = testdb.Own(t, kind)
		s.url = s.server.URL()
	} else {
		s.url = testdb.URL(t, kind)
	}
	s.open()
	if sc.idle {
		s.hunger()
	}
	s.start(workers)
	if !sc.idle {
		s.works(10)
	}
	sc.play(s)
	s.close()
}
