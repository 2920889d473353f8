//go:build linux

package faults

import (
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// pooledScenarios play other scenarios with a PgBouncer in transaction mode before the database. One of them restarts
// the PgBouncer.
var pooledScenarios = []scenario{
	{name: "pooled-kill", play: kill, kinds: pooledKinds, pooled: true, quick: true},
	{name: "pooled-pause-before-commit", play: pauseBeforeCommit, kinds: pooledKinds, pooled: true, threads: 1},
	{name: "pooled-rolling-restart", play: rollingRestart, kinds: pooledKinds, pooled: true},
	{name: "pooled-connections-cut", play: connectionsCut, kinds: pooledKinds, pooled: true, proxied: true},
	{name: "pooled-database-restart", play: databaseRestart, kinds: pooledKinds, pooled: true, own: true},
	{name: "pooler-restart", play: poolerRestart, kinds: pooledKinds, pooled: true, own: true},
}

var pooledKinds = []string{testdb.Postgres}

func poolerRestart(s *stage) {
	for _, d := range []time.Duration{0, s.upTo(s.dead(1)), s.dead(3)} {
		from := time.Now()
		if err := s.pooler.Kill(); err != nil {
			s.t.Fatal(err)
		}
		s.sleep(d)
		s.addWindow(nil, Partition, from)
		if err := s.pooler.Start(); err != nil {
			s.t.Fatal(err)
		}
		s.works(20)
	}
}
