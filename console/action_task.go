package console

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/dutyrota/rota/center"
)

// taskOf returns the task type that a form names, read now.
func (v *viewer) taskOf(ctx context.Context, form url.Values) (center.TaskRecord, error) {
	name := form.Get("task")
	if name == "" {
		return center.TaskRecord{}, errMissing("the task type")
	}
	tasks, err := v.center.Tasks().List(ctx, name)
	if err != nil {
		return center.TaskRecord{}, err
	}
	return tasks[0], nil
}

// changeOfTask returns a change of a task type that leads back to its page.
func changeOfTask(taskType, title, button string) *change {
	c := &change{Title: title, Button: button, TaskTypes: []string{taskType}, Back: address("task", "task", taskType)}
	c.hide("task", taskType)
	return c
}

// prepareSettings is the change of all settings but the queues.
func prepareSettings(ctx context.Context, v *viewer, form url.Values) (*change, error) {
	t, err := v.taskOf(ctx, form)
	if err != nil {
		return nil, err
	}
	row, err := v.center.Tasks().Settings(ctx, t.TaskType)
	if err != nil {
		return nil, err
	}
	c := changeOfTask(t.TaskType, "Change the settings of "+t.TaskType, "Write the settings")
	filled := form.Get("step") != "" && form.Get("edit") == ""
	version := fmt.Sprint(t.Version)
	if form.Get("step") != "" {
		version = form.Get("version")
	}
	c.hide("version", version)
	c.hide("step", "show")
	texts := map[string]string{}
	for _, r := range row.Records() {
		texts[r.Name] = r.Text
		if form.Get("step") != "" {
			texts[r.Name] = form.Get(r.Name)
		}
	}
	want := row
	err = parseSettings(&want, texts)
	if err == nil && filled {
		err = c.compareSettings(ctx, v, want, version)
	}
	if !filled || err != nil {
		c.Fields = settingFields(texts)
		if !filled {
			err = nil
		}
		return c, err
	}
	for name, text := range texts {
		c.hide(name, text)
	}
	return c, nil
}

// parseSettings sets the settings to what the texts mean.
func parseSettings(s *center.Settings, texts map[string]string) error {
	var errs []error
	for _, row := range center.SettingTable() {
		if text, ok := texts[row.Name]; ok {
			errs = append(errs, row.Parse(s, text))
		}
	}
	return errors.Join(errs...)
}

// settingFields returns a field for each setting but the queues.
func settingFields(texts map[string]string) (fields []formField) {
	defaults := map[string]string{}
	for _, r := range (center.Settings{}).Records() {
		defaults[r.Name] = r.Text
	}
	for _, row := range center.SettingTable() {
		if row.Name != "queues" {
			fields = append(fields, formField{Name: row.Name, Label: row.Name, Value: texts[row.Name], Placeholder: defaults[row.Name], Help: strings.ReplaceAll(row.Help, "`", ""), Choices: row.Choices()})
		}
	}
	return fields
}

// errNothing is the error of a form that changes nothing.
var errNothing = errors.New("this changes nothing")

// compareSettings fills what the settings would change, unless somebody has changed them since the form was made.
func (c *change) compareSettings(ctx context.Context, v *viewer, want center.Settings, version string) error {
	taskType := c.TaskTypes[0]
	d, err := v.center.Tasks().Compare(ctx, taskType, want)
	switch {
	case err != nil:
		return err
	case fmt.Sprint(d.Version) != version:
		return center.ErrChanged
	}
	if d.Waiting != 0 { // the settings leave a change of the number of queues under way as it is
		d.Wanted = d.Waiting
	}
	if d.Same() {
		return errNothing
	}
	c.Diffs = d.Changes
	c.Says = append(c.Says, "Workers of all environments take the settings over with their next heartbeats.")
	if d.ChangesTrigger() {
		c.Says = append(c.Says, fmt.Sprintf("This changes the trigger %s of this environment, %s. Open runs stay.", taskType, v.center.OwnSign()))
	}
	if d.DeletesTrigger() {
		c.Danger = true
		c.Warnings = append(c.Warnings, fmt.Sprintf("This deletes the trigger %s, which starts its runs.", taskType))
	}
	c.do = func(ctx context.Context, actor string) (string, error) {
		return doneIf(fmt.Sprintf("%s of %s changed", plural(len(d.Changes), "setting", "settings"), taskType), v.center.Tasks().Apply(ctx, d, actor))
	}
	return nil
}
