// Rota keeps a duty roster in a SQL database: which worker process owns which
// part of the data right now. See "rota help".
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dutyrota/rota/internal/escape"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes a command line and returns the exit code. It writes each error
// to stderr, one line per error.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return exitDone
	}
	for line := range strings.Lines(err.Error() + hint(err)) {
		fmt.Fprintf(stderr, "rota: %s\n", escape.Text(strings.TrimSpace(line))) //nolint:errcheck // stderr is the last channel
	}
	return exitCode(err)
}
