//go:build linux

package faults

import (
	"github.com/dutyrota/rota/internal/testdb"
)

// standbyScenarios have a second PostgreSQL server that replicates the first.
var standbyScenarios = []scenario{
	{name: "routed-to-standby", play: routedToStandby, kinds: pooledKinds, own: true, proxied: true},
}

// routedToStandby: the new connections of a worker lead to a standby, which has all data and refuses writes.
func routedToStandby(s *stage) {
	standby, _ := testdb.Standby(s.t, s.server)
	s.partition(func(p *testdb.Proxy, on bool) {
		to := s.workerURL
		if on {
			to = standby.URL()
		}
		if err := p.Redirect(to); err != nil {
			s.t.Fatal(err)
		}
		p.Cut()
	}, s.any())
}

// switchTo connects the scenario to another server.
func (s *stage) switchTo(server *testdb.Server) {
	s.t.Helper()
	if err := s.view.Redirect(server.URL()); err != nil {
		s.t.Fatal(err)
	}
	s.view.Cut()
	s.until("the other server answers", func() bool { return s.count(`SELECT 1`) == 1 })
}
