package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command has an example, and its help fits a terminal.
func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.Name() == "help" {
			return
		}
		if !cmd.HasSubCommands() && (cmd.Example == "" || cmd.Short == "") {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if len(strings.TrimRight(line, "\n")) > 80 {
				t.Errorf("%s: a line of %d characters: %s", cmd.CommandPath(), len(line), line)
			}
		}
		for line := range strings.Lines(cmd.UsageString()) {
			if len(strings.TrimRight(line, "\n")) > helpWidth {
				t.Errorf("%s: a line of %d characters: %s", cmd.CommandPath(), len(line), line)
			}
		}
	}
	visit(newRootCommand())
}
