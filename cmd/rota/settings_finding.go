package main

import (
	"context"

	"github.com/dutyrota/rota/center"
)

// fileFindings returns a note for each task type whose settings in the file at
// path differ from those of the database, which are in force.
func fileFindings(ctx context.Context, c *center.Center, path string, tasks []taskSettings) (findings []center.Finding) {
	for _, t := range tasks {
		diff, err := c.Tasks().Compare(ctx, t.name, t.settings)
		if err != nil || diff.Same() {
			continue // an invalid file is reported by the worker and by task apply
		}
		text := "the settings in " + path + " differ from those in the database, which are in force"
		if !diff.Exists {
			text = path + " defines this task type, and the database does not have it"
		}
		findings = append(findings, center.Finding{
			Status: center.FindingNote, Check: "settings", TaskType: t.name, Finding: text, Hint: "rota task apply --dry-run -f " + path,
		})
	}
	return findings
}
