package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dutyrota/rota/condition"
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

// The commands and the conditions say worker, and never server, which is a word of the tables. Names such as max_servers
// and SERVER_PAUSED keep it.
func TestScreensSayWorker(t *testing.T) {
	t.Parallel()
	wordOfTables := regexp.MustCompile(`(?i)\bservers?\b`)
	says := func(where string, texts ...string) {
		for _, text := range texts {
			if wordOfTables.MatchString(text) {
				t.Errorf("%s says server: %s", where, text)
			}
		}
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		says(cmd.CommandPath(), cmd.Use, cmd.Short, cmd.Long, cmd.Example)
		cmd.Flags().VisitAll(func(f *pflag.Flag) { says(cmd.CommandPath()+" --"+f.Name, f.Name, f.Usage) })
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRootCommand())
	for _, k := range condition.Kinds() {
		says(k.Name, k.Check, k.Meaning, k.Remedy)
	}
}
