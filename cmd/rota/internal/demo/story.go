package demo

import (
	"context"
	"fmt"
	"time"
)

// story is what happens between the first worker's start and the last one's end.
type story struct {
	watch watch
	crew  *crew
	view  view
	stage stage
}

// tell goes through the story and hands the evidence to prove.
func (s *story) tell(ctx context.Context, prove func([]finding) error) error {
	for _, chapter := range []func(context.Context) error{s.start, s.join, s.crash, s.settle} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	// Asked before the last workers leave, since that moves queues too.
	moves, err := ask(ctx, s.watch.db, moveChecks())
	if err != nil {
		return err
	}
	if err := s.leave(ctx); err != nil {
		return err
	}
	effects, err := ask(ctx, s.watch.db, effectChecks())
	if err != nil {
		return err
	}
	return prove(append(effects, moves...))
}

func (s *story) start(ctx context.Context) error {
	s.say("%d workers start and share the queues", firstWorkers)
	for range firstWorkers {
		if err := s.hire(); err != nil {
			return err
		}
	}
	if err := s.await(ctx, "the first workers to share the queues", s.shared); err != nil {
		return err
	}
	s.say("%d workers settle orders; at 25 %% one more joins", firstWorkers)
	return s.await(ctx, "25 % of the orders", settled(25))
}

func (s *story) join(ctx context.Context) error {
	if err := s.hire(); err != nil {
		return err
	}
	w := s.crew.last()
	s.say("%s joins: planned moves, nothing overlaps", w)
	if err := s.await(ctx, w.String()+" to get its share", s.shared); err != nil {
		return err
	}
	s.say("%d workers settle orders; at 55 %% one is killed", len(s.crew.workers))
	return s.await(ctx, "55 % of the orders", settled(55))
}

func (s *story) crash(ctx context.Context) error {
	victim := s.crew.workers[1]
	victim.kill()
	s.say("%s is dead: the others take over what it held within %s", victim, takeOverPromise)
	s.stage.tell("%s was killed with SIGKILL", victim)
	return s.await(ctx, "the others to take over what "+victim.String()+" held", s.shared)
}

func (s *story) settle(ctx context.Context) error {
	s.say("%d workers settle the rest", len(s.crew.workers)-1)
	return s.await(ctx, "the last order", settled(100))
}

func (s *story) leave(ctx context.Context) error {
	s.say("SIGTERM: the workers finish what is in hand, hand over and leave")
	s.crew.terminate()
	if err := s.await(ctx, "the workers to leave", func(scene) bool { return s.crew.ended() }); err != nil {
		return err
	}
	return s.crew.farewell()
}

func (s *story) hire() error {
	w, err := s.crew.hire()
	if err != nil {
		return err
	}
	s.stage.tell("%s started, pid %d", w, w.pid)
	return nil
}

func (s *story) say(format string, args ...any) { s.stage.step = fmt.Sprintf(format, args...) }

// lookInterval is the pause between two looks at the database.
const lookInterval = 200 * time.Millisecond

// await shows what goes on until it is what is waited for, or until a worker ends that should not.
func (s *story) await(ctx context.Context, what string, is func(scene) bool) error {
	for {
		scene, err := s.look(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case err != nil:
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		s.view.show(scene)
		if is(scene) {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookInterval):
		}
	}
}

func (s *story) look(ctx context.Context) (scene, error) {
	if err := s.crew.check(); err != nil {
		return scene{}, err
	}
	seen, err := s.watch.look(ctx)
	if err != nil {
		return scene{}, err
	}
	return s.stage.scene(seen, s.crew), nil
}

// shared tells that each living worker holds its share of the queues and nothing is about to move.
func (s *story) shared(now scene) bool {
	least := queueCount / s.crew.living()
	for _, w := range now.workers {
		if w.state == working && w.queues < least {
			return false
		}
	}
	for _, q := range now.queues {
		if q.status != "HELD" || !s.crew.employs(q.owner) {
			return false
		}
	}
	return len(now.queues) == queueCount
}

func settled(percent int) func(scene) bool {
	return func(now scene) bool { return now.settled*100 >= percent*orderCount }
}
