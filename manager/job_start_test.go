package manager

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// S10: the session goes on while a job waits, and gets its error when it has ended.
func TestSessionDoesNotWaitForAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, row := newJobRunner(&base{settings: &Settings{}}), make(chan struct{})
		r.start(t.Context(), &job{name: "release", call: func(context.Context) error {
			<-row // another session holds the lock row
			return context.DeadlineExceeded
		}})
		synctest.Wait()
		select {
		case err := <-r.ended:
			t.Fatalf("the job ended with %v", err)
		default:
		}
		if r.idle() {
			t.Error("a second job could start beside the first")
		}
		close(row)
		if err := <-r.ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the job ended with %v", err)
		}
		r.cancel()
	})
}

// A duty is off the agenda when its job starts, so a database that refuses the job is not asked again without a pause.
func TestJobThatFailsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &base{settings: &Settings{}, agenda: &agenda{}}
		r := newJobRunner(b)
		starts := func() bool {
			r.startNext(t.Context(), func(duty) *job {
				return &job{call: func(context.Context) error { return errors.New("refused") }}
			})
			if r.idle() {
				return false
			}
			if err := <-r.ended; err == nil {
				t.Error("the job that was refused has not failed")
			}
			r.running = nil
			r.cancel()
			return true
		}
		b.agenda.add(time.Now(), resetCrashes)
		if !starts() || starts() {
			t.Error("the job is not started once")
		}
		b.agenda.add(time.Now().Add(time.Minute), resetCrashes)
		if starts() {
			t.Error("the job is started again before its time")
		}
		time.Sleep(time.Minute)
		if !starts() {
			t.Error("the job is not started again")
		}
	})
}
