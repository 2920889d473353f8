package manager

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dutyrota/rota/condition"
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
		a.told(t.Context(), due[0], false, errors.New("the database is full"))
		a.episodes.checked(heartbeats)
		if again := a.episodes.due; len(again) != 1 || again[0] != due[0] {
			t.Fatalf("the roster is to be told of %+v, want %+v", again, due)
		}
		a.told(t.Context(), due[0], false, nil)
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
