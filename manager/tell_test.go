package manager_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/manager"
)

// X9: a server that a release has given a queue starts at once, and not with its next poll. If the hint is lost, it
// starts with the next poll.
func TestNewOwnerIsTold(t *testing.T) {
	for name, lost := range map[string]bool{"told": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(cl *cluster) {
				cl.start("a", nil, fast)
				time.Sleep(5*time.Second + 300*time.Millisecond) // so that its heartbeats are not those of a
				b := cl.start("b", nil, fast)
				cl.c.Roster().OnGiven = func(servers ...string) {
					if !lost {
						manager.Receive(b.Manager, center.Hint{Servers: servers})
					}
				}
				time.Sleep(10 * time.Second)
				gap := cl.first["b"].Sub(cl.firstRelease())
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
			s.Queues, s.HeartbeatInterval, s.JudgeDeadInterval = 4, 30*time.Second, 5*time.Minute
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
				return // they move half a minute later
			}
			until(t, "the second server has two queues", owns(b, 2))
			until(t, "the first server has two queues", owns(a, 2))
			a.stop()
			if err := <-a.ended; err != nil {
				t.Error(err)
			}
			until(t, "the second server has all queues", owns(b, 4))
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("the moves took %s, with heartbeats %s apart", took, s.HeartbeatInterval)
			}
			b.stop()
			if err := <-b.ended; err != nil {
				t.Error(err)
			}
		})
	}
}
