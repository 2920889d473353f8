package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/sqldb"
	"github.com/dutyrota/rota/ops"
)

// settings checks whether workers can use the row, and whether their programs give other settings.
func (d rosterCheck) settings(ctx context.Context, r rosterRows) (center.Settings, error) {
	s, err := d.c.Tasks().Settings(ctx, r.task.TaskType)
	if errors.Is(err, center.ErrUnknownTask) {
		d.add(condition.SettingsGone, "the row in schedule_task_type is gone; workers cannot start")
		return center.Settings{StallAfter: time.Hour, Queues: int(r.task.QueueTotal)}, nil
	}
	if err != nil {
		return s, err
	}
	d.givenSettings(ctx, r, s)
	if s.Queues == 0 && len(s.QueueNames) == 0 {
		s.Queues = 1 // availability reports it
	}
	if err := s.Validate(); err != nil {
		d.add(condition.SettingsInvalid, "workers refuse the row in schedule_task_type and keep their last valid settings: "+
			"%s", sqldb.OneLine(err))
	}
	return s, nil
}

// givenSettings compares the settings that the servers' programs state with the row, which is in force. Servers that
// state the same are one finding, so that each is in one.
func (d rosterCheck) givenSettings(ctx context.Context, r rosterRows, row center.Settings) {
	servers := map[string][]string{}
	var findings []condition.Condition
	for _, s := range r.servers {
		c, differ := d.c.StatedDiffer(ctx, r.task.TaskType, row, s.GivenSettings)
		if !differ {
			continue
		}
		if servers[c.Text] == nil {
			findings = append(findings, c)
		}
		servers[c.Text] = append(servers[c.Text], ops.ServerName(s.UUID))
	}
	for _, c := range findings {
		who := servers[c.Text][0]
		if names := servers[c.Text]; len(names) > 1 {
			who = fmt.Sprintf("%d workers (%s)", len(names), human.First(names, 5))
		}
		c.Text = who + ": " + c.Text
		d.findings = append(d.findings, c)
	}
}

// DiagnoseFile compares the settings that the file at path states for task types with those of the database, which are
// in force. It returns a note for each task type that differs. It leaves out a task type that it cannot compare,
// because the worker and Tasks.Compare report invalid settings, and one of which a worker states the same as the file,
// because Diagnose reports that with what differs.
func DiagnoseFile(
	ctx context.Context, c *ops.Client, path string, tasks []ops.TaskSettings,
) (findings []condition.Condition) {
	names, err := c.Tasks().Names(ctx)
	if err != nil {
		return nil // the database is checked elsewhere
	}
	for _, t := range tasks {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	servers, err := c.Servers().List(ctx, ops.ServerFilter{})
	if err != nil {
		return nil // likewise
	}
	for _, t := range tasks {
		for _, a := range t.Settings.After {
			if !slices.Contains(names, a.Upstream) {
				findings = append(findings, unknownUpstream(path, t.Name, a.Upstream, names))
			}
		}
		d, err := c.Tasks().CompareGiven(ctx, t.Name, t.Settings, t.Given)
		stated := t.Settings.Texts(t.Given)
		worksBy := func(s ops.ServerRecord) bool { return s.TaskType == t.Name && maps.Equal(s.GivenSettings, stated) }
		if err != nil || d.Same() || slices.ContainsFunc(servers, worksBy) {
			continue
		}
		text := path + " defines this task type, and the database does not have it"
		if d.Exists {
			row, err := c.Tasks().Settings(ctx, t.Name)
			if err != nil {
				continue // likewise
			}
			differs, _ := c.StatedDiffer(ctx, t.Name, row, stated)
			text = "settings of " + path + " are not in force: " + differs.Subject
		}
		finding := condition.New(condition.SettingsDiffer, t.Name, text, command("rota task apply --dry-run -f", path))
		finding.Subject = path
		findings = append(findings, finding)
	}
	return inEnvironment(c, findings)
}

// unknownUpstream is the finding of a task type that cannot be created, so that its worker waits.
func unknownUpstream(path, taskType, upstream string, names []string) condition.Condition {
	c := condition.New(condition.NoUpstream, taskType,
		"after names no task type: there is none of the name "+upstream+", and a worker waits until there is one",
		"define it, or correct after in "+path+"; the task types are "+human.First(names, 5))
	c.Subject = upstream
	return c
}
