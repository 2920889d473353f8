package manager

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/roster"
	"github.com/dutyrota/rota/internal/witness"
)

// witnessing lets the other processes of the host notice when this process has ended, and notices when another one has
// (S15). All servers of the process share it. Without a directory, and after a failure, it does nothing: the servers
// are expired after judge_dead_interval.
type witnessing struct {
	path string
	log  *slog.Logger

	dir  *witness.Directory // nil: none
	lock *witness.Lock      // nil: none
}

// open takes this process's lock.
func (w *witnessing) open() (err error) {
	if w.path == "" {
		return nil
	}
	dir, err := witness.Open(w.path)
	if err != nil {
		return err
	}
	lock, err := dir.Hold()
	if err != nil {
		return err
	}
	w.dir, w.lock = dir, lock
	if dir.Shared() {
		w.log.Warn("several users may write into the witness directory " + w.path +
			": each of them can delay that the end of a process is noticed")
	}
	return nil
}

// lockID returns the id of the lock, for the rows of the process's servers.
func (w *witnessing) lockID() string {
	if w.lock == nil {
		return ""
	}
	return w.lock.ID
}

// watch watches the directory until ctx is done.
func (w *witnessing) watch(ctx context.Context, servers []*server) {
	if w.dir == nil {
		return
	}
	w.dir.Watch(ctx, w.lock, func(err error) {
		if err != nil {
			w.fail(ctx, servers, err)
			return
		}
		for _, s := range servers {
			offer(s.ended, struct{}{})
		}
	})
}

// fail tells operators that the end of this process, or of others, is noticed late.
func (w *witnessing) fail(ctx context.Context, servers []*server, err error) {
	w.log.LogAttrs(ctx, slog.LevelError, "no witness: the end of this process is noticed only after judge_dead_interval",
		slog.Any("error", err))
	for _, s := range servers {
		offer(s.alerts, condition.Condition{ // not if the server has enough to report
			Kind: condition.Witness.Name, Subject: s.host,
			Text: fmt.Sprintf("the end of a process is noticed only after judge_dead_interval: %v", err),
		})
	}
}

// release gives up the lock when all servers have left. A lock that is not given up lasts as long as the process, and
// so as long as the calls in it that did not return.
func (w *witnessing) release() {
	if w.lock != nil {
		w.lock.Release()
	}
}

// ended returns the locks of the processes on this host that have ended.
func (w *witnessing) ended() ([]string, error) {
	if w.dir == nil {
		return nil, nil
	}
	return w.dir.Dead()
}

// endings expires the servers of processes of this host that have ended.
type endings struct {
	*planner
	attempts roster.Ending
}

func witnessPart(p *planner) part {
	e := &endings{planner: p}
	return part{
		register: func(info *roster.ServerInfo) { info.Witness = p.witness.lockID() },
		jobs:     map[duty]func() *job{expireEnded: e.expireEnded},
	}
}

// expireEnded returns the job that makes the next attempt to expire the servers of processes that have ended on this
// host (S15). If another process of the host has expired them, this server only reads whether it got more queues.
func (e *endings) expireEnded() *job {
	var done roster.RebalanceResult
	var again time.Duration
	var began, ended time.Time
	return &job{
		name: "expire ended processes",
		call: func(ctx context.Context) error {
			began = time.Now()
			locks, err := e.witness.ended()
			if err == nil && len(locks) > 0 {
				done, again, err = e.attempts.Attempt(ctx, e.ownPlanner(), locks)
			}
			ended = time.Now()
			return err
		},
		then: func(_ context.Context, err error) (more bool) {
			if err != nil {
				again = e.settings.HeartbeatInterval
			}
			if again > 0 {
				e.agenda.add(time.Now().Add(again), expireEnded)
			} else {
				e.attempts = roster.Ending{}
			}
			e.observe(began, ended, done, err)
			e.rebalanced(done, err)
			e.view.invalidate()
			return true
		},
	}
}
