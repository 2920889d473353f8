//go:build linux

package faults

import (
	"slices"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// lostScenarios make the database lose history that it had acknowledged (H7, H8). A worker notices it, and from then on
// no epoch has two owners, in the history that is left and in the one that is lost. The notes of the workers have the
// epochs of both.
var lostScenarios = []scenario{
	{name: "backup-restored", play: backupRestored, own: true, review: reviewLoss},
	{name: "standby-promoted", play: standbyPromoted, kinds: pooledKinds, own: true, proxied: true, review: reviewLoss},
	{name: "split-brain", play: splitBrain, kinds: pooledKinds, own: true, proxied: true, review: reviewLoss},
}

// backupRestored: an operator restores a backup while the workers run. Since the backup, a worker has joined and
// another one has left.
func backupRestored(s *stage) {
	s.must(s.server.Stop())
	s.must(s.server.Save())
	from := time.Now()
	s.must(s.server.Start())
	s.works(10)
	s.moveQueues()
	s.must(s.server.Kill())
	s.must(s.server.Restore())
	s.must(s.server.Start())
	s.fallsBack(from)
}

// standbyPromoted: the primary dies under load, and its standby takes over, which lags. It lacks the last moves of
// queues and the last heartbeats.
func standbyPromoted(s *stage) {
	standby, from := s.lag()
	s.must(s.server.Kill())
	s.promote(standby)
	for _, w := range s.workers {
		s.lead(w, standby)
	}
	s.workerURL = standby.URL()
	s.fallsBack(from)
}

// splitBrain: the standby is promoted while the primary lives. For a time one worker works with the standby, and the
// others with the primary. Then the primary dies, and all work with the standby.
func splitBrain(s *stage) {
	standby, from := s.lag()
	live := s.live()
	s.promote(standby)
	s.lead(live[0], standby)
	s.works(20)
	s.sleep(s.dead(2))
	s.must(s.server.Kill())
	for _, w := range live[1:] {
		s.lead(w, standby)
	}
	s.workerURL = standby.URL()
	s.fallsBack(from)
}

// lag makes a standby that lacks the last moves and heartbeats. It returns the time since which it lacks them.
func (s *stage) lag() (*testdb.Server, time.Time) {
	s.t.Helper()
	standby, replication := testdb.Standby(s.t, s.server)
	s.works(10)
	from := time.Now()
	replication.Refuse(true)
	replication.Cut()
	s.moveQueues()
	return standby, from
}

// moveQueues makes a worker join and another one leave.
func (s *stage) moveQueues() {
	s.t.Helper()
	s.start(1)
	s.leave(s.live()[s.IntN(workers)])
	s.sleep(s.dead(1))
	s.works(20)
}

// promote makes a standby accept writes, and connects the scenario to it.
func (s *stage) promote(standby *testdb.Server) {
	s.t.Helper()
	s.switchTo(standby)
	s.exec(`SELECT pg_promote()`)
}

// lead connects a worker to another server.
func (s *stage) lead(w *worker, to *testdb.Server) {
	s.t.Helper()
	s.must(w.proxy.Redirect(to.URL()))
	w.proxy.Cut()
}

// fallsBack waits until the workers have noticed that the history since a moment is lost, and go on.
func (s *stage) fallsBack(from time.Time) {
	s.t.Helper()
	s.fellBack = time.Now()
	s.until("the alert tells of the loss", func() bool {
		return s.count(`SELECT COUNT(*) FROM schedule_event WHERE kind = ?`, ops.EventHistory) > 0 &&
			s.count(`SELECT COUNT(*) FROM schedule_event WHERE alert = ?`, condition.HistoryLost.Name) > 0
	})
	found, err := doctor.Diagnose(s.t.Context(), ops.New(s.c), taskType)
	s.must(err)
	if !slices.ContainsFunc(found, func(c condition.Condition) bool { return c.Kind == condition.HistoryLost.Name }) {
		s.t.Errorf("the doctor does not report the loss: %v", found)
	}
	s.works(20)
	s.awaitBalance()
	for _, w := range s.workers { // their heartbeats since then are lost, and former sessions are back
		s.addWindow(w, Silence, from)
	}
	s.start(1)
	s.leave(s.live()[0])
	s.works(20)
}

// reviewLoss checks that no epoch has two owners once the epochs have risen for the last time. Then it removes the
// calls under epochs from before. A worker may act on a lost grant until its trust ends, and the fence rejects its
// effects. An owner with a valid grant may have lost items in flight: their updates find no row.
func reviewLoss(s *stage, h *History) {
	var risen Event
	c := &checker{History: *h}
	c.index()
	for _, e := range h.Events {
		if raisesAll(e) {
			risen = e
		}
	}
	if risen.Epoch == 0 {
		s.t.Error("the epochs have not risen")
	}
	end := risen.At
	if s.fellBack.After(end) {
		end = s.fellBack
	}
	end = end.Add(h.Trust + reaction)
	late := func(p Span) bool { return p.Begin.After(end) && !c.waking(p) }
	for _, text := range usedTwice(h.Spans, late) {
		s.t.Error(text)
	}
	lost := 0
	h.Spans = slices.DeleteFunc(h.Spans, func(p Span) bool {
		if p.Epoch >= risen.Epoch {
			return false
		}
		if late(p) {
			s.t.Errorf("began under an epoch from before the loss at %s: %s", clock(s.fellBack), p)
		}
		if !slices.ContainsFunc(c.grants[p.Queue], func(e Event) bool { return e.Epoch == p.Epoch && e.To == p.Server }) {
			lost++
		}
		return true
	})
	for _, e := range h.Effects {
		if !slices.ContainsFunc(h.Items, func(i Item) bool { return i.ID == e.Item }) {
			h.Items = append(h.Items, Item{e.Item, true, 1}) // Check counts its effects
		}
	}
	if lost == 0 {
		s.t.Error("the database lacks no grant: the scenario proves nothing")
	}
}
