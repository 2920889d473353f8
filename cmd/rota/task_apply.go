package main

import (
	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/config"
	"github.com/dutyrota/rota/ops"
)

// newTaskApplyCommand makes the command of the verb, which reads the settings from a file.
func newTaskApplyCommand() *cobra.Command {
	v := &verbCommand{call: ops.Find("task apply").Call()}
	cmd := v.command()
	c := cmd.Flags().Lookup("config")
	c.Usage = "same as --file"
	cmd.Flags().VarP(c.Value, "file", "f", "configuration file")
	v.before = func() error {
		file, err := config.Load(configPath(cmd), cmd.Flags())
		if err != nil {
			return err
		}
		a := v.call.Operation().(ops.ApplyTasks)
		a.Tasks = settingsOf(file)
		v.call = v.call.Verb.CallOf(a)
		return nil
	}
	return cmd
}

func settingsOf(file *config.File) (tasks []ops.TaskSettings) {
	for _, t := range file.Tasks {
		tasks = append(tasks, ops.TaskSettings{Name: t.Name, Settings: t.Settings, Given: t.Given})
	}
	return tasks
}
