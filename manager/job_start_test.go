package manager

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// S10: the session goes on while a job waits, and gets its error when it has ended.
func TestSessionDoesNotWaitForAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, row := newJobRunner(&base{settings: &Settings{}}, nil), make(chan struct{})
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
