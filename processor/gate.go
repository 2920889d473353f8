package processor

import "sync"

// gate keeps the loading of a lane's books apart from what changes their records, which may go on side by side. It is
// a lock that is held during calls of the store; who waits for it waits on a condition, as executors do otherwise.
type gate struct {
	mu     sync.Mutex
	opened *sync.Cond
	shared int
	alone  bool
}

func newGate() *gate {
	g := &gate{}
	g.opened = sync.NewCond(&g.mu)
	return g
}

func (g *gate) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.alone {
		g.opened.Wait()
	}
	g.shared++
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shared--
	g.opened.Broadcast()
}

// enterAlone is not starved by others: while a select waits here, its lane gets no new batches.
func (g *gate) enterAlone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.alone || g.shared > 0 {
		g.opened.Wait()
	}
	g.alone = true
}

func (g *gate) leaveAlone() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alone = false
	g.opened.Broadcast()
}
