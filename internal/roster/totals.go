package roster

import (
	"context"
	"fmt"
	"slices"

	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// totalsExtension keeps plans of different task types from giving one process more than its part of all queues (P15).
func totalsExtension() extension {
	return extension{
		review: planTotalsAgain,
		repair: func(ctx context.Context, p Planner) error { return p.roster.insertEnvironment(ctx) }, // plans lock it
	}
}

// planTotalsAgain plans again under a lock. Two plans of different task types that see one process with few queues
// would both give it one. So a plan that moves queues for the totals of the processes first locks the row of the
// environment, and reads the totals again. If another transaction has the row, these moves wait for the next plan, as
// those of rows that are held do (L5): a process that hangs stops no task type but the one that it plans.
func planTotalsAgain(ctx context.Context, p *planning) error {
	if !slices.ContainsFunc(p.result.Changes, forTotals) {
		return nil
	}
	free, _, err := sqldb.Free[int](ctx, p.l, p.l.Dialect, `SELECT 1 FROM schedule_environment q WHERE own_sign = ?`+
		p.l.Dialect.Limits, p.l.OwnSign)
	if err != nil {
		return fmt.Errorf("lock the environment: %w", err)
	}
	if len(free) == 0 {
		p.result.Changes, p.again = slices.DeleteFunc(p.result.Changes, forTotals), true
		return nil
	}
	if err := p.in.readElsewhere(ctx, p.l.Reader()); err != nil {
		return err
	}
	p.result = p.in.Plan()
	return nil
}

// forTotals reports whether a queue moves only for the totals of the processes.
func forTotals(c plan.Change) bool { return c.Rule == plan.Totals && !c.ChangesOwner() }

// readElsewhere reads how many queues of other task types the processes of the servers have, or are to have (P15).
func (in *PlanInput) readElsewhere(ctx context.Context, r Reader) error {
	type process struct {
		ID     string
		Queues int
	}
	list, err := sqldb.Records[process](ctx, r, `SELECT s.process,
			SUM((SELECT COUNT(*) FROM schedule_queue q WHERE q.cur_server = s.uuid AND q.req_server IS NULL)
				+ (SELECT COUNT(*) FROM schedule_queue q WHERE q.req_server = s.uuid))
		FROM schedule_server s WHERE s.own_sign = ? AND s.task_type <> ? AND s.process <> ''
		AND s.process IN (SELECT m.process FROM schedule_server m WHERE m.task_type = ? AND m.own_sign = ?)
		GROUP BY s.process`, r.ownSign, r.taskType, r.taskType, r.ownSign)
	queues := map[string]int{}
	for _, p := range list {
		queues[p.ID] = p.Queues
	}
	for i, process := range in.processes {
		in.Servers[i].Elsewhere = queues[process]
	}
	return sqldb.Wrap(err, "count the queues of other task types")
}
