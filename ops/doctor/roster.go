package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// rosterCheck checks the task types.
type rosterCheck struct{ *diagnosis }

// all checks each task type. It reads the rows of all task types together, so that it takes few statements.
func (d rosterCheck) all(ctx context.Context, taskType string) error {
	tasks, err := d.c.Tasks().List(ctx, taskType)
	if err != nil {
		return err
	}
	servers, err := d.c.Servers().List(ctx, ops.ServerFilter{}) // of all task types, to know which names are ambiguous
	if err != nil {
		return err
	}
	d.names = map[string]int{}
	for _, s := range servers {
		d.names[ops.ServerName(s.UUID)]++
	}
	queues, err := d.c.Queues().List(ctx, ops.QueueFilter{TaskType: taskType})
	if err != nil {
		return err
	}
	alerts, err := d.openAlerts(ctx, taskType)
	if err != nil {
		return err
	}
	problems, err := d.c.Runs().Problems(ctx, taskType)
	if err != nil {
		return err
	}
	cancelled, err := d.c.Runs().Cancelled(ctx, taskType)
	if err != nil {
		return err
	}
	expired, err := d.expired(ctx, taskType)
	if err != nil {
		return err
	}
	if len(tasks) == 0 {
		d.add(condition.NoTasks, "there are no task types")
	}
	for _, task := range tasks {
		r := rosterRows{
			task:      task,
			servers:   of(task, servers, func(s ops.ServerRecord) string { return s.TaskType }),
			queues:    of(task, queues, func(q ops.QueueRecord) string { return q.TaskType }),
			alerts:    of(task, alerts, func(e openAlert) string { return e.TaskType }),
			problems:  of(task, problems, func(p runs.Problem) string { return p.TaskType }),
			cancelled: of(task, cancelled, func(p runs.Problem) string { return p.TaskType }),
			expired:   of(task, expired, func(s expiredServer) string { return s.TaskType }),
		}
		if err := d.one(ctx, r); err != nil {
			return err
		}
	}
	d.task = ""
	return nil
}

// of returns the rows of a task type.
func of[T any](task ops.TaskRecord, rows []T, taskTypeOf func(T) string) (list []T) {
	for _, row := range rows {
		if taskTypeOf(row) == task.TaskType {
			list = append(list, row)
		}
	}
	return list
}

// one checks one task type, and adds an OK if there is no other finding.
func (d rosterCheck) one(ctx context.Context, r rosterRows) error {
	d.task = r.task.TaskType
	before := len(d.findings)
	settings, err := d.settings(ctx, r)
	if err != nil {
		return err
	}
	if err := d.invalidValues(ctx); err != nil {
		return err
	}
	servers, queues := serverCheck(d), queueCheck(d)
	servers.availability(r)
	servers.overdue(r)
	servers.missing(r)
	servers.window(r)
	r.limits.Require, _ = plan.ParseSelector(settings.Require) // no server has the labels of one that cannot be read
	if err := queues.ownerless(ctx, r); err != nil {
		return err
	}
	if err := errors.Join(queues.misplaced(ctx, r), queues.halted(ctx, r)); err != nil {
		return err
	}
	queues.pendingHandovers(r)
	servers.withoutCalls(r)
	servers.planners(r)
	servers.unwitnessed(r)
	servers.namesakes(r)
	servers.requirement(r)
	servers.stalledCalls(r, settings.StallAfter)
	servers.failing(r, settings.StallAfter)
	queues.failing(r)
	servers.errors(r)
	if err := queues.items(ctx, r.task); err != nil {
		return err
	}
	if err := queues.dividedKeys(ctx, r.task); err != nil {
		return err
	}
	queues.backlog(r, settings)
	if err := queues.load(ctx, r, settings); err != nil {
		return err
	}
	d.alerts(r)
	runCheck(d).problems(r)
	queues.pendingChanges(r, settings.Queues)
	if err := queues.crashes(ctx, d.task, settings); err != nil {
		return err
	}
	if len(d.findings) == before {
		d.ok(condition.Healthy, "%s, %s", human.Count(r.task.QueueTotal, "queue", "queues"),
			human.Count(len(r.servers), "worker", "workers"))
	}
	return nil
}

// invalidValues reports values that servers ignore or replace by a bound (S13).
func (d rosterCheck) invalidValues(ctx context.Context) error {
	values, err := d.c.Roster().Planner(d.task, "").InvalidValues(ctx)
	if err != nil {
		return err
	}
	for _, v := range values {
		d.add(condition.InvalidValue, "workers ignore a value or use its bound: %s", v).Subject = v.Table + " " + v.Row +
			" " + v.Column
	}
	late, err := d.c.Triggers().Late(ctx, d.task)
	for _, t := range late {
		d.add(condition.InvalidValue, "%s", t).Subject = "schedule_trigger " + t.Name + " next_fire_at"
	}
	return err
}

// openAlert is the newest of the open alerts of one kind about one server of a task type.
type openAlert struct {
	ops.EventRecord
	Alerts int64 `json:"alerts"` // how many there are
}

// openAlerts returns the alerts whose conditions last and that no other check reports, the newest first. It reads one
// row for many alerts, so that those of one kind cannot hide another one.
func (d rosterCheck) openAlerts(ctx context.Context, taskType string) ([]openAlert, error) {
	w := sqldb.Where{Args: []any{d.c.OwnSign()}}
	w.Equal("task_type", taskType)
	list, err := sqldb.Records[openAlert](ctx, d.db, fmt.Sprintf(`SELECT {columns} FROM (SELECT e.*, n.alerts FROM
			(SELECT MAX(event_id) AS newest, COUNT(*) AS alerts FROM schedule_event
			WHERE kind = 'ALERT' AND own_sign = ? AND open_until > (SELECT {now})%s
			GROUP BY task_type, alert, from_server) n
		JOIN schedule_event e ON e.event_id = n.newest) x ORDER BY event_id DESC`, w.Text), w.Args...)
	return slices.DeleteFunc(list, func(e openAlert) bool {
		return e.Alert == nil || !condition.KindOf(*e.Alert).ShownByAlerts()
	}), sqldb.Wrap(err, "list the open alerts")
}

// alerts reports the newest alert of each kind.
func (d rosterCheck) alerts(r rosterRows) {
	var kinds []string
	newest, alerts := map[string]openAlert{}, map[string]int64{}
	for _, e := range r.alerts {
		if alerts[*e.Alert] == 0 {
			kinds = append(kinds, *e.Alert)
			newest[*e.Alert] = e
		}
		alerts[*e.Alert] += e.Alerts
	}
	for _, kind := range kinds {
		e := newest[kind]
		text := sqldb.JoinLines(strings.TrimPrefix(e.Reason, kind+": "))
		if n := alerts[kind] - 1; n > 0 {
			text += "; " + human.Count(n, "more alert", "more alerts") + " of this kind"
		}
		at := e.EventTime.UTC().Format(time.TimeOnly)
		d.add(condition.KindOf(kind), "%s (alert of %s UTC)", text, at).Since = e.EventTime
	}
}
