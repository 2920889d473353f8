package manager

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/roster"
)

// What is due, is due in the order of its urgency, and nothing is due before its time.
func TestAgenda(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var a agenda
	if d, due := a.next(now); due || !a.begins().IsZero() {
		t.Errorf("duty %d of an empty agenda is due, the next at %s", d, a.begins())
	}
	a.add(now.Add(2*time.Second), tick, audit)
	a.add(now.Add(time.Second), tellAlerts)
	a.add(now.Add(time.Minute), audit) // it stays due earlier
	if d, due := a.next(now); due || !a.begins().Equal(now.Add(time.Second)) {
		t.Errorf("duty %d is due, the next at %s", d, a.begins())
	}
	for after, want := range map[time.Duration]duty{time.Second: tellAlerts, 2 * time.Second: audit} {
		if d, due := a.next(now.Add(after)); !due || d != want {
			t.Errorf("after %s duty %d is due (%t), want %d", after, d, due, want)
		}
	}
}

// A heartbeat's reply takes the place of the one before.
func TestAgendaAfterReply(t *testing.T) {
	now, db := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 1, 2, 5, 0, 0, 0, time.UTC)
	runs := known{settings: 7, inRuns: true}
	for name, c := range map[string]struct {
		known known
		reply roster.HeartbeatReply
		watch time.Duration
		want  map[duty]time.Duration // from now on
	}{
		"nothing":                 {known: runs},
		"the queues' failures":    {known: known{settings: 7}, want: map[duty]time.Duration{saveFailing: 0}},
		"a plan":                  {known: runs, reply: roster.HeartbeatReply{PlanDue: true}, want: map[duty]time.Duration{rebalance: 0}},
		"shares":                  {known: runs, reply: roster.HeartbeatReply{SharesDue: true}, want: map[duty]time.Duration{rebalance: 0}},
		"a dead server":           {known: runs, reply: roster.HeartbeatReply{AnyDead: true}, watch: 1, want: map[duty]time.Duration{rebalance: 0}},
		"a dead server, no watch": {known: runs, reply: roster.HeartbeatReply{AnyDead: true}},
		"an audit":                {known: runs, reply: roster.HeartbeatReply{AuditDue: true}, want: map[duty]time.Duration{audit: 0}},
		"new settings":            {known: known{settings: 6, inRuns: true}, want: map[duty]time.Duration{readSettings: 0}},
		"no row of the task type": {known: runs, reply: roster.HeartbeatReply{SettingsVersion: -1}},
		"all have drained": {
			known: known{settings: 7, drained: 3, inRuns: true}, reply: roster.HeartbeatReply{AllDrained: true, PartitionVersion: 3},
			want: map[duty]time.Duration{repartition: 0},
		},
		"all have drained, this one for an older barrier": {
			known: known{settings: 7, drained: 2, inRuns: true}, reply: roster.HeartbeatReply{AllDrained: true, PartitionVersion: 3},
		},
		"a first run": {known: runs, reply: roster.HeartbeatReply{OpenRuns: true}, want: map[duty]time.Duration{tick: 0}},
		"runs as before": {
			known: known{settings: 7, inRuns: true, openRuns: true}, reply: roster.HeartbeatReply{OpenRuns: true},
		},
		"a trigger": {
			known: runs, reply: roster.HeartbeatReply{NextFire: db.Add(9 * time.Second), NextBegin: db.Add(time.Hour)},
			want: map[duty]time.Duration{tick: 9 * time.Second},
		},
		"a run whose time has come": {
			known: runs, reply: roster.HeartbeatReply{NextBegin: db.Add(-time.Second)}, want: map[duty]time.Duration{tick: 0},
		},
	} {
		var before agenda
		before.add(now, readSettings, rebalance, repartition, audit) // as an earlier reply has asked, and no job has started
		c.reply.Now = db
		if c.reply.SettingsVersion == 0 {
			c.reply.SettingsVersion = 7
		}
		var want agenda
		for d, in := range c.want {
			want.add(now.Add(in), d)
		}
		if got := before.after(heartbeatReply{HeartbeatReply: c.reply, watched: c.watch}, c.known, now); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
