package manager_test

import (
	"testing"
	"time"

	"github.com/dutyrota/rota/internal/racetest"
	"github.com/dutyrota/rota/manager"
)

// The bubble begins at midnight UTC on 2000-01-01.
func sleepUntil(hour, minute, second int) {
	now := time.Now().UTC()
	at := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, second, 0, time.UTC)
	time.Sleep(at.Sub(now))
}

// A window with an end: nothing starts before it or after it, and what is in flight at its end is finished.
func TestWindow(t *testing.T) {
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		s := &store{takes: 3 * time.Second}
		cl.serve(s, manager.Settings{Queues: 2, HeartbeatInterval: 10 * time.Minute, JudgeDeadInterval: time.Hour, PermitRunStartTime: "30 0 1 * * ?", PermitRunEndTime: "0 10 1 * * ?"})
		s.put(2_000)
		sleepUntil(1, 0, 29)
		if s.selected() > 0 {
			cl.Fatal("selected before the window")
		}
		cl.wantOwners(2) // queues are owned also while they must not be worked
		sleepUntil(1, 5, 0)
		if len(s.executed()) == 0 {
			cl.Fatal("nothing is done in the window")
		}
		sleepUntil(1, 20, 0)
		at := s.executed()
		first, last := at[0].UTC(), at[len(at)-1].UTC()
		if first.Sub(time.Date(2000, 1, 1, 1, 0, 30, 0, time.UTC)) > 4*time.Second || last.After(time.Date(2000, 1, 1, 1, 10, 4, 0, time.UTC)) {
			cl.Fatalf("executed from %s to %s, want from 01:00:30 to 01:10:04, give or take 4 s", first, last)
		}
		var start string
		cl.scan("SELECT next_run_start_time FROM schedule_server", &start)
		if start != "2000-01-02 01:00:30.000000" {
			cl.Fatalf("next_run_start_time is %s, want 2000-01-02 01:00:30.000000", start)
		}
		n := len(at)
		time.Sleep(24 * time.Hour)
		if s.doubled() || len(s.executed()) <= n {
			cl.Fatalf("items twice: %t; %d executed on the second day, want false, and more than 0", s.doubled(), len(s.executed())-n)
		}
	})
}

// A window without an end closes for a queue with its first empty select, until the next start, also if the queue moves.
func TestOpenEndedWindow(t *testing.T) {
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		set := manager.Settings{Queues: 2, HeartbeatInterval: 10 * time.Second, JudgeDeadInterval: time.Minute, PermitRunStartTime: "0 0 * * * ?", PermitRunEndTime: "-1", FetchNumber: 5}
		s := &store{takes: 100 * time.Millisecond}
		sleepUntil(15, 10, 0) // the worker starts in the middle of an hour
		a := cl.serve(s, set)
		s.put(20)
		sleepUntil(15, 59, 0)
		if s.left() != 20 {
			cl.Fatal("the window of this hour was opened late")
		}
		sleepUntil(16, 1, 0)
		if s.left() != 0 {
			cl.Fatalf("%d items are left, want 0", s.left())
		}
		s.put(20)
		selects := s.selected()
		sleepUntil(16, 20, 0)
		if s.left() != 20 || s.selected() != selects {
			cl.Fatal("the window went on after an empty select")
		}
		b := cl.serveAlso(s, set) // it gets a queue, whose window is closed
		sleepUntil(16, 30, 0)
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		sleepUntil(16, 50, 0)
		if s.left() != 20 {
			cl.Fatal("the new owner began the window again")
		}
		sleepUntil(17, 1, 0)
		if s.left() != 0 || s.doubled() {
			cl.Fatalf("%d items are left, twice: %t, want 0, false", s.left(), s.doubled())
		}
		if err := cl.leave(b); err != nil {
			cl.Fatal(err)
		}
	})
}

// A window that is still open for a queue stays open at the next owner.
func TestOpenEndedWindowMoves(t *testing.T) {
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		set := manager.Settings{Queues: 2, HeartbeatInterval: time.Minute, JudgeDeadInterval: time.Hour, PermitRunStartTime: "0 0 2 * * ?", FetchNumber: 5}
		s := &store{takes: time.Second}
		a := cl.serve(s, set)
		s.put(5_000)
		sleepUntil(2, 1, 0)
		if s.left() == 5_000 {
			cl.Fatal("nothing is done")
		}
		if err := cl.leave(a); err != nil {
			cl.Fatal(err)
		}
		left := s.left()
		time.Sleep(time.Hour) // without a worker
		cl.serveAlso(s, set)
		time.Sleep(time.Minute)
		if s.left() == left {
			cl.Fatal("the new owner executes nothing")
		}
	})
}

// "startrun:" opens the window when the process starts. Another session of the process does not open it.
func TestStartRun(t *testing.T) {
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		s := &store{takes: 10 * time.Millisecond}
		cl.serve(s, manager.Settings{Queues: 2, HeartbeatInterval: 10 * time.Second, JudgeDeadInterval: time.Minute, PermitRunStartTime: "startrun:0 0 2 * * ?"})
		time.Sleep(time.Second)
		s.put(20)
		time.Sleep(time.Minute)
		if s.selected() == 0 {
			cl.Fatal("nothing was selected at the start")
		}
		before := s.selected()
		cl.exec("DELETE FROM schedule_server")
		time.Sleep(5 * time.Minute)
		cl.wantOwners(2)
		if s.selected() != before {
			cl.Fatal("another session opened the window again")
		}
		sleepUntil(2, 1, 0)
		if s.left() != 0 {
			cl.Fatal("the window at two did not open")
		}
	})
}

// A window that opens while items of the last one are in flight starts no item twice.
func TestWindowOpensWhileItDrains(t *testing.T) {
	racetest.Skip(t)
	inBubble(t, func(cl *cluster) {
		s := &store{takes: 90 * time.Second} // the window is open for one minute in two
		cl.serve(s, manager.Settings{Queues: 1, HeartbeatInterval: 20 * time.Second, JudgeDeadInterval: 2 * time.Minute, PermitRunStartTime: "0 0/2 * * * ?", PermitRunEndTime: "0 1/2 * * * ?", ThreadNumber: 2})
		s.put(10)
		time.Sleep(time.Hour)
		if s.left() != 0 || s.doubled() {
			cl.Fatalf("%d items are left, twice: %t, want 0, false", s.left(), s.doubled())
		}
	})
}
