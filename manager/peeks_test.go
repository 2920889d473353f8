package manager_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dutyrota/rota/manager"
	"github.com/dutyrota/rota/processor"
)

// peeks are the calls of Peek of a process.
type peeks struct {
	mu            sync.Mutex
	running, most int
	of            map[int]int // by dealer
}

// idler is a dealer without items. Its Peek takes a while.
type idler struct {
	*peeks
	name int
}

func (idler) Select(context.Context, processor.Selection) ([]int, error) { return nil, nil }
func (idler) Execute(context.Context, []int) error                       { return nil }

func (i idler) Peek(context.Context, []processor.Selection) ([]string, error) {
	i.count(1)
	defer i.count(-1)
	time.Sleep(20 * time.Millisecond)
	return nil, nil
}

func (i idler) count(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.running += n
	i.most = max(i.most, i.running)
	if n > 0 {
		i.of[i.name]++
	}
}

// The peeks and the audits of many task types, which are due at the same time, take turns, so that they do not crowd out
// the heartbeat. Each gets its turn.
func TestTaskTypesTakeTurns(t *testing.T) {
	inBubble(t, func(cl *cluster) {
		const types = 12
		p := &peeks{of: map[int]int{}}
		var tasks []manager.Task
		for i := range types {
			tasks = append(tasks, manager.Serve(fmt.Sprintf("t%02d", i), idler{p, i}, fast))
		}
		m, err := manager.New(cl.c, manager.Config{Logger: cl.logger()}, tasks...)
		if err != nil {
			cl.Fatal(err)
		}
		w := cl.run(m)
		time.Sleep(time.Minute) // two intervals of audits
		if err := cl.leave(w); err != nil {
			cl.Error(err)
		}
		if p.most != 4 {
			cl.Errorf("%d peeks ran at once, want 4", p.most)
		}
		if len(p.of) != types {
			cl.Errorf("%d of %d task types have peeked: %v", len(p.of), types, p.of)
		}
		var audited int
		cl.scan("SELECT COUNT(*) FROM schedule_task_running WHERE audited_at IS NOT NULL", &audited)
		if audited != types {
			cl.Errorf("%d of %d task types were audited", audited, types)
		}
	})
}
