package manager

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/testdb"
	"github.com/dutyrota/rota/ops"
)

// S16: the death of an item is over before the roster can be told of it. If that fails, the roster is told again.
func TestDeathOfAnItemIsToldAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &alerter{base: &base{log: slog.New(slog.DiscardHandler)}, episodes: newEpisodes()}
		a.episodes.see(condition.Condition{Kind: condition.Killer.Name, TaskType: "settle", QueueID: "1", Subject: "item 7"}, reported)
		time.Sleep(time.Millisecond)
		a.episodes.checked(heartbeats)
		due := a.episodes.due
		a.episodes.due = nil
		a.told(t.Context(), due[0], errors.New("the database is full"))
		a.episodes.checked(heartbeats)
		if again := a.episodes.due; len(again) != 1 || again[0] != due[0] {
			t.Fatalf("the roster is to be told of %+v, want %+v", again, due)
		}
		a.told(t.Context(), due[0], nil)
		a.episodes.due = nil
		for range 2 {
			time.Sleep(time.Second)
			a.episodes.checked(heartbeats)
		}
		if len(a.episodes.due) > 0 || len(a.episodes.open) > 0 {
			t.Errorf("after it was told: %+v is due, and %d episodes are open, want none", a.episodes.due, len(a.episodes.open))
		}
	})
}

// S16: what a session was about to tell when it ended is told by the next one.
func TestNextSessionTells(t *testing.T) {
	t.Parallel()
	a := &alerter{base: &base{settings: &Settings{}}, episodes: newEpisodes()}
	a.episodes.see(condition.Condition{Kind: condition.Limit.Name, TaskType: "settle", QueueID: "1"}, reported)
	due := a.episodes.due
	if a.tellRoster() == nil || len(a.episodes.due) > 0 { // the job never ends
		t.Fatalf("no job tells of %+v", due)
	}
	next := a.episodes.begin()
	if next.checked(heartbeats); len(next.due) != 1 || next.due[0] != due[0] {
		t.Errorf("the next session tells of %+v, want %+v", next.due, due)
	}
}

// alertKinds records the kinds of alerts.
type alertKinds []string

func (k *alertKinds) Alert(a Alert) { *k = append(*k, a.Kind) }

// S16: a session ends after the event of an alert was committed. The next session finds the event, and the alert has
// been raised once.
func TestAlertOfASessionThatEnds(t *testing.T) {
	t.Parallel()
	c, err := center.Open(t.Context(), anydb.URL(testdb.URL(t, testdb.SQLite)), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := ops.New(c).Tasks().Define(t.Context(), "settle", Settings{Queues: 1}); err != nil {
		t.Fatal(err)
	}
	var raised alertKinds
	cfg := Config{Alerter: &raised, Logger: slog.New(slog.DiscardHandler), Redact: func(text string) string { return text }}
	a := &alerter{
		base:     &base{roster: c, taskType: "settle", settings: &Settings{}, cfg: cfg, log: cfg.Logger},
		episodes: newEpisodes(),
	}
	a.episodes.see(condition.Condition{Kind: condition.Limit.Name, TaskType: "settle", QueueID: "0"}, reported)
	for session := range 2 {
		job := a.tellRoster()
		if job == nil {
			t.Fatalf("no job tells the roster in session %d", session)
		}
		if err := job.call(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(raised) != 1 || raised[0] != condition.Limit.Name {
			t.Errorf("session %d: alerts %v, want one %s", session, raised, condition.Limit.Name)
		}
		a.episodes.begin().checked(heartbeats)
	}
}

// S16: the roster could not be told that a condition has ended. It is told again, before it is told of the next one of
// the kind, which began soon after that end: this one is an alert of its own.
func TestEndOfAnEpisodeIsToldAgain(t *testing.T) {
	t.Parallel()
	c, err := center.Open(t.Context(), anydb.URL(testdb.URL(t, testdb.SQLite)), center.Options{Schema: center.SchemaCreate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := ops.New(c).Tasks().Define(t.Context(), "settle", Settings{Queues: 1}); err != nil {
		t.Fatal(err)
	}
	var raised alertKinds
	cfg := Config{Alerter: &raised, Logger: slog.New(slog.DiscardHandler), Redact: func(text string) string { return text }}
	a := &alerter{
		base:     &base{roster: c, taskType: "settle", settings: &Settings{}, cfg: cfg, log: cfg.Logger},
		episodes: newEpisodes(),
	}
	away, cancel := context.WithCancel(t.Context())
	cancel()
	tell := func(ctx context.Context) {
		job := a.tellRoster()
		if job == nil {
			t.Fatal("no job tells the roster")
		}
		job.then(context.WithoutCancel(ctx), job.call(ctx))
	}
	look := func(sees bool, since time.Time) {
		if sees {
			a.see(condition.Condition{Kind: condition.Stalled.Name, Since: since, QueueID: "0"})
		}
		a.episodes.checked(heartbeats)
	}
	look(true, time.Now())
	tell(t.Context())
	look(false, time.Time{})
	tell(away)
	time.Sleep(20 * time.Millisecond) // more than the clock of the database rounds
	second := time.Now()
	look(true, second)
	tell(away)
	look(true, second)
	tell(t.Context())
	if len(raised) != 2 {
		t.Errorf("alerts %v, want one for each of two episodes", raised)
	}
}
