package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/proctest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
)

// The problems of docs/outbox.md, one test each.

// An instance loses the database for about the time after which the others judge it dead, while others join and plan.
// None of them works a queue under an epoch that another one has.
func TestInstancesThatDisagreeOnTheDead(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, url string) {
		s := newStage(t, url, nil)
		s.owners = map[grant]string{}
		through, proxy := testdb.Through(t, url)
		a, b, away := s.start(url), s.start(url), s.start(through)
		s.share("three relays start", a, b, away)
		expired := func() int64 {
			return s.number(s.store.bind(`SELECT COUNT(*) FROM schedule_event WHERE kind = 'EXPIRED'
			AND from_server LIKE ?`), fmt.Sprintf("%%:%d:%%", away.PID))
		}
		for _, silence := range []time.Duration{dead * 3 / 4, dead, dead * 5 / 4} {
			from, before := time.Now(), expired()
			proxy.Refuse(true)
			proxy.Cut()
			c, d := s.start(url), s.start(url)
			s.until("the silence has lasted", func() bool { return time.Since(from) >= silence })
			if silence > dead {
				s.until("the others have judged it dead", func() bool { return expired() > before })
			}
			proxy.Refuse(false)
			s.share(fmt.Sprintf("one was silent for %s while two joined", silence), a, b, away, c, d)
			c.Leave()
			d.Leave()
		}
		s.finish()
		s.receiver.check(t)
	})
}

// look checks that the roster has never shown two owners of a queue under one epoch.
func (s *stage) look() {
	s.t.Helper()
	if s.owners == nil {
		return
	}
	rows, err := s.store.db.QueryContext(s.t.Context(),
		`SELECT queue_index, epoch, cur_server FROM schedule_assignment WHERE cur_server IS NOT NULL`)
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var g grant
		var server string
		if err := rows.Scan(&g.queue, &g.epoch, &server); err != nil {
			s.t.Fatal(err)
		}
		if owner, ok := s.owners[g]; ok && owner != server {
			s.t.Fatalf("%+v has two owners: %s and %s", g, owner, server)
		}
		s.owners[g] = server
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
}

// calm has no pauses that look like a death, so that no event is delivered twice because of one. All queues can have a
// call in flight at once.
func calm(s *manager.Settings) {
	s.ThreadNumber, s.BatchTimeout, s.JudgeDeadInterval = queues, time.Minute, time.Minute
}

// A queue is to move while calls of it are in flight. Its owner keeps it until they have ended, and the new one repeats
// none of them.
func TestQueueThatMovesWhileItIsWorked(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, url string) {
		s := newStage(t, url, nil, calm)
		s.receiver.set(func(r *receiver) { r.flaky = 0 })
		a := s.start(url)
		s.share("one relay starts", a)
		release := s.holdAll()
		b := s.start(url)
		s.until("the half of the queues is to move", func() bool {
			return s.number(`SELECT COUNT(*) FROM schedule_assignment WHERE req_server IS NOT NULL`) == queues/2
		})
		s.beats(b, 3)
		if n := s.owned(a); n != queues {
			t.Errorf("the relay owns %d queues while calls of all %d are in flight", n, queues)
		}
		release()
		s.share("the calls have ended", a, b)
		s.withoutRepetition(a, b)
	})
}

// A relay that gets SIGTERM drains. All see that, and its calls end before it hands its queues over.
func TestDrainOnSIGTERM(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, url string) {
		s := newStage(t, url, nil, calm)
		s.receiver.set(func(r *receiver) { r.flaky = 0 })
		a, b := s.start(url), s.start(url)
		s.share("two relays start", a, b)
		release := s.holdAll()
		b.Signal(syscall.SIGTERM)
		s.until("the roster shows that a relay drains", func() bool {
			return !b.Alive() || s.number(s.store.bind(
				`SELECT COUNT(*) FROM schedule_server WHERE state = 'DRAINING' AND pid = ?`), b.PID) == 1
		})
		s.beats(a, 3)
		if n := s.owned(b); n != queues/2 {
			t.Errorf("the relay that drains owns %d queues while calls of %d are in flight", n, queues/2)
		}
		release()
		b.Left()
		s.share("it has left", a)
		s.withoutRepetition(a)
	})
}

// A relay is killed. The others take its queues over when it has been silent for judge_dead_interval, and no sooner.
func TestTakeOverAfterSIGKILL(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, url string) {
		s := newStage(t, url, nil)
		a, b := s.start(url), s.start(url)
		s.share("two relays start", a, b)
		b.Hold()
		s.until("a relay is in a call", b.Held)
		b.Kill()
		s.share("one is killed in a call", a)
		var beat, left time.Time
		err := s.store.db.QueryRowContext(t.Context(), s.store.bind(
			`SELECT heartbeat_time, left_time FROM schedule_server_history WHERE reason = 'EXPIRED' AND pid = ?`), b.PID).
			Scan(&beat, &left)
		if silence := left.Sub(beat); err != nil || silence < dead {
			t.Errorf("the others judged it dead after a silence of %s, want at least %s: %v", silence, dead, err)
		}
		s.finish()
		s.receiver.check(t)
	})
}

// holdAll keeps a call of each queue in flight until the caller calls release.
func (s *stage) holdAll() (release func()) {
	s.t.Helper()
	release = s.receiver.hold()
	s.t.Cleanup(release)
	s.until("a call of each queue is in flight", func() bool { return s.receiver.holds() == queues })
	return release
}

// owned returns the number of queues that a relay owns.
func (s *stage) owned(w *proctest.Process) int64 {
	s.t.Helper()
	return s.number(s.store.bind(`SELECT COUNT(*) FROM schedule_assignment WHERE cur_pid = ?`), w.PID)
}

// beats waits until a relay has sent some more heartbeats: it has had the time to take what is free.
func (s *stage) beats(w *proctest.Process, n int64) {
	s.t.Helper()
	count := func() int64 {
		return s.number(s.store.bind(`SELECT SUM(beat_count) FROM schedule_server WHERE pid = ?`), w.PID)
	}
	from := count()
	s.until("more heartbeats", func() bool { return count() >= from+n })
}

// withoutRepetition ends the play. No event may have come twice.
func (s *stage) withoutRepetition(workers ...*proctest.Process) {
	s.t.Helper()
	s.finish()
	for _, w := range workers {
		w.Leave()
	}
	s.receiver.check(s.t)
	if r := s.receiver; r.repeats+r.late > 0 {
		s.t.Errorf("%d repetitions and %d late calls, want none", r.repeats, r.late)
	}
}
