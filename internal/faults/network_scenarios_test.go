//go:build linux

package faults

import (
	"time"

	"github.com/dutyrota/rota/internal/testdb"
)

// networkScenarios are faults of the network between the workers and the database.
var networkScenarios = []scenario{
	{name: "connections-cut", play: connectionsCut, proxied: true, quick: true},
	{name: "replies-lost-at-random", play: repliesLostAtRandom, proxied: true, quick: true},
	{name: "commit-under-way", play: commitUnderWay, proxied: true, inTx: true, quick: true},
	{name: "delays", play: delays, proxied: true},
	{name: "kill-at-a-distance", play: killAtADistance, proxied: true},
	{name: "partition-of-one", play: partitionOfOne, proxied: true, quick: true},
	{name: "partition-of-most", play: partitionOfMost, proxied: true},
	{name: "partition-of-all", play: partitionOfAll, proxied: true, quick: true},
	{name: "trickle-and-resets", play: trickleAndResets, proxied: true},
	// many idle connections
	{name: "resets-before-the-end", play: resetsBeforeTheEnd, proxied: true, quick: true, threads: 8},
	{name: "refused-one", play: refusedOne, proxied: true},
	{name: "replies-lost-by-one", play: repliesLostByOne, proxied: true},
	{name: "replies-lost-by-all", play: repliesLostByAll, proxied: true},
}

func connectionsCut(s *stage) {
	for range 20 {
		for _, w := range s.workers {
			if s.IntN(3) > 0 {
				w.proxy.Cut()
			}
		}
		s.sleep(s.upTo(s.settings.HeartbeatInterval / 2))
	}
	s.works(20)
}

// repliesLostAtRandom: statements of all kinds, commits included, reach the database, and their replies are lost.
func repliesLostAtRandom(s *stage) {
	s.loseReplies(20)
	s.works(20)
}

// commitUnderWay: a worker loses its connection before its COMMIT has reached the database, which commits later. A
// worker that selects meanwhile gets the items once more.
func commitUnderWay(s *stage) {
	for range 5 {
		late := s.upTo(s.settings.JudgeDeadInterval / 2)
		reached := s.breakAt(`INSERT INTO history`, testdb.CommitUnderWay, func(*worker) (pass bool) {
			time.Sleep(late)
			return true
		})
		s.awaitBreak(reached, "a worker commits")
		s.works(5)
	}
}

func (s faultSteps) loseReplies(times int) {
	for range times {
		w := s.any()
		w.proxy.LoseReplies(true)
		s.sleep(s.upTo(s.settings.HeartbeatInterval / 5))
		w.proxy.Cut()
		w.proxy.LoseReplies(false)
		s.sleep(s.upTo(s.settings.HeartbeatInterval / 2))
	}
}

func delays(s *stage) {
	for range 10 {
		for _, w := range s.workers {
			w.proxy.Delay(s.upTo(s.settings.HeartbeatInterval / 6))
		}
		s.sleep(s.upTo(s.dead(0.5)))
	}
	for _, w := range s.workers {
		w.proxy.Delay(0)
	}
	s.works(20)
}

// trickleAndResets: data arrives in small pieces, and connections break between the pieces.
func trickleAndResets(s *stage) {
	for range 20 {
		for _, w := range s.workers {
			w.proxy.Trickle(64 + s.IntN(192))
			if s.IntN(3) == 0 {
				w.proxy.Reset()
			}
		}
		s.sleep(s.upTo(s.settings.HeartbeatInterval / 2))
	}
	for _, w := range s.workers {
		w.proxy.Trickle(0)
	}
	s.works(20)
}

// resetsBeforeTheEnd: while a worker rests, its idle connections are reset, as a firewall does it. Then it leaves,
// hands everything over, and ends without an error, as close demands of all workers.
func resetsBeforeTheEnd(s *stage) {
	s.stopSupply()
	s.until("all items are done", func() bool { return s.items(false) == 0 })
	for _, w := range s.live()[1:] {
		w.proxy.Reset()
		s.leave(w)
		if s.count(`SELECT COUNT(*) FROM schedule_assignment WHERE cur_pid = ?`, w.PID) != 0 {
			s.t.Errorf("worker %d has left, and owns queues", w.PID)
		}
		s.awaitBalance()
	}
}

// killAtADistance: each round trip takes a fifteenth of the heartbeat interval: 133 ms if the interval is 2 s.
// Heartbeats arrive in time. A take-over needs more round trips, and must succeed, too.
func killAtADistance(s *stage) {
	for _, w := range s.workers {
		w.proxy.Delay(s.settings.HeartbeatInterval / 30)
	}
	w := s.any()
	s.kill(w)
	s.awaitExpiry(w, w.Ended)
	s.awaitBalance()
	s.works(20)
}

func partitionOfOne(s *stage) { s.partition((*testdb.Proxy).Swallow, s.any()) }

func repliesLostByOne(s *stage) { s.partition((*testdb.Proxy).LoseReplies, s.any()) }

func refusedOne(s *stage) {
	s.partition(func(p *testdb.Proxy, on bool) {
		p.Refuse(on)
		p.Cut()
	}, s.any())
}

// partition separates a worker from the database until the others own its queues, and for some time more.
func (s faultSteps) partition(trouble func(*testdb.Proxy, bool), w *worker) {
	s.t.Helper()
	from := time.Now()
	trouble(w.proxy, true)
	s.awaitExpiry(w, from)
	s.outlast(from)
	s.works(20)
	s.heal(trouble, w)
	s.addWindow(w, Partition, from)
	s.awaitBalance()
	s.works(20)
}

// heal ends the trouble. Lost packets stay lost, so that the open connections cannot continue. The proxy cuts them.
func (faultSteps) heal(trouble func(*testdb.Proxy, bool), w *worker) {
	trouble(w.proxy, false)
	w.proxy.Cut()
}

// partitionOfMost: only one worker reaches the database. It takes over all queues.
func partitionOfMost(s *stage) {
	from := time.Now()
	for _, w := range s.workers[1:] {
		w.proxy.Swallow(true)
	}
	for _, w := range s.workers[1:] {
		s.awaitExpiry(w, from)
	}
	s.outlast(from)
	s.works(20)
	for _, w := range s.workers[1:] {
		s.heal((*testdb.Proxy).Swallow, w)
		s.addWindow(w, Partition, from)
	}
	s.awaitBalance()
	s.works(20)
}

func partitionOfAll(s *stage) { s.partitionAll((*testdb.Proxy).Swallow) }

func repliesLostByAll(s *stage) { s.partitionAll((*testdb.Proxy).LoseReplies) }

// partitionAll separates all workers from the database until none of them trusts its ownership. One worker reconnects
// first. For two of its heartbeats it is alone, and the rows of the other workers look expired. It must not expire them
// before it has watched them for judge_dead_interval. After that it may: a busy machine can keep them from
// reconnecting.
func (s faultSteps) partitionAll(trouble func(*testdb.Proxy, bool)) {
	s.t.Helper()
	from := time.Now()
	for _, w := range s.workers {
		trouble(w.proxy, true)
	}
	s.sleep(s.dead(3))
	s.addWindow(nil, Partition, from)
	first, returned := s.any(), time.Now()
	s.heal(trouble, first)
	s.sleep(2 * s.settings.HeartbeatInterval)
	for _, w := range s.workers {
		if w != first {
			s.heal(trouble, w)
		}
	}
	s.works(20)
	for _, w := range s.workers {
		if w != first {
			s.addWindow(w, Silence, returned.Add(s.settings.JudgeDeadInterval))
		}
	}
}
