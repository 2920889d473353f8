package manager

import (
	"context"
	"time"
)

// follow does what a heartbeat's reply asks for, and reconciles.
func (s *session) follow(ctx context.Context, r heartbeatReply) {
	s.view.checked = time.Now()
	s.proc.Wake() // the lease was renewed; executors that met its end ask again
	mustRead := s.lapsed.Swap(false) || s.view.mustRead(r.Pulse)
	if err := s.obey(ctx, r); err != nil {
		s.window.update()
		s.retry(err)
		return
	}
	s.reconcile(ctx, mustRead)
}

// obey does what the reply asks for and what is not about single queues.
func (s *session) obey(ctx context.Context, r heartbeatReply) error {
	s.halt.follow(r.Pulse)
	if s.ticker != nil {
		s.ticker.follow(r.Pulse)
	}
	if err := s.config.follow(ctx, r.Pulse); err != nil {
		return err
	}
	if err := s.planner.follow(ctx, r, s.halt.passes(r.Pulse)); err != nil {
		return err
	}
	s.alerter.follow(ctx, r.Pulse, s.reconciler.restricted())
	s.config.followItems(r.Pulse)
	if r.AuditDue {
		return s.planner.audit(ctx, r)
	}
	return nil
}
