package center

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// teller sends the hints for servers, in a goroutine of its own, so that nothing waits for them.
type teller struct {
	hearing atomic.Int32 // how many listeners hear hints, which are then taken to reach the other processes
	mu      sync.Mutex
	servers map[string]bool // the ones to be told
	some    chan struct{}   // of capacity 1: there are some
}

func newTeller() *teller { return &teller{servers: map[string]bool{}, some: make(chan struct{}, 1)} }

// Tell tells servers of this environment that they have got queues or requests, or that the requester of a queue of
// theirs knows of its request, so that they need not find out by a poll or a heartbeat (X9). It returns at once, and
// reports whether it sends: a process that hears no hints (Listen) does not. What it sends may be lost. Package manager
// calls Tell.
func (c *Center) Tell(servers ...string) bool {
	if c.teller.hearing.Load() == 0 {
		return false
	}
	c.teller.mu.Lock()
	defer c.teller.mu.Unlock()
	for _, uuid := range servers {
		c.teller.servers[uuid] = true
	}
	select {
	case c.teller.some <- struct{}{}:
	default:
	}
	return true
}

// given tells the servers to which a transaction of the roster has given queues or requests.
func (c *Center) given(servers ...string) { c.Tell(servers...) }

// run sends until ctx is done, and then what is left: a server that leaves tells the next owners last.
func (t *teller) run(ctx context.Context, c *Center) {
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-t.some:
		}
		if servers := t.take(); len(servers) > 0 {
			// A hint that fails costs the time up to the next poll.
			_ = c.send(context.WithoutCancel(ctx), Hint{OwnSign: c.ownSign, Servers: servers})
		}
	}
}

func (t *teller) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	servers := slices.Sorted(maps.Keys(t.servers))
	clear(t.servers)
	return servers
}
