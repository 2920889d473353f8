//go:build linux

package faults

import (
	"slices"
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// standbyScenarios have a second PostgreSQL that follows the first.
var standbyScenarios = []scenario{
	{name: "routed-to-standby", play: routedToStandby, kinds: pooledKinds, own: true, proxied: true},
	{name: "standby-promoted", play: standbyPromoted, kinds: pooledKinds, own: true, proxied: true, review: lostAndFound},
}

// routedToStandby: a worker's new connections lead to a server that knows everything and writes nothing.
func routedToStandby(s *stage) {
	standby, _ := s.standby()
	s.partition(func(p *testdb.Proxy, on bool) {
		to := s.entry
		if on {
			to = standby.URL()
		}
		if err := p.Redirect(to); err != nil {
			s.t.Fatal(err)
		}
		p.Cut()
	}, s.any())
}

// standby starts a standby and waits until it follows.
func (s *stage) standby() (*testdb.Server, *testdb.Proxy) {
	s.t.Helper()
	standby, replication := testdb.Standby(s.t, s.server)
	s.until("the standby follows", func() bool {
		return s.count(`SELECT COUNT(*) FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn IS NOT NULL`) == 1
	})
	return standby, replication
}

// standbyPromoted: the primary dies and a standby takes its place that has not seen the last moves of queues,
// nor the last heartbeats. What it has not seen has not happened: see lostAndFound.
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
	s.follow(standby)
	s.exec(`SELECT pg_promote()`)
	s.promoted = time.Now()
	for _, w := range s.workers { // their heartbeats of this time are lost
		s.windows = append(s.windows, Window{w.pid, Partition, from, s.promoted})
		if err := w.proxy.Redirect(standby.URL()); err != nil {
			s.t.Fatal(err)
		}
		w.proxy.Cut()
	}
	s.entry = standby.URL()
	s.works(20)
	s.settle()
	s.start(1)
	s.works(20)
}

// follow makes another server the one that the scenario asks.
func (s *stage) follow(server *testdb.Server) {
	s.t.Helper()
	if err := s.view.Redirect(server.URL()); err != nil {
		s.t.Fatal(err)
	}
	s.view.Cut()
	s.until("the other server answers", func() bool { return s.count(`SELECT 1`) == 1 })
}

// lostAndFound takes out the calls under grants that the promoted server has never seen. A worker may believe
// in them until its trust in the old server is over, and the fence keeps them from having an effect. Items that
// the server has never seen may be in hand of an owner that it knows; there is nothing left of them to change.
func lostAndFound(s *stage, h *History) {
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
			h.Items = append(h.Items, Item{e.Item, true, 1}) // the checker counts its effects
		}
	}
	if lost == 0 {
		s.t.Error("the standby has lost no grant: this proves nothing")
	}
}
