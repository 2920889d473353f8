package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/escape"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/plan"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
	"github.com/dutyrota/rota/runs"
)

// Diagnose checks the database and each task type of this own_sign, or only the named task type. It changes nothing. It
// returns an error if it cannot read what it checks.
func Diagnose(ctx context.Context, c *ops.Client, taskType string) ([]condition.Condition, error) {
	d := &diagnosis{c: c, db: c.Roster().DB}
	database := databaseCheck{d}
	for _, check := range []func(context.Context) error{
		database.version, database.transactions, clusterCheck{d}.nodes, database.clockSkew, database.schemaVersion,
		database.privileges, database.history, dataCheck{d}.all,
		func(ctx context.Context) error { return runCheck{d}.triggers(ctx, taskType) },
		func(ctx context.Context) error { return runCheck{d}.unmade(ctx, taskType) },
		func(ctx context.Context) error { return rosterCheck{d}.all(ctx, taskType) },
	} {
		if err := check(ctx); err != nil {
			return d.findings, fmt.Errorf("diagnose: %w", err)
		}
	}
	return d.findings, nil
}

// diagnosis collects the findings of Diagnose. Each type of check adds the findings about one subject: databaseCheck,
// clusterCheck, dataCheck, rosterCheck, serverCheck, queueCheck and runCheck.
type diagnosis struct {
	c        *ops.Client
	db       *sqldb.DB
	task     string         // the task type being checked
	names    map[string]int // number of servers by short name
	findings []condition.Condition
}

// add adds a finding and returns it, so that the check can say what it is about and since when.
func (d *diagnosis) add(kind condition.Kind, format string, args ...any) *condition.Condition {
	return d.advise(kind, "", format, args...)
}

// advise adds a finding whose hint names what it is about.
func (d *diagnosis) advise(kind condition.Kind, hint, format string, args ...any) *condition.Condition {
	d.findings = append(d.findings, condition.New(kind, d.task, fmt.Sprintf(format, args...), hint))
	return &d.findings[len(d.findings)-1]
}

func (d *diagnosis) ok(kind condition.Kind, format string, args ...any) {
	c := d.add(kind, format, args...)
	c.Status, c.Hint = condition.OK, ""
}

// note adds a finding that is less grave than most of its kind.
func (d *diagnosis) note(kind condition.Kind, hint, format string, args ...any) *condition.Condition {
	c := d.advise(kind, hint, format, args...)
	c.Status = condition.Note
	return c
}

// list adds a finding about some things, unless there are none. Its text ends with the first five of them.
func (d *diagnosis) list(kind condition.Kind, text string, things []string) {
	if len(things) > 0 {
		d.add(kind, "%s: %s", text, human.First(things, 5))
	}
}

// names returns queues or keys as lists show them: names that look like others are quoted.
func names(ids []string) []string {
	shown := make([]string, len(ids))
	for i, id := range ids {
		shown[i] = escape.Name(id)
	}
	return shown
}

// commandName returns the argument by which a command finds a server: the uuid if the process has several servers.
func (d *diagnosis) commandName(s ops.ServerRecord) string {
	if name := ops.ServerName(s.UUID); d.names[name] == 1 {
		return name
	}
	return s.UUID
}

// wholeSeconds returns the duration of an age that a record has.
func wholeSeconds(age float64) time.Duration {
	return time.Duration(age * float64(time.Second)).Round(time.Second)
}

// rosterRows holds what Diagnose has read about one task type.
type rosterRows struct {
	task    ops.TaskRecord
	servers []ops.ServerRecord
	queues  []ops.QueueRecord
	alerts  []ops.EventRecord // that no other check reports, the newest first
	limits  plan.Limits

	problems, cancelled []runs.Problem // of its runs and triggers
}

// eachQueue returns what a check says about each queue. It leaves out queues about which the check says nothing.
func (r rosterRows) eachQueue(say func(ops.QueueRecord) string) (list []string) {
	for _, q := range r.queues {
		if text := say(q); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// eligible reports whether there is an eligible server.
func (r rosterRows) eligible() bool { return slices.ContainsFunc(r.servers, ops.ServerRecord.Eligible) }

// mayOwn reports whether a server may own queues with the pin (P14).
func (r rosterRows) mayOwn(pin plan.Selector) bool {
	return slices.ContainsFunc(r.servers, func(s ops.ServerRecord) bool {
		return r.limits.Forbids(&plan.Queue{Pin: pin}, planServer(s)) == plan.Stays
	})
}
