package main

import (
	"fmt"
	"strings"

	"github.com/dutyrota/rota/internal/escape"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/internal/plural"
)

// settingChange is a difference in JSON and CSV, and a line of the table.
type settingChange struct {
	TaskType string `json:"task_type"`
	OwnSign  string `json:"own_sign"`
	Setting  string `json:"setting"`
	Row      string `json:"row"`
	File     string `json:"file"`
	Applied  bool   `json:"applied"`
}

var settingChangeColumns = []column[settingChange]{
	{title: "SETTING", text: func(c settingChange) string { return c.Setting }},
	{title: "DATABASE", text: func(c settingChange) string { return orDash(oneLine(c.Row)) }, truncate: true},
	{title: "FILE", text: func(c settingChange) string { return orDash(oneLine(c.File)) }, truncate: true},
}

func changeRecords(diffs []center.SettingsDiff, ownSign string, applied bool) (list []settingChange) {
	for _, d := range diffs {
		for _, c := range settingChanges(d) {
			c.TaskType, c.OwnSign, c.Applied = d.TaskType, ownSign, applied
			list = append(list, c)
		}
	}
	return list
}

// settingChanges lists the differences of settings and of queues. A missing
// task type is one difference.
func settingChanges(d center.SettingsDiff) (list []settingChange) {
	if !d.Exists {
		return []settingChange{{Setting: "task_type", File: d.TaskType}}
	}
	for _, s := range d.Changes {
		list = append(list, settingChange{Setting: s.Name, Row: s.Row, File: s.Given})
	}
	if d.Repartitions() {
		row := fmt.Sprint(d.Total)
		if d.Waiting != 0 {
			row += fmt.Sprintf(" (%d requested)", d.Waiting)
		}
		list = append(list, settingChange{Setting: "queues", Row: row, File: fmt.Sprint(d.Wanted)})
	}
	for _, name := range d.Add {
		list = append(list, settingChange{Setting: "queues", File: name})
	}
	for _, name := range d.Remove {
		list = append(list, settingChange{Setting: "queues", Row: name})
	}
	return list
}

// diffsText shows the differences and what applying them does.
func diffsText(sc screen, diffs []center.SettingsDiff, ownSign string, dryRun bool) string {
	var texts []string
	for _, d := range diffs {
		texts = append(texts, diffText(sc, d, ownSign, dryRun))
	}
	return strings.Join(texts, "\n\n")
}

func diffText(sc screen, d center.SettingsDiff, ownSign string, dryRun bool) string {
	name := escape.Text(d.TaskType + "$" + ownSign)
	switch {
	case d.Same():
		return strings.Join(append([]string{name + ": nothing to do"}, leftNote(sc, d)...), "\n")
	case !d.Exists:
		return fmt.Sprintf("%s: %s with %s", name, doneText("created", dryRun), queuesText(d))
	}
	lines := append([]string{name + ":", render(sc, settingChanges(d), settingChangeColumns)}, notes(d, ownSign)...)
	lines = append(lines, leftNote(sc, d)...)
	if dryRun {
		lines = append(lines, "Nothing was written.")
	}
	return strings.Join(lines, "\n")
}

// leftNote names the settings that stay because the file leaves them out, if there are any.
func leftNote(sc screen, d center.SettingsDiff) []string {
	if len(d.Left) == 0 {
		return nil
	}
	texts := make([]string, len(d.Left))
	for i, s := range d.Left {
		texts[i] = s.Name + " " + oneLine(s.Row)
	}
	return []string{sc.wrap("The file leaves out, and these stay: " + strings.Join(texts, ", ") + ". (--reset sets their defaults.)")}
}

func queuesText(d center.SettingsDiff) string {
	if d.Named {
		return "queues " + escape.Text(strings.Join(d.Settings.QueueNames, ", "))
	}
	return plural.Of(d.Wanted, "queue", "queues")
}

func doneText(done string, dryRun bool) string {
	if dryRun {
		return "would be " + done
	}
	return done
}

// notes say what each change causes.
func notes(d center.SettingsDiff, ownSign string) (list []string) {
	if len(d.Changes) > 0 {
		list = append(list, "Workers of all environments adopt the settings with their next heartbeats.")
	}
	if d.ChangesTrigger() {
		list = append(list, escape.Text(fmt.Sprintf("This changes the trigger %s of this environment, %s. Open runs stay.", d.TaskType, ownSign)))
	}
	const barrier = "A change of the number of queues is a barrier: every worker finishes what it has in flight and waits; then %s, and all workers continue under new epochs."
	switch {
	case d.QueuesRemoved() > 0:
		list = append(list, fmt.Sprintf(barrier, plural.Of(d.QueuesRemoved(), "row is", "rows are")+" removed"))
	case d.QueuesAdded() > 0:
		list = append(list, fmt.Sprintf(barrier, plural.Of(d.QueuesAdded(), "row is", "rows are")+" added"))
	case d.Repartitions():
		list = append(list, fmt.Sprintf("This withdraws the change to %s, for which the workers are draining.", plural.Of(d.Waiting, "queue", "queues")))
	}
	if len(d.Remove) > 0 {
		list = append(list, "The owners drain the removed queues first. Their items are no longer processed.")
	}
	return list
}

// lossTexts names what applying the differences deletes.
func lossTexts(diffs []center.SettingsDiff) (list []string) {
	for _, d := range diffs {
		if n := d.QueuesRemoved(); n > 0 {
			list = append(list, fmt.Sprintf("remove %s of %s", plural.Of(n, "queue", "queues"), d.TaskType))
		}
		if d.DeletesTrigger() {
			list = append(list, fmt.Sprintf("delete trigger %s, which starts its runs", d.TaskType))
		}
		if len(d.Remove) > 0 {
			list = append(list, fmt.Sprintf("remove queues %s of %s, whose items are then no longer processed", strings.Join(d.Remove, ", "), d.TaskType))
		}
	}
	return list
}
