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
)

// taskType is the one that all servers serve.
const taskType = "scale"

// fleet is many servers of one roster in one process. Each asks the database what a worker process would, at the
// times at which it would; but they share connections, which a database has not enough of for all.
type fleet struct {
	db       *stage.Database
	settings center.Settings
	hearts   []*heart
	running  sync.WaitGroup
	life     context.Context // in which the servers act
	beating  bool            // false: they are rows

	beats atomic.Int64 // that succeeded
	fails atomic.Int64 // calls of the center that failed

	mu    sync.Mutex
	locks []time.Duration // for how long the lock row was held, since somebody asked last
}

// heart beats for some of the servers, each in its turn, over a connection of its own.
type heart struct {
	f       *fleet
	c       *center.Center
	mu      sync.Mutex
	servers []*server
}

// fleetHearts is how many hearts a fleet has: 80 connections at most.
const fleetHearts = 16

func newFleet(ctx context.Context, s *stage.Server, o Options) (*fleet, error) {
	db, err := s.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	f := &fleet{db: db}
	if f.settings, err = db.Define(ctx, taskType, center.Settings{Queues: o.Queues, HeartbeatInterval: o.Heartbeat, JudgeDeadInterval: 5 * o.Heartbeat}); err != nil {
		f.close(ctx)
		return nil, err
	}
	for range min(fleetHearts, o.Servers) {
		c, err := center.Open(ctx, anydb.URL(db.URL), center.Options{OnLock: f.held})
		if err != nil {
			f.close(ctx)
			return nil, err
		}
		f.hearts = append(f.hearts, &heart{f: f, c: c})
	}
	return f, nil
}

// close ends the hearts, whose context must be done.
func (f *fleet) close(ctx context.Context) {
	f.running.Wait()
	for _, h := range f.hearts {
		_ = h.c.Close() // nothing is under way
	}
	f.db.Close(ctx)
}

// held notes for how long the lock row was held.
func (f *fleet) held(_ string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.locks = append(f.locks, d)
}

// takeLocks returns what was noted since the last call.
func (f *fleet) takeLocks() (locks []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	locks, f.locks = f.locks, nil
	return locks
}

// beat starts the hearts, and the servers that are there.
func (f *fleet) beat(ctx context.Context) {
	f.life, f.beating = ctx, true
	for _, h := range f.hearts {
		for i, s := range h.servers {
			s.due = time.Now().Add(f.settings.HeartbeatInterval * time.Duration(i) / time.Duration(len(h.servers)))
			f.running.Go(func() { s.act(ctx) })
		}
	}
	for _, h := range f.hearts {
		f.running.Go(func() { h.run(ctx) })
	}
}

// register inserts so many servers, over all hearts at once. They beat from then on, if the hearts do.
func (f *fleet) register(ctx context.Context, n int) ([]*server, error) {
	var mu sync.Mutex
	var all []*server
	first := f.size()
	g, registering := errgroup.WithContext(ctx)
	for i, h := range f.hearts {
		g.Go(func() error {
			for j := i; j < n; j += len(f.hearts) {
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

// size is how many servers were ever registered.
func (f *fleet) size() (n int) {
	for _, h := range f.hearts {
		h.mu.Lock()
		n += len(h.servers)
		h.mu.Unlock()
	}
	return n
}

// known is how many queues the servers know to be theirs.
func (f *fleet) known() (n int64) {
	for _, h := range f.hearts {
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

// join registers one server, under another uuid each time, until the database has it.
func (h *heart) join(ctx context.Context, number int) (*server, error) {
	s := &server{h: h, token: "first", pulses: make(chan center.Pulse, 1)}
	for {
		s.uuid = fmt.Sprintf("host%03d:%d:%s", number%251, 1000+number, strings.ToLower(rand.Text()[:8]))
		reg, err := h.c.Register(ctx, center.Server{
			UUID: s.uuid, TaskType: taskType, Host: s.uuid[:7], PID: 1000 + number,
			JudgeDeadInterval: h.f.settings.JudgeDeadInterval, BeatToken: s.token,
		})
		if err == nil {
			s.joined, s.since, s.due = reg.At, reg.WatchingSince, time.Now().Add(idleInterval/2)
			break
		}
		h.f.fails.Add(1)
		if !h.c.IsTransient(err) || !sleep(ctx, h.f.settings.HeartbeatInterval/4) {
			return nil, err
		}
	}
	h.mu.Lock()
	h.servers = append(h.servers, s)
	h.mu.Unlock()
	if h.f.beating {
		h.f.running.Go(func() { s.act(h.f.life) })
	}
	return s, nil
}

// run beats for each server once in an interval.
func (h *heart) run(ctx context.Context) {
	interval := h.f.settings.HeartbeatInterval
	for {
		s := h.next()
		if s == nil {
			if !sleep(ctx, idleInterval/4) { // somebody may have joined by then
				return
			}
			continue
		}
		s.beat(ctx)
		h.mu.Lock()
		s.due = s.due.Add(interval)
		if time.Since(s.due) > 0 { // a whole interval late: what was missed is not made up for
			s.due = time.Now().Add(interval)
		}
		h.mu.Unlock()
	}
}

// idleInterval is how soon the heart of a process beats for a server that has joined, at the latest.
const idleInterval = 100 * time.Millisecond

// next returns the server whose heartbeat is the most overdue, nil if none is due.
func (h *heart) next() (next *server) {
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

// sleep reports false if the context is done.
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
