// Rota keeps a duty roster in a SQL database: which worker process owns which
// part of the data right now. See "rota help".
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // trying again may help
	exitUsage  = 2 // the command line or rota.yaml is wrong: trying again will not help
)

// run executes a command line and returns the exit code. What failed is on
// stderr, a line for each fault.
func run(args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return exitDone
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "rota: %s\n", strings.TrimSpace(line)) //nolint:errcheck // there is nobody left to tell
	}
	if errors.As(err, new(usageError)) {
		return exitUsage
	}
	return exitFailed
}

// usageError is a mistake in what the user wrote.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
