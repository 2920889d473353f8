package processor

import "sync"

// gate is a read-write lock that is held during calls of an ItemStore. A Load enters alone. Save and Delete enter
// together. It is not a sync.RWMutex, because a goroutine that waits for a mutex is not durably blocked for
// testing/synctest; one that waits for a condition is.
type gate struct {
	mu     sync.Mutex
	opened *sync.Cond
	shared int  // number of calls of Save and Delete
	alone  bool // a Load is running
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

// enterAlone cannot starve: while a select waits here, its lane starts no new batches.
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
