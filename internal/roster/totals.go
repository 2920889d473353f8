package roster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
)

// errOvertaken says that something has changed since the totals were read. The next audit reads them again.
var errOvertaken = errors.New("overtaken")

// RoundingUp names the servers whose shares are to be rounded up before those of others (P15), as of the versions that
// it was computed from.
type RoundingUp struct {
	version     int64               // of the environment
	memberships map[string]int64    // of the task types
	servers     map[string][]string // by task type
}

// BalanceTotals evens the numbers of queues that the processes of the environment have of all task types, once per
// audit interval and environment (P15). It only chooses the servers whose shares are rounded up, by the column
// rounded_up. The plans that are due then move the queues.
func (p Planner) BalanceTotals(ctx context.Context) error {
	choice, err := p.ChooseRoundingUp(ctx)
	if err == nil {
		err = p.WriteRoundingUp(ctx, choice)
	}
	return sqldb.Wrap(err, "balance the processes of %s", p.roster.OwnSign)
}

// ChooseRoundingUp returns what BalanceTotals writes: nothing if the totals are even, or if it is not this server's
// turn.
func (p Planner) ChooseRoundingUp(ctx context.Context) (choice RoundingUp, err error) {
	turn := false
	if choice.version, turn, err = p.takeTurn(ctx); err != nil || !turn {
		return choice, err
	}
	totals, weights, err := p.totals(ctx)
	if err != nil || plan.TotalsBalanced(totals, weights) {
		return choice, err
	}
	tasks, err := p.readTasks(ctx, &choice)
	if err == nil {
		choice.servers = plan.BalanceTotals(tasks)
	}
	return choice, err
}

// WriteRoundingUp writes a choice, each task type under its lock row. Each is a compare-and-set on the row of the
// environment and on what the task type's plan reads: of two servers that balance at the same time, one stops.
// Otherwise both could give queues to the same process, and the next balancing would take them back.
func (p Planner) WriteRoundingUp(ctx context.Context, choice RoundingUp) error {
	for _, taskType := range slices.Sorted(maps.Keys(choice.servers)) {
		err := p.roundUp(ctx, taskType, choice)
		switch {
		case err == nil:
			choice.version++
		case !errors.Is(err, errOvertaken):
			return err
		}
	}
	return nil
}

// takeTurn reports whether it is this server's turn, and returns the version of the environment's row. It inserts the
// row if there is none.
func (p Planner) takeTurn(ctx context.Context) (version int64, turn bool, err error) {
	n, err := p.roster.DB.Exec(ctx, `UPDATE schedule_environment SET balanced_at = {now}, balanced_by = ?
		WHERE own_sign = ? AND `+auditDue("balanced_at")+p.roster.DB.Limits, p.actor, p.roster.OwnSign)
	if err != nil {
		return 0, false, err
	}
	version, found, err := sqldb.Record[int64](ctx, p.roster.DB, `SELECT version FROM schedule_environment
		WHERE own_sign = ?`, p.roster.OwnSign)
	if err == nil && !found {
		err = p.roster.insertEnvironment(ctx)
	}
	return version, n == 1, sqldb.Wrap(err, "read its row")
}

// totals returns how many queues each process has or is to have, and its weight.
func (p Planner) totals(ctx context.Context) (totals, weights map[string]int, err error) {
	type process struct {
		ID             string
		Queues, Weight int
	}
	list, err := sqldb.Records[process](ctx, p.roster.DB, `SELECT s.process, COALESCE(SUM(q.queues), 0), MAX(s.weight)
		FROM schedule_server s
		LEFT JOIN (SELECT COALESCE(req_server, cur_server) AS uuid, COUNT(*) AS queues FROM schedule_queue
			WHERE own_sign = ? AND cur_server IS NOT NULL GROUP BY COALESCE(req_server, cur_server)) q ON q.uuid = s.uuid
		WHERE s.own_sign = ? AND s.process <> '' GROUP BY s.process ORDER BY s.process`,
		p.roster.OwnSign, p.roster.OwnSign)
	totals, weights = map[string]int{}, map[string]int{}
	for _, s := range list {
		totals[s.ID], weights[s.ID] = s.Queues, s.Weight
	}
	return totals, weights, sqldb.Wrap(err, "count their queues")
}

// readTasks reads the task types of the environment that have servers, and notes their membership versions. A task
// type that is paused, whose plan is due or whose servers drain for another number of queues stays as it is.
func (p Planner) readTasks(ctx context.Context, choice *RoundingUp) (tasks []plan.Task, err error) {
	type task struct {
		Name       string
		Membership int64
		Fixed      bool
	}
	list, err := sqldb.Records[task](ctx, p.roster.DB, `SELECT task_type, membership_version,
			CASE WHEN paused OR requested_total IS NOT NULL OR `+planDue("q")+` THEN 1 ELSE 0 END
		FROM schedule_task_running q
		WHERE own_sign = ? AND task_type IN (SELECT task_type FROM schedule_server WHERE own_sign = ?)
		ORDER BY task_type`, p.roster.OwnSign, p.roster.OwnSign)
	if err != nil {
		return nil, fmt.Errorf("read the task types: %w", err)
	}
	choice.memberships = map[string]int64{}
	for _, t := range list {
		choice.memberships[t.Name] = t.Membership
		tasks = append(tasks, plan.Task{Name: t.Name, Fixed: t.Fixed})
	}
	for i := range tasks {
		if err := p.readTask(ctx, &tasks[i]); err != nil {
			return nil, fmt.Errorf("read the plan of %s: %w", tasks[i].Name, err)
		}
	}
	return tasks, nil
}

// readTask reads the input of the planner.
func (p Planner) readTask(ctx context.Context, t *plan.Task) error {
	r := p.roster.Reader(t.Name)
	servers, err := r.Servers(ctx)
	if err != nil {
		return err
	}
	in, err := r.PlanInput(ctx, servers)
	t.Queues, t.Servers, t.Limits = in.Queues, in.Servers, in.Limits
	return err
}

// roundUp writes the choice of a task type, and makes a plan due. It returns errOvertaken if another server has
// balanced since, or the task type has another membership. The rows of the servers are written last, as in setState.
func (p Planner) roundUp(ctx context.Context, taskType string, choice RoundingUp) error {
	uuids := choice.servers[taskType]
	return p.roster.UnderLock(ctx, taskType, func(ctx context.Context, l *LockTx) error {
		if l.versions.membership != choice.memberships[taskType] {
			return errOvertaken
		}
		n, err := l.Exec(ctx, `UPDATE schedule_environment SET version = version + 1
			WHERE own_sign = ? AND version = ?`, l.OwnSign, choice.version)
		if err == nil && n == 0 {
			err = errOvertaken
		}
		if err != nil {
			return err
		}
		if err := l.membershipChanged(ctx); err != nil {
			return err
		}
		reason := fmt.Sprintf("%s rounded up, so that the processes have equal numbers of queues of all task types",
			human.Count(len(uuids), "share is", "shares are"))
		if err := l.Record(ctx, Event{Kind: EventTotals, Actor: p.actor, Reason: reason}); err != nil {
			return err
		}
		_, err = l.Exec(ctx, `UPDATE schedule_server SET rounded_up = FALSE WHERE `+ofTask+` AND rounded_up`,
			l.TaskType, l.OwnSign)
		if err == nil {
			_, err = l.ExecIn(ctx, uuids, `UPDATE schedule_server SET rounded_up = TRUE WHERE uuid IN ({ids})`)
		}
		return err
	})
}
