package scale

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dutyrota/rota/bench/internal/stage"
	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/center/anydb"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/ops"
)

// taskType is the task type that all servers serve.
const taskType = "scale"

// fleet is many servers of one roster in one process. Each sends the statements that a worker process would send, at the
// same times. The servers share connections: no database here has enough connections for all of them. Half of its methods
// start and stop servers, and the other half read what they have done.
type fleet struct {
	db           *stage.Database
	settings     center.Settings
	heartbeaters []*heartbeater
	running      sync.WaitGroup
	ctx          context.Context // of the servers
	started      bool            // whether the servers send heartbeats; before, they are only rows

	beats atomic.Int64 // successful heartbeats
	fails atomic.Int64 // failed calls of internal/roster

	mu    sync.Mutex
	locks []time.Duration // how long the lock row was held, since the last takeLocks
}

// heartbeater sends the heartbeats of some of the servers, over a connection of its own.
type heartbeater struct {
	f       *fleet
	c       *center.Center
	mu      sync.Mutex
	servers []*server
}

// fleetHeartbeaters is the number of heartbeaters of a fleet. They use at most 80 connections.
const fleetHeartbeaters = 16

func newFleet(ctx context.Context, s *stage.Server, o Options) (*fleet, error) {
	db, err := s.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	f := &fleet{db: db}
	if f.settings, err = ops.New(db.Center).Tasks().Define(ctx, taskType, center.Settings{Queues: o.Queues, HeartbeatInterval: o.Heartbeat, JudgeDeadInterval: 5 * o.Heartbeat}); err != nil {
		f.close(ctx)
		return nil, err
	}
	for range min(fleetHeartbeaters, o.Servers) {
		c, err := center.Open(ctx, anydb.URL(db.URL), center.Options{OnLock: f.held})
		if err != nil {
			f.close(ctx)
			return nil, err
		}
		f.heartbeaters = append(f.heartbeaters, &heartbeater{f: f, c: c})
	}
	return f, nil
}

// close waits for the heartbeaters, whose context must be done, and drops the database.
func (f *fleet) close(ctx context.Context) {
	f.running.Wait()
	for _, h := range f.heartbeaters {
		_ = h.c.Close() // no call is in flight
	}
	f.db.Close(ctx)
}

// held records how long the lock row was held.
func (f *fleet) held(_ string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.locks = append(f.locks, d)
}

// takeLocks returns the records since the last call.
func (f *fleet) takeLocks() (locks []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	locks, f.locks = f.locks, nil
	return locks
}

// start starts the heartbeaters and the registered servers.
func (f *fleet) start(ctx context.Context) {
	f.ctx, f.started = ctx, true
	for _, h := range f.heartbeaters {
		for i, s := range h.servers {
			s.due = time.Now().Add(f.settings.HeartbeatInterval * time.Duration(i) / time.Duration(len(h.servers)))
			f.running.Go(func() { s.act(ctx) })
		}
	}
	for _, h := range f.heartbeaters {
		f.running.Go(func() { h.run(ctx) })
	}
}

// register inserts n servers over all heartbeaters in parallel. They start at once if the heartbeaters have started.
func (f *fleet) register(ctx context.Context, n int) ([]*server, error) {
	var mu sync.Mutex
	var all []*server
	first := f.size()
	g, registering := errgroup.WithContext(ctx)
	for i, h := range f.heartbeaters {
		g.Go(func() error {
			for j := i; j < n; j += len(f.heartbeaters) {
				s, err := h.join(registering, first+j)
				if err != nil {
					return err
				}
				mu.Lock()
				all = append(all, s)
				mu.Unlock()
			}
			return nil
		})
	}
	return all, g.Wait()
}

// size returns the number of servers that were ever registered.
func (f *fleet) size() (n int) {
	for _, h := range f.heartbeaters {
		h.mu.Lock()
		n += len(h.servers)
		h.mu.Unlock()
	}
	return n
}

// known returns the number of queues that their owners know.
func (f *fleet) known() (n int64) {
	for _, h := range f.heartbeaters {
		h.mu.Lock()
		for _, s := range h.servers {
			if !s.dead.Load() {
				n += s.owned.Load()
			}
		}
		h.mu.Unlock()
	}
	return n
}

// join registers one server. It tries again with a new uuid after a transient error.
func (h *heartbeater) join(ctx context.Context, number int) (*server, error) {
	s := &server{h: h, token: "first", replies: make(chan roster.HeartbeatReply, 1)}
	for {
		s.uuid = fmt.Sprintf("host%03d:%d:%s", number%251, 1000+number, strings.ToLower(rand.Text()[:8]))
		reg, err := h.c.Roster().Register(ctx, roster.ServerInfo{
			UUID: s.uuid, TaskType: taskType, Host: s.uuid[:7], PID: 1000 + number,
			JudgeDeadInterval: h.f.settings.JudgeDeadInterval, HeartbeatToken: s.token,
		})
		if err == nil {
			s.joined, s.since, s.due = reg.At, reg.WatchingSince, time.Now().Add(idleInterval/2)
			break
		}
		h.f.fails.Add(1)
		if !h.c.IsTransient(err) || !sleep(ctx, idleInterval) {
			return nil, err
		}
	}
	h.mu.Lock()
	h.servers = append(h.servers, s)
	h.mu.Unlock()
	if h.f.started {
		h.f.running.Go(func() { s.act(h.f.ctx) })
	}
	return s, nil
}

// run sends a heartbeat for each server once per interval.
func (h *heartbeater) run(ctx context.Context) {
	interval := h.f.settings.HeartbeatInterval
	for {
		s := h.next()
		if s == nil {
			if !sleep(ctx, idleInterval/4) { // a server may have joined by then
				return
			}
			continue
		}
		s.beat(ctx)
		h.mu.Lock()
		s.due = s.due.Add(interval)
		if time.Since(s.due) > 0 { // a whole interval late: skip the missed heartbeat
			s.due = time.Now().Add(interval)
		}
		h.mu.Unlock()
	}
}

// idleInterval is the longest time from a join to the first heartbeat.
const idleInterval = 100 * time.Millisecond

// next returns the server whose heartbeat is the most overdue, or nil if no heartbeat is due.
func (h *heartbeater) next() (next *server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.servers {
		if !s.dead.Load() && (next == nil || s.due.Before(next.due)) {
			next = s
		}
	}
	if next == nil || time.Now().Before(next.due) {
		return nil
	}
	return next
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
