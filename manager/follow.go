package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/dutyrota/rota/center"
)

// refresh brings the roster, the view of it and the processor in line, as far as can be done at
// once: plan if that is due, read if something changed, then take the steps that decide names.
func (s *server) refresh(ctx context.Context, p *pulse) {
	err := s.follow(ctx, p)
	s.lookAtWindow()
	if err == nil {
		err = s.closeEmpty(ctx)
	}
	for err == nil {
		if err = s.readView(ctx); err != nil {
			break
		}
		if s.inRuns() {
			s.settleSweeps(ctx)
		}
		actions := decide(s.facts())
		var changed bool
		if changed, err = s.perform(ctx, actions); err == nil && !changed {
			s.acknowledge()
			return
		}
	}
	s.life.stale = true // whatever it was, the next pulse tries again
	if !s.c.IsTransient(err) && !errors.Is(err, context.Canceled) {
		s.log.WithError(err).Error("roster")
		return
	}
	s.log.WithError(err).Debug("roster; trying again")
}

func (s *server) facts() facts {
	l := s.life
	return facts{
		uuid: l.uuid, rows: l.view.Queues, held: s.proc.Held(),
		spent: l.spent, blocked: l.blocked, halted: l.halted, closed: s.closed(), giving: l.giving(), late: l.late(), inRuns: s.inRuns(),
	}
}

// follow does what a pulse asks for.
func (s *server) follow(ctx context.Context, p *pulse) error {
	if p == nil {
		return nil
	}
	l := s.life
	s.proc.Wake() // the lease was renewed; executors that met its end ask again
	if l.lapsed.Swap(false) || !l.matches(p.Pulse) || l.asksUnaware() {
		l.stale = true
	}
	if p.MembershipVersion == p.PlannedVersion {
		l.blocked = nil // the plan is written, by whomever
	}
	s.halt(p.Pulse)
	s.followRuns(p.Pulse)
	if p.SettingsVersion != l.settings && p.SettingsVersion >= 0 {
		if err := s.reconfigure(ctx, p.SettingsVersion); err != nil {
			return err
		}
	}
	if dead := p.AnyDead && p.watched > 0; dead || p.MembershipVersion != p.PlannedVersion {
		if err := s.plan(ctx, *p, false); err != nil {
			return err
		}
	}
	if p.AllDrained && l.drained.Load() == p.PartitionVersion {
		if err := s.finishRepartition(ctx); err != nil {
			return err
		}
	}
	s.tellWaits(ctx, p.Awaited > 0)
	s.raiseAlerts(ctx, p.Pulse)
	if p.ItemVersion != s.items {
		s.items = p.ItemVersion
		s.proc.Reload()
	}
	if p.AuditDue {
		return s.audit(ctx, *p)
	}
	return nil
}

// tellEvery is how often a server that waits for queues says for whom.
const tellEvery = 10 * time.Second

// tellWaits says for whom the server waits, at first when that has lasted for longer than a hand-over
// takes, and then now and again.
func (s *server) tellWaits(ctx context.Context, waiting bool) {
	l := s.life
	switch {
	case !waiting:
		l.waitTold = time.Time{}
		return
	case l.waitTold.IsZero():
		l.waitTold = time.Now().Add(2*l.interval - tellEvery)
		return
	case time.Since(l.waitTold) < tellEvery:
		return
	}
	l.waitTold = time.Now()
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	waits, err := s.c.Waits(ctx, l.uuid)
	if err != nil {
		s.log.WithError(err).Debug("ask for whom we wait")
	}
	for _, w := range waits {
		s.log.Info("waiting: ", w)
	}
}

// halt notes whether queues may be worked at all: not while the task type or this server is paused, nor
// while everybody drains for another number of queues.
func (s *server) halt(p center.Pulse) {
	l := s.life
	halted := p.Paused || p.RequestedTotal > 0
	if halted != l.halted {
		s.log.WithFields(logrus.Fields{"paused": p.Paused, "repartition": p.RequestedTotal > 0}).Infof("halted: %t", halted)
	}
	switch paused := p.State == center.StatePaused; {
	case paused && !l.giving():
		s.log.Info("paused by an operator: the others take over")
		l.give(s.settings.HeartbeatInterval)
	case !paused && l.giving() && s.state() != stateLeaving:
		s.log.Info("resumed by an operator")
		l.giveBy = time.Time{}
	}
	l.halted, l.barrier = halted, 0
	if p.RequestedTotal > 0 {
		l.barrier = p.PartitionVersion
	}
	if l.drained.Load() != l.barrier {
		l.drained.Store(0) // what was drained for another request does not count
	}
}

// acknowledge tells with the next heartbeat that nothing is in hand, and that nothing will start before
// the number of queues has changed or the request for that is withdrawn (N1).
func (s *server) acknowledge() {
	if s.life.barrier != 0 && s.idle() {
		s.life.drained.Store(s.life.barrier)
	}
}

func (s *server) finishRepartition(ctx context.Context) error {
	s.life.stale = true
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	done, err := s.c.FinishRepartition(ctx, s.task.name, s.life.uuid)
	if done {
		s.log.Info("the number of queues has changed")
	}
	return err
}

// audit repairs what was edited by hand, and forgets what is old, once per interval and roster.
func (s *server) audit(ctx context.Context, p pulse) error {
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	turn, err := s.c.Audit(ctx, s.task.name, s.life.uuid)
	if err != nil || !turn {
		return err
	}
	s.life.stale = true
	if _, err = s.c.Clean(ctx, s.m.cfg.Retention); err != nil || p.watched == 0 {
		return err
	}
	expired, err := s.c.ExpireOwnSigns(ctx, s.task.name, s.life.uuid, p.Now, 2*s.settings.HeartbeatInterval)
	for _, sign := range expired {
		s.log.Infof("environment %s was deleted: nobody has served it for %s", sign, s.settings.ExpireOwnSignInterval)
	}
	return err
}

// busyRowMost is how often in succession a server that is not needed gives way to who has the lock row.
const busyRowMost = 3

// plan deals the queues, and buries the dead first, if the pulse says that we have watched for long
// enough; the zero pulse does not. Who is not needed does not wait for the lock row: the next pulse says if the
// plan is still due. But where the row is never free, as when runs are submitted without a pause, nobody would ever
// bury the dead; so those who watch a dead one wait in the end. All else is planned with the next audit.
func (s *server) plan(ctx context.Context, p pulse, needed bool) error {
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	done, err := s.c.Assign(ctx, s.task.name, center.Assignment{
		Actor: s.life.uuid, BeatWithin: 2 * s.settings.HeartbeatInterval,
		Watched: p.watched, Seen: p.Now, Inherited: p.inherited,
		NoWait: !needed && (!p.AnyDead || s.life.busyRow < busyRowMost),
	})
	if err == nil && done.Busy {
		s.life.busyRow++
		return nil // the pulse after the plan tells what has changed
	}
	s.life.busyRow = 0
	s.life.stale = true
	if err != nil {
		return err
	}
	s.life.blocked = map[string]bool{}
	for _, silent := range done.Silent {
		s.observe(MoveTakenOver, silent)
	}
	for _, id := range done.Blocked {
		s.life.blocked[id] = true
	}
	return nil
}

// reconfigure takes over settings that were changed in the row. Bad ones are refused: the last good
// ones stay in force.
func (s *server) reconfigure(ctx context.Context, version int64) error {
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	row, err := s.c.Settings(ctx, s.task.name)
	if err != nil {
		return err
	}
	first := s.life.settings == unknownVersion
	s.life.settings = version
	err = row.Validate()
	if err == nil && row.Mode != s.settings.Mode && !first {
		err = fmt.Errorf("mode (%s) takes effect with a worker's next start: it works in mode %s", row.Mode, s.settings.Mode)
	}
	if err == nil {
		err = s.proc.Configure(processorSettings(row))
	}
	if err != nil {
		s.log.WithError(err).Error("the settings in schedule_task_type are not taken over")
		s.badSettings.Store(&trouble{"settings not taken over: " + err.Error(), time.Now()})
		return nil
	}
	s.badSettings.Store(nil)
	// The intervals of a registration stay what others were told in its row; another mode is another life.
	row.Mode = s.settings.Mode
	row.HeartbeatInterval, row.JudgeDeadInterval = s.settings.HeartbeatInterval, s.settings.JudgeDeadInterval
	s.settings, s.life.permit = row, nil
	if !first {
		s.log.Info("took over the settings that were changed in schedule_task_type")
	}
	return nil
}

func (s *server) readView(ctx context.Context) error {
	if !s.life.stale {
		return nil
	}
	ctx, cancel := s.transaction(ctx)
	defer cancel()
	v, err := s.c.View(ctx, s.task.name, s.life.uuid)
	if err != nil {
		return err
	}
	s.life.see(v)
	s.life.stale, s.life.looked = false, time.Now()
	return nil
}
