package demo

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

// story is what happens between the start of the first worker and the end of the last one.
type story struct {
	db    *sql.DB
	view  *view
	fleet *fleet
	shown int // events that the view has shown
}

// scene is one step of the story.
type scene struct {
	title string
	begin func() error
	ends  func(snapshot) bool
}

// tell plays the scenes and returns the evidence.
func (s *story) tell(ctx context.Context) ([]finding, error) {
	var moves []finding
	leave := func() (err error) {
		moves, err = ask(ctx, s.db, movesCheck) // before the workers leave: that moves queues too
		s.fleet.terminate()
		return err
	}
	for _, scene := range []scene{
		{fmt.Sprintf("%d workers start and share the queues", firstWorkers), s.start(firstWorkers), s.shared},
		{"they settle a quarter of the orders", nothing, settled(25)},
		{"worker 4 joins: queues move to it, one owner at a time", s.start(1), s.shared},
		{"4 workers settle half of the orders", nothing, settled(50)},
		{fmt.Sprintf("worker 2 is killed with SIGKILL: the others take over within %s", takeOverPromise), s.killSecond, s.shared},
		{"3 workers settle the rest", nothing, settled(100)},
		{"SIGTERM: the workers finish what is in flight and leave", leave, func(snapshot) bool { return s.fleet.ended() }},
	} {
		if err := s.play(ctx, scene); err != nil {
			return nil, fmt.Errorf("scene %q: %w", scene.title, err)
		}
	}
	findings, err := ask(ctx, s.db, ordersCheck, workersCheck)
	return append(findings, moves...), err
}

const (
	// ordersPerSecond is how many new orders there are in a second after the proof.
	ordersPerSecond = 400
	// leaveLimit is how long the workers may take to leave.
	leaveLimit = 30 * time.Second
)

// goOn lets workers settle new orders until the user ends it.
func (s *story) goOn(ctx context.Context) error {
	s.view.write(text.Bold.Sprint("== workers go on with new orders, for the console: end it with Ctrl-C"))
	if err := s.start(firstWorkers)(); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := orderCount; ctx.Err() == nil; last += ordersPerSecond {
		const some = `INSERT INTO orders (id, state, effects) SELECT id + %d, 'NEW', 0 FROM orders WHERE id <= %d`
		if _, err := s.db.ExecContext(ctx, fmt.Sprintf(some, last, ordersPerSecond)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("make new orders: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	s.view.write("   the workers leave")
	s.fleet.terminate()
	enough := time.After(leaveLimit)
	for _, w := range s.fleet.workers {
		select {
		case <-w.gone:
		case <-enough: // the fleet is killed
			return nil
		}
	}
	return nil
}

func nothing() error { return nil }

func (s *story) killSecond() error {
	s.fleet.workers[1].kill()
	return nil
}

func (s *story) start(n int) func() error {
	return func() error {
		for range n {
			w, err := s.fleet.start()
			if err != nil {
				return err
			}
			s.view.write(fmt.Sprintf("   %s started, pid %d", w.coloured(), w.pid))
		}
		return nil
	}
}

// lookInterval is the pause between two looks at the database.
const lookInterval = 200 * time.Millisecond

// play shows what goes on until the scene ends, or until a worker ends unexpectedly.
func (s *story) play(ctx context.Context, scene scene) error {
	s.view.write(text.Bold.Sprint("== " + scene.title))
	if err := scene.begin(); err != nil {
		return err
	}
	for {
		now, err := look(ctx, s.db)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		ends := scene.ends(now)
		s.view.show(s.fleet.news(now.events[s.shown:]), s.fleet.state(now), ends)
		s.shown = len(now.events)
		if err := s.fleet.check(); err != nil || ends {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookInterval):
		}
	}
}

// shared reports whether each running worker owns its share of the queues, and no queue is about to move.
func (s *story) shared(now snapshot) bool {
	holds := map[*worker]int{}
	for _, q := range now.queues {
		w := s.fleet.of(q.owner)
		if w == nil || w.killed || q.status != "HELD" {
			return false
		}
		holds[w]++
	}
	running := slices.DeleteFunc(slices.Clone(s.fleet.workers), func(w *worker) bool { return w.killed })
	for _, w := range running {
		if holds[w] < queueCount/len(running) {
			return false
		}
	}
	return len(now.queues) == queueCount
}

func settled(percent int) func(snapshot) bool {
	return func(now snapshot) bool { return now.orders()*100 >= percent*orderCount }
}
