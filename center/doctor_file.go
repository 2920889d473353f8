package center

import "context"

// DiagnoseFile compares the settings that the file at path gives for task types with those of the database, which are in
// force. It returns a note for each task type that differs, and leaves out a task type that it cannot compare: the worker
// and Tasks.Compare report invalid settings.
func (c *Center) DiagnoseFile(ctx context.Context, path string, tasks []TaskSettings) (findings []Finding) {
	for _, t := range tasks {
		d, err := c.Tasks().Compare(ctx, t.Name, t.Settings)
		if err != nil || d.Same() {
			continue
		}
		text := "the settings in " + path + " differ from those in the database, which are in force"
		if !d.Exists {
			text = path + " defines this task type, and the database does not have it"
		}
		findings = append(findings, Finding{
			Status: FindingNote, Check: "settings", TaskType: t.Name, Finding: text, Hint: "rota task apply --dry-run -f " + path,
		})
	}
	return findings
}
