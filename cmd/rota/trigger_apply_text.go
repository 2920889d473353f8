package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dutyrota/rota/internal/escape"

	"github.com/dutyrota/rota/center"
)

// triggerChange is a difference in JSON and CSV, and a line of the table.
type triggerChange struct {
	Name    string `json:"name"`
	OwnSign string `json:"own_sign"`
	Setting string `json:"setting"`
	Row     string `json:"row"`
	Given   string `json:"given"`
	Applied bool   `json:"applied"`
}

var triggerChangeColumns = []column[triggerChange]{
	{title: "SETTING", text: func(c triggerChange) string { return c.Setting }},
	{title: "DATABASE", text: func(c triggerChange) string { return orDash(oneLine(c.Row)) }, truncate: true},
	{title: "COMMAND LINE", text: func(c triggerChange) string { return orDash(oneLine(c.Given)) }, truncate: true},
}

// triggerChanges lists the differences. A missing trigger is one difference.
// The list is never nil, as JSON shows it.
func triggerChanges(was center.TriggerDiff, name, ownSign string, applied bool) []triggerChange {
	diffs := was.Changes
	if !was.Exists {
		diffs = []center.Difference{{Name: "name", Given: name}}
	}
	list := []triggerChange{}
	for _, d := range diffs {
		list = append(list, triggerChange{name, ownSign, d.Name, d.Row, d.Given, applied})
	}
	return list
}

// triggerText shows the differences and the slots that follow from them.
func triggerText(sc screen, was center.TriggerDiff, changes []triggerChange, t center.Trigger, ownSign string, dryRun bool) string {
	name := escape.Text(t.Name + "$" + ownSign)
	var lines []string
	switch {
	case was.Same():
		lines = append(lines, name+": nothing to do")
	case !was.Exists:
		lines = append(lines, fmt.Sprintf("%s: %s for %s", name, doneText("created", dryRun), escape.Text(t.Target)))
	default:
		lines = append(lines, name+":", render(sc, changes, triggerChangeColumns))
	}
	lines = append(lines, slotLines(was)...)
	if dryRun && !was.Same() {
		lines = append(lines, "Nothing was written.")
	}
	return strings.Join(lines, "\n")
}

// slotLines shows the next slots in the trigger's time zone.
func slotLines(was center.TriggerDiff) (lines []string) {
	t := was.Trigger
	if len(was.Next) == 0 {
		return []string{"It is not due any more."}
	}
	if t.Status == center.TriggerPaused {
		lines = append(lines, "It is PAUSED and fires after it is resumed (see rota trigger resume).")
	}
	zone, err := time.LoadLocation(t.TimeZone)
	if err != nil {
		zone = time.UTC // this host may have fewer zones than the one that wrote the row
	}
	lines = append(lines, "It is due, in "+zone.String()+":")
	for _, at := range was.Next {
		lines = append(lines, fmt.Sprintf(" %s  %s", at.In(zone).Format("Mon "+time.RFC3339), relativeTime(was.Now, at)))
	}
	return lines
}

func doneText(done string, dryRun bool) string {
	if dryRun {
		return "would be " + done
	}
	return done
}
