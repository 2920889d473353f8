package manager

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/roster"
)

// A server is unheard if its heartbeats arrive, so that no other server expires it, and their replies come too late to renew
// its lease, so that it works nothing. It would keep its queues idle for as long as the link is slow (S12).

// listen looks, while the lease is expired, whether the server is unheard. It looks twice per judge_dead_interval, and closes
// the channel when two looks in succession have found a fresh heartbeat in the roster. stop ends it.
func (s *session) listen(ctx context.Context) (unheard <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan struct{})
	every, server := s.settings.JudgeDeadInterval/2, s.roster.Roster().Server(s.taskType, s.uuid)
	go func() {
		for fresh := 0; fresh < 2; {
			if sleep(ctx, every); ctx.Err() != nil {
				return
			}
			age, err := server.HeartbeatAge(ctx)
			if fresh++; err != nil || age > 2*every || s.reg.lease.valid() {
				fresh = 0
			}
		}
		close(found)
	}()
	return found, cancel
}

// giveUp leaves the roster because the server is unheard: other servers take its queues over at once. It raises an alert.
func (s *session) giveUp(ctx context.Context) {
	s.server.unheard++
	text := fmt.Sprintf("heartbeats of %s arrive, and their replies come too late: it gives its queues away. It joins again after %s, if a round trip takes at most %s",
		s.uuid, s.server.rejoinPause(), s.slowestRoundTrip().Round(time.Millisecond))
	s.log.LogAttrs(ctx, slog.LevelError, text)
	s.heartbeater.remove(s.reg)
	s.reg.lease.end()
	call, cancel := s.withTimeout(ctx)
	defer cancel()
	if err := s.roster.Roster().Server(s.taskType, s.uuid).Leave(call, notDrained(s.proc), roster.Reservation{}); err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "giving the queues away failed; the other servers take over after judge_dead_interval", slog.Any("error", err))
	}
	c := center.Condition{Kind: center.AlertUnheard, TaskType: s.taskType, Subject: s.server.host, Text: text}.Complete()
	begins, err := s.alerter.tell(call, &c, *s.settings)
	s.alerter.told(ctx, c, begins, err)
}
