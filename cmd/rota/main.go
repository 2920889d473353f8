// Rota keeps a duty roster in a SQL database: which worker process owns which
// part of the data right now. See "rota help".
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	_ "time/tzdata" // permit windows have time zones, and a small image has none

	"github.com/spf13/cobra"

	"github.com/dutyrota/rota/cmd/rota/internal/cli"
	"github.com/dutyrota/rota/cmd/rota/internal/consolecmd"
	"github.com/dutyrota/rota/cmd/rota/internal/doctorcmd"
	"github.com/dutyrota/rota/cmd/rota/internal/environ"
	"github.com/dutyrota/rota/cmd/rota/internal/rostercmd"
	"github.com/dutyrota/rota/cmd/rota/internal/runcmd"
	"github.com/dutyrota/rota/cmd/rota/internal/top"
	"github.com/dutyrota/rota/cmd/rota/internal/workercmd"
)

func main() {
	if err := environ.Restore(); err != nil {
		os.Exit(cli.Report(nil, err, os.Stderr))
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	addCobrasCommands(root)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if cmd, err := root.ExecuteC(); err != nil {
		return cli.Report(cmd, err, stderr)
	}
	return 0
}

// helpWidth is the width of the narrowest terminals.
const helpWidth = 80

func newRootCommand() *cobra.Command {
	root := cli.Group(&cobra.Command{
		Use:   "rota",
		Short: "A duty roster for workers, in the SQL database that you already have",
		Long: `Rota keeps a duty roster in a SQL database: which worker process owns which
queue (a part of the data) right now. Workers share the queues evenly, hand them
over without overlap, and take over the queues of a worker that has crashed.`,
		Example: `  rota demo                     show workers at work; needs no database
  rota worker -c rota.yaml      run the tasks of a file
  rota migrate up               create or upgrade the roster's tables
  rota top                      show the roster at work; pause, drain
  rota doctor                   list problems and how to solve them`,
		SilenceErrors: true, // cli.Report prints them
		SilenceUsage:  true,
	})
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ",
		fmt.Sprintf("Flags.FlagUsagesWrapped %d ", helpWidth)))
	addVersionFlag(root)
	root.AddCommand(rostercmd.Commands()...)
	root.AddCommand(runcmd.Commands()...)
	root.AddCommand(doctorcmd.New(), top.New(), workercmd.New(rostercmd.NewWorkerListCommand()), workercmd.NewWitness())
	root.AddCommand(consolecmd.New(), consolecmd.NewDemo(), newVersionCommand(), newManCommand())
	return root
}

// negative finds the error of a negative number that was taken for flags, such as the key of an item.
var negative = regexp.MustCompile(`^unknown shorthand flag: '[0-9]'`)

// flagError returns what a command says about its flags.
func flagError(cmd *cobra.Command, err error) error {
	hint := ""
	if negative.MatchString(err.Error()) {
		hint = "; if it is an argument, write -- before it"
	}
	return cli.Usage(fmt.Errorf("%w%s (see %s --help)", err, hint, cmd.CommandPath()))
}

// addCobrasCommands adds the commands that cobra otherwise adds itself. Here they refuse what they do not know, as the
// others do.
func addCobrasCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			for _, shell := range cli.Group(cmd).Commands() {
				shell.Args = cli.Arguments()
			}
		case "help":
			cmd.RunE = func(_ *cobra.Command, args []string) error {
				topic, rest, err := root.Find(args)
				if err != nil || len(rest) == 0 {
					return errors.Join(err, topic.Help())
				}
				return cli.Unknown(topic, rest[0])
			}
		}
	}
}
