package manager_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/ops/doctor"
)

// X9: a server that a release has given a queue starts at once, and not with its next poll. If the hint is lost, it
// starts with the next poll.
func TestNewOwnerIsTold(t *testing.T) {
	for name, lost := range map[string]bool{"told": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(cl *cluster) {
				var hears atomic.Pointer[manager.Manager]
				cl.c.Roster().OnGiven = func(servers ...string) {
					if m := hears.Load(); m != nil && !lost {
						manager.Receive(m, center.Hint{Servers: servers})
					}
				}
				cl.start("a", nil, fast)
				time.Sleep(5*time.Second + 300*time.Millisecond) // so that its heartbeats are not those of a
				hears.Store(cl.start("b", nil, fast).Manager)
				time.Sleep(10 * time.Second)
				gap := cl.firstBegan("b").Sub(cl.firstRelease())
				if told := gap < time.Millisecond; told == lost || gap > 201*time.Millisecond {
					cl.Errorf("the new owner started %s after the release", gap)
				}
			})
		})
	}
}

// X9 H4: on PostgreSQL the requesters and the owners of a plan are told, so that queues move long before the next
// heartbeats: when a server joins, and when one leaves. Without hints they do not.
func TestMovesDoNotWaitForHeartbeats(t *testing.T) {
	for name, noHints := range map[string]bool{"hints": false, "none": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testdb.URL(t, testdb.Postgres)
			c, err := center.Open(t.Context(), anydb.URL(url), center.Options{Schema: center.SchemaCreate})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			s := quick
			s.Queues, s.HeartbeatInterval, s.JudgeDeadInterval = 4, 5*time.Minute, 25*time.Minute
			start := func() *configured {
				d := &mailbox{done: map[int]time.Time{}}
				return startConfigured(t, url, manager.Config{Grace: time.Second, NoHints: noHints}, d, s)
			}
			owns := func(p *configured, n int) func() bool {
				return func() bool { return p.m.Status()[0].Queues == n }
			}
			a := start()
			until(t, "the first server has all queues and is quiet", func() bool {
				st := a.m.Status()[0]
				return st.Queues == 4 && st.HeartbeatAge > time.Second && st.Hears != noHints
			})
			began := time.Now()
			b := start()
			if noHints {
				time.Sleep(5 * time.Second)
				if !owns(a, 4)() {
					t.Error("queues have moved before a heartbeat, without hints")
				}
				return // they move minutes later
			}
			until(t, "the second server has two queues", owns(b, 2))
			until(t, "the first server has two queues", owns(a, 2))
			a.stop()
			if err := <-a.ended; err != nil {
				t.Error(err)
			}
			until(t, "the second server has all queues", owns(b, 4))
			if took := time.Since(began); took > s.HeartbeatInterval/2 {
				t.Errorf("the moves took %s, with heartbeats %s apart", took, s.HeartbeatInterval)
			}
			b.stop()
			if err := <-b.ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// X9: a process that should hear hints and does not for a minute raises one alert, which the doctor has as a note until
// hints arrive again. A short loss, and a pooler that passes none on, raise none.
func TestDeafProcessRaisesAnAlert(t *testing.T) {
	racetest.Defer(t)
	inBubble(t, func(cl *cluster) {
		alerts := new(alertLog)
		w := cl.serveAlerted(alerts, &mailbox{done: map[int]time.Time{}}, manager.Settings{Queues: 2})
		kinds := func() (list []string) {
			found, err := doctor.Diagnose(cl.Context(), ops.New(cl.c), "settle")
			if err != nil {
				cl.Fatal(err)
			}
			for _, c := range found {
				if c.Kind == condition.NoHints.Name && c.Status == condition.Note {
					list = append(list, c.Kind)
				}
			}
			return list
		}
		manager.HearingChanged(w.Manager, center.ErrNoHints)
		time.Sleep(time.Hour)
		manager.HearingChanged(w.Manager, errors.New("connect to listen: no free connection"))
		time.Sleep(50 * time.Second)
		manager.HearingChanged(w.Manager, nil)
		time.Sleep(time.Minute)
		if got := alerts.kinds(); len(got) > 0 || len(kinds()) > 0 {
			cl.Fatalf("alerts %v, want none", got)
		}
		for range 10 {
			manager.HearingChanged(w.Manager, errors.New("connect to listen: no free connection"))
			time.Sleep(time.Minute)
		}
		if got := alerts.kinds(); !slices.Equal(got, []string{condition.NoHints.Name}) || len(kinds()) != 1 {
			cl.Errorf("alerts %v and findings %v, want one each", got, kinds())
		}
		manager.HearingChanged(w.Manager, nil)
		time.Sleep(time.Minute)
		if got := kinds(); len(got) > 0 {
			cl.Errorf("findings %v a minute after hints arrive again", got)
		}
	})
}

// X9: a process that hears hints polls the queues of a hinted task type twice a minute. When it becomes deaf it looks at
// once, and from then on as often as without hints.
func TestHintedQueuesOfADeafProcess(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		d := &mailbox{done: map[int]time.Time{}}
		w := cl.serveAlerted(new(alertLog), d, manager.Settings{Queues: 2, Hinted: true})
		manager.HearingChanged(w.Manager, nil)
		time.Sleep(70 * time.Second)
		d.put(1)
		time.Sleep(2 * time.Second)
		if !d.doneAt(1).IsZero() {
			cl.Error("a queue is polled as without hints")
		}
		manager.HearingChanged(w.Manager, errors.New("connect to listen: no free connection"))
		time.Sleep(100 * time.Millisecond)
		if d.doneAt(1).IsZero() {
			cl.Error("a process that becomes deaf does not look")
		}
		time.Sleep(time.Minute)
		d.put(3)
		time.Sleep(2 * time.Second)
		if d.doneAt(3).IsZero() {
			cl.Error("a deaf process polls as if it heard hints")
		}
	})
}
