package manager_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dutyrota/rota/manager"
)

// H4: a program learns from Run that its servers are still in the roster, because the database has not answered. Run
// returns within the time of a lease, and names all task types.
func TestRunReturnsThatItHasNotLeft(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		const lease = 10 * time.Second // the default of judge_dead_interval
		other := &store{items: map[int]bool{}}
		m, err := manager.New(cl.c, manager.Config{Logger: cl.logger()},
			manager.Serve("settle", &store{items: map[int]bool{}}, fast), manager.Serve("export", other, fast))
		if err != nil {
			cl.Fatal(err)
		}
		w := cl.run(m)
		time.Sleep(5 * time.Second)
		block, err := cl.c.DB().BeginTx(cl.Context(), nil) // the only connection: no statement gets an answer
		if err != nil {
			cl.Fatal(err)
		}
		began := time.Now()
		err = cl.leave(w)
		e, ok := errors.AsType[*manager.NotLeftError](err)
		if !ok {
			cl.Fatalf("Run returned %v, want that the servers have not left", err)
		}
		slices.Sort(e.TaskTypes)
		if !slices.Equal(e.TaskTypes, []string{"export", "settle"}) || e.JudgeDeadInterval != lease || e.Err == nil {
			cl.Errorf("%+v: %v", e, err)
		}
		if took := time.Since(began); took > lease+10*time.Second { // the grace of the calls, and the attempts to leave
			cl.Errorf("Run took %s", took)
		}
		if err := block.Rollback(); err != nil {
			cl.Fatal(err)
		}
	})
}

// H4: a worker that has begun a job when the database stopped to answer leaves within the same time. In mode RUN there is
// a job each second.
func TestALeaveWaitsForNoJobBeyondTheLease(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		s := inRuns
		s.DrainTimeout = time.Second
		a := cl.start("a", &work{takes: time.Hour}, s)
		cl.submit("")
		time.Sleep(10 * time.Second)
		block, err := cl.c.DB().BeginTx(cl.Context(), nil) // the only connection: no statement gets an answer
		if err != nil {
			cl.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		began := time.Now()
		if _, ok := errors.AsType[*manager.NotLeftError](cl.leave(a)); !ok {
			cl.Error("Run has not returned that the server has not left")
		}
		const lease = 10 * time.Second // the default of judge_dead_interval
		if took := time.Since(began); took > s.DrainTimeout+lease+10*time.Second {
			cl.Errorf("Run took %s", took)
		}
		if err := block.Rollback(); err != nil {
			cl.Fatal(err)
		}
	})
}

// H4: a worker that is to leave when its lease is over already tries for five seconds all the same, also where the
// database answers each attempt at once.
func TestALeaveIsTriedForFiveSeconds(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		w := cl.start("a", nil, fast)
		time.Sleep(5 * time.Second)
		cl.exec("PRAGMA query_only = ON") // as after a fail-over that is under way
		time.Sleep(20 * time.Second)      // longer than the lease
		go func() {
			time.Sleep(4 * time.Second)
			cl.exec("PRAGMA query_only = OFF")
		}()
		if err := cl.leave(w); err != nil {
			cl.Errorf("Run returned %v although the database took writes after four seconds", err)
		}
		var servers int
		if cl.scan("SELECT COUNT(*) FROM schedule_server", &servers); servers != 0 {
			cl.Errorf("%d servers are still in the roster", servers)
		}
	})
}
