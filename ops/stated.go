package ops

import (
	"context"
	"fmt"
	"strings"

	"github.com/dutyrota/rota/center"
	"github.com/dutyrota/rota/condition"
	"github.com/dutyrota/rota/internal/human"
	"github.com/dutyrota/rota/internal/sqldb"
)

// StatedDiffer compares what a program states about the settings of a task type, as Settings.Texts returns it, with
// the row, which is in force. It returns false if they agree. Otherwise the condition says in one line what differs,
// and its hint has the command that writes what the program states. A number of queues that is requested already counts
// as that of the row.
func (c *Client) StatedDiffer(ctx context.Context, taskType string, row center.Settings,
	stated map[string]string,
) (condition.Condition, bool) {
	diffs := row.DiffersFrom(stated)
	if len(diffs) > 0 && diffs[0].Name == "queues" && row.Queues > 0 {
		if n, err := c.Tasks().requestedQueues(ctx, taskType); err == nil { // otherwise the present number will do
			row.Queues = n
			diffs = row.DiffersFrom(stated)
		}
	}
	if len(diffs) == 0 {
		return condition.Condition{}, false
	}
	list := make([]string, len(diffs))
	for i, d := range diffs {
		given, inRow := sqldb.JoinLines(d.Given), sqldb.JoinLines(d.Row)
		list[i] = fmt.Sprintf("%s %s (the row says %s)", d.Name, given, inRow)
	}
	command := "manager.Apply in a Go program, or rota task apply -f FILE"
	words := center.Assignments(diffs)
	if len(words) > 0 {
		command = c.SetCommand(taskType, words...)
	}
	finding := condition.New(condition.SettingsDiffer, taskType,
		"stated settings are not in force: "+strings.Join(list, ", "), "to apply them: "+c.CommandLines(command))
	finding.Subject = strings.Join(list, ", ")
	return finding, true
}

// SetCommand returns the command line that sets settings of a task type in this environment. A word is SETTING=VALUE.
func (c *Client) SetCommand(taskType string, words ...string) string {
	line := append([]string{"rota task set", human.ShellWord(taskType)}, make([]string, len(words))...)
	for i, word := range words {
		line[2+i] = human.ShellWord(word)
	}
	return c.CommandLines(strings.Join(line, " "))
}
