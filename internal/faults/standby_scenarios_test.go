//go:build linux

package faults

import (
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// standbyScenarios have a second PostgreSQL server that replicates the first.
var standbyScenarios = []scenario{
	{name: "routed-to-standby", play: routedToStandby, kinds: pooledKinds, own: true, proxied: true},
	{
		name: "standby-promoted", play: standbyPromoted, kinds: pooledKinds, own: true, proxied: true,
		review: dropLostGrants,
	},
}

// routedToStandby: the new connections of a worker lead to a standby, which has all data and refuses writes.
func routedToStandby(s *stage) {
	standby, _ := s.standby()
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

// standby starts a standby and waits until it replicates the server.
func (s *stage) standby() (*testdb.Server, *testdb.Proxy) {
	s.t.Helper()
	standby, replication := testdb.Standby(s.t, s.server)
	s.until("the standby replicates the server", func() bool {
		return s.count(`SELECT COUNT(*) FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn IS NOT NULL`) == 1
	})
	return standby, replication
}

// standbyPromoted: the primary dies, and its standby takes over. The standby lacks the last moves of queues and the
// last heartbeats, so that the roster forgets them: see dropLostGrants.
func standbyPromoted(s *stage) {
	standby, replication := s.standby()
	s.works(10)
	from := time.Now()
	replication.Refuse(true)
	replication.Cut()
	s.start(1)
	s.leave(s.workers[s.IntN(workers)])
	s.sleep(s.dead(1))
	s.works(20)
	if err := s.server.Kill(); err != nil {
		s.t.Fatal(err)
	}
	s.switchTo(standby)
	s.exec(`SELECT pg_promote()`)
	s.promoted = time.Now()
	for _, w := range s.workers { // their heartbeats since then are lost
		s.windows = append(s.windows, Window{w.pid, Partition, from, s.promoted})
		if err := w.proxy.Redirect(standby.URL()); err != nil {
			s.t.Fatal(err)
		}
		w.proxy.Cut()
	}
	s.workerURL = standby.URL()
	s.works(20)
	s.awaitBalance()
	s.start(1)
	s.works(20)
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

// dropLostGrants removes the calls under grants that the promoted server does not have. A worker may act on such a
// grant until its trust ends, and the fence rejects its effects. An owner with a valid grant may have lost items in
// flight: their updates find no row.
func dropLostGrants(s *stage, h *History) {
	lost := 0
	h.Spans = slices.DeleteFunc(h.Spans, func(p Span) bool {
		known := slices.ContainsFunc(h.Events, func(e Event) bool {
			return changesOwner(e.Kind) && e.Queue == p.Queue && e.Epoch == p.Epoch && e.To == p.Server
		})
		if !known && p.Begin.After(s.promoted.Add(h.Trust+reaction)) && !(&checker{History: *h}).waking(p) {
			s.t.Errorf("began under a grant that was lost when a standby was promoted at %s: %s", clock(s.promoted), p)
		}
		if !known {
			lost++
		}
		return !known || p.Begin.Before(s.promoted)
	})
	for _, e := range h.Effects {
		if !slices.ContainsFunc(h.Items, func(i Item) bool { return i.ID == e.Item }) {
			h.Items = append(h.Items, Item{e.Item, true, 1}) // Check counts its effects
		}
	}
	if lost == 0 {
		s.t.Error("the standby lacks no grant: the scenario proves nothing")
	}
}
