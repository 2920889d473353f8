package rotatest

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/ops"
)

// Worker is a worker in the process of the test.
type Worker struct {
	*manager.Manager
	r    *Roster
	stop context.CancelFunc
	done chan struct{}
	once sync.Once
	err  error // of Run; read it only after done
}

// Start starts a worker and waits until it has joined all task types. Several workers share the queues as processes do.
// The worker stops at the end of the test, if Stop has not stopped it before. Start fails the test if the worker cannot
// join.
//
// In a bubble, Start defines the task types with a HeartbeatInterval of a minute and pauses of half a minute between
// selects that find nothing (SleepTimeNoData), unless the settings say otherwise. A test in a bubble lets hours pass,
// and with the usual intervals it would take long to send all heartbeats of these hours.
func (r *Roster) Start(tasks ...manager.Task) *Worker {
	r.tb.Helper()
	if inBubble() {
		r.define(tasks)
	}
	m, err := manager.New(r.c, r.o.Config, tasks...)
	if err != nil {
		r.tb.Fatal("rotatest: ", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(r.tb.Context()))
	w := &Worker{Manager: m, r: r, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.err = m.Run(ctx)
	}()
	r.tb.Cleanup(w.Stop)
	w.until("the worker has not joined", w.joined)
	return w
}

// define defines the task types with long intervals.
func (r *Roster) define(tasks []manager.Task) {
	r.tb.Helper()
	for _, t := range tasks {
		s := t.Settings()
		if s.HeartbeatInterval == 0 && s.JudgeDeadInterval == 0 {
			s.HeartbeatInterval, s.JudgeDeadInterval = time.Minute, 5*time.Minute
		}
		s.SleepTimeNoData = cmp.Or(s.SleepTimeNoData, 30*time.Second)
		if _, err := ops.New(r.c).Tasks().Define(r.tb.Context(), t.TaskType(), s); err != nil {
			r.tb.Fatal("rotatest: ", err)
		}
	}
}

// Stop makes the worker leave: it finishes what is in flight and hands its queues over. Stop waits for that, and fails
// the test if the worker has ended with an error. It does nothing if the worker has stopped.
func (w *Worker) Stop() {
	w.r.tb.Helper()
	w.stop()
	<-w.done
	w.once.Do(func() {
		if w.err != nil {
			w.r.tb.Errorf("rotatest: %v", w.err)
		}
	})
}

func (w *Worker) joined() bool {
	for _, s := range w.Status() {
		if s.State != "serving" {
			return false
		}
	}
	return true
}

// until waits until the condition holds. It fails the test if that takes too long, or if the worker has ended.
func (w *Worker) until(otherwise string, condition func() bool) {
	w.r.tb.Helper()
	end := time.Now().Add(w.r.o.Timeout)
	longest := time.Second
	if inBubble() {
		longest = time.Minute
	}
	for pause := time.Millisecond; !condition(); pause = min(2*pause, longest) {
		select {
		case <-w.done:
			w.r.tb.Fatalf("rotatest: %s, and the worker has ended: %v", otherwise, w.err)
		case <-time.After(pause):
		}
		if time.Now().After(end) {
			w.r.tb.Fatalf("rotatest: after %s %s%s", w.r.o.Timeout, otherwise, w.lastErrors())
		}
	}
}

// lastErrors returns the last error of each dealer, as the end of a sentence.
func (w *Worker) lastErrors() (text string) {
	for _, s := range w.Status() {
		if s.Work.LastError != nil {
			text += "; last error of " + s.TaskType + ": " + s.Work.LastError.Error()
		}
	}
	return text
}
