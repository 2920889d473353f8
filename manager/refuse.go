package manager

import (
	"context"
	"fmt"

	"github.com/dutyrota/rota/condition"
)

// tellRefusal raises the alert that this process does not serve the task type, because it cannot work by what the
// database has. It has no row among the servers, so that only the alert names it. All processes of a host share the
// alert: one that is started again and again raises it once.
func (s *server) tellRefusal(ctx context.Context, why error) {
	ctx, cancel := s.withTimeout(ctx)
	defer cancel()
	s.episodes.see(condition.Condition{
		Kind: condition.Refused.Name, TaskType: s.taskType, Subject: s.host,
		Text: fmt.Sprintf("process %s does not serve the task type: %v", s.process, why),
	}, reported)
	s.episodes.checked(reported)
	if j := (&alerter{base: &s.base, episodes: s.episodes}).tellRoster(); j != nil {
		j.then(ctx, j.call(ctx))
	}
}
