package manager

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// S5: the row follows the lease when judge_dead_interval falls, and the lease the row when it rises.
func TestAnnouncement(t *testing.T) {
	r := newRegistration("host", &Settings{HeartbeatInterval: 2 * time.Second, JudgeDeadInterval: 10 * time.Second}, func() {})
	defer r.lease.stop()
	beat := func(token string, wantRow, wantLease time.Duration) {
		t.Helper()
		if row := r.announce(token); row != wantRow {
			t.Errorf("heartbeat %s writes %s, want %s", token, row, wantRow)
		}
		r.renew(token, time.Now(), roster.HeartbeatReply{})
		if got := r.lease.intervals().judgeDead; got != wantLease {
			t.Errorf("after heartbeat %s the lease follows %s, want %s", token, got, wantLease)
		}
	}
	want := func(judgeDead time.Duration) { r.wanted.Store(&intervals{judgeDead / 5, judgeDead}) }
	beat("a", 10*time.Second, 10*time.Second)
	want(time.Minute)
	if got := r.lease.intervals().judgeDead; got != 10*time.Second {
		t.Errorf("the lease follows %s before a heartbeat has announced it", got)
	}
	beat("b", time.Minute, time.Minute)
	want(20 * time.Second)
	beat("c", time.Minute, 20*time.Second)
	if row := r.announce("d"); row != 20*time.Second {
		t.Errorf("the heartbeat after that writes %s", row)
	}
	want(time.Hour)
	beat("d", 20*time.Second, 20*time.Second) // it was sent before, and is sent again
	beat("e", time.Hour, time.Hour)
}

// S1: heartbeats and statistics lock the rows of the process in one order, so that they cannot deadlock.
func TestRowsAreLockedInOneOrder(t *testing.T) {
	h := &heartbeater{registrations: map[string]*registration{}}
	for i := range 20 {
		r := newRegistration(fmt.Sprint("host", i%7), &Settings{HeartbeatInterval: time.Second, JudgeDeadInterval: time.Minute},
			func() {})
		defer r.lease.stop()
		h.registrations[r.uuid] = r
	}
	all, _, _ := h.snapshot()
	if !slices.IsSortedFunc(all, func(a, b *registration) int { return strings.Compare(a.uuid, b.uuid) }) || len(all) != 20 {
		t.Errorf("%d registrations are in no order", len(all))
	}
}

// S11: the reply to a heartbeat that was sent before the lease expired does not count, because it may have been written
// before a pause. The reply to the next heartbeat does, although the token is the same.
func TestReplyToAHeartbeatBeforeTheLapse(t *testing.T) {
	r := newRegistration("host", &Settings{HeartbeatInterval: 2 * time.Second, JudgeDeadInterval: 10 * time.Second}, func() {})
	defer r.lease.stop()
	h := halt{base: &base{reg: r}}
	for _, sent := range []bool{true, false} {
		r.announce("token")
		if sent {
			r.lapses.Add(1)
		}
		r.renew("token", time.Now(), roster.HeartbeatReply{})
		h.confirmed = (<-r.replies).lapses
		if h.isConfirmed() == sent {
			t.Errorf("the lease expires after the heartbeat: %t; its reply confirms: %t", sent, h.isConfirmed())
		}
	}
}

// S1 S11: a server works nothing before its first reply, so its join sends a heartbeat at once. Those of the other
// servers of its process may be far off.
func TestEachJoinSendsAHeartbeat(t *testing.T) {
	h := heartbeater{registrations: map[string]*registration{}, early: make(chan struct{}, 1)}
	for _, uuid := range []string{"first", "second"} {
		h.add(&registration{uuid: uuid})
		select {
		case <-h.early:
		default:
			t.Errorf("the join of the %s server sends no heartbeat", uuid)
		}
	}
}
