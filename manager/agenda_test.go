package manager

import (
	"cmp"
	"testing"
	"testing/synctest"
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
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	dead := roster.WatchReply{AnyDead: true}
	for name, c := range map[string]struct {
		settings int64 // 0 stands for version 7
		reply    roster.HeartbeatReply
		watch    time.Duration
		want     map[duty]time.Duration // from now on
	}{
		"nothing":                 {},
		"a plan":                  {reply: roster.HeartbeatReply{PlanDue: true}, want: map[duty]time.Duration{rebalance: 0}},
		"a dead server":           {reply: roster.HeartbeatReply{Watch: dead}, watch: 1, want: map[duty]time.Duration{rebalance: 0}},
		"a dead server, no watch": {reply: roster.HeartbeatReply{Watch: dead}},
		"an audit":                {reply: roster.HeartbeatReply{AuditDue: true}, want: map[duty]time.Duration{audit: 0}},
		"new settings":            {settings: 6, want: map[duty]time.Duration{readSettings: 0}},
		"no row of the task type": {reply: roster.HeartbeatReply{SettingsVersion: -1}},
	} {
		var before agenda
		before.add(now, readSettings, rebalance, audit) // as an earlier reply has asked, and no job has started
		if c.reply.SettingsVersion == 0 {
			c.reply.SettingsVersion = 7
		}
		var want agenda
		for d, in := range c.want {
			want.add(now.Add(in), d)
		}
		if got := before.after(heartbeatReply{HeartbeatReply: c.reply, watched: c.watch}, cmp.Or(c.settings, 7), now); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// A heartbeat's reply says when to tick for the runs, by the database's clock.
func TestTickAfterReply(t *testing.T) {
	db := time.Date(2026, 1, 2, 5, 0, 0, 0, time.UTC)
	never := time.Duration(-1)
	for name, c := range map[string]struct {
		active bool // a run had not ended, as of the last reply
		reply  roster.RunsReply
		want   time.Duration
	}{
		"nothing":        {want: never},
		"a first run":    {reply: roster.RunsReply{Open: true}, want: 0},
		"runs as before": {active: true, reply: roster.RunsReply{Open: true}, want: never},
		"a trigger": {
			reply: roster.RunsReply{NextFire: db.Add(9 * time.Second), NextBegin: db.Add(time.Hour)}, want: 9 * time.Second,
		},
		"a run whose time has come": {reply: roster.RunsReply{NextBegin: db.Add(-time.Second)}, want: 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ticker := &runTicker{base: &base{agenda: &agenda{}}, active: c.active}
			ticker.follow(heartbeatReply{HeartbeatReply: roster.HeartbeatReply{Now: db, Runs: c.reply}})
			got := never
			if at := ticker.agenda.begins(); !at.IsZero() {
				got = time.Until(at)
			}
			if got != c.want || ticker.active != c.reply.Open {
				t.Errorf("%s: tick in %s, active %t, want %s, %t", name, got, ticker.active, c.want, c.reply.Open)
			}
		})
	}
}

// X9, R21: a hint that comes during a tick counts after it, because the tick may have read before.
func TestAHintDuringATickIsKept(t *testing.T) {
	b := &base{settings: &Settings{}, agenda: &agenda{}}
	j := (&runTicker{base: b}).tick()
	told := time.Now()
	b.agenda.add(told, tick)
	j.then(t.Context(), nil)
	if at := b.agenda[tick]; at.After(told) {
		t.Errorf("the next tick is %s after the hint", at.Sub(told))
	}
}
